"""A worker of the in-process engine: `python -m service.engines.worker FD`, one judge on one core.

Ends when its socket closes, whatever closed it; so a killed API leaves no worker behind. A fault that it
does not know ends it too, with the trace on stderr: the engine starts another one and asks again. Imports
no web framework, to stay small.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from dataclasses import asdict
from pathlib import Path

from pydantic import ValidationError

from sandbox.config import SandboxConfig
from sandbox.errors import Cancelled, CheckerRefused, GraderFault, UnknownLanguage
from sandbox.judge import Judge
from service.contract import GradeRequest, GraderInfo, parse_problem
from service.engines.base import Job
from service.engines.frames import Frame, receive_frame
from service.grading import Grading
from service.stores.loaded import LoadedProblems, load
from service.stores.problems import CorruptProblem, ProblemStore, UnknownProblem

#: Descriptors left to cells and to the interpreter, beside those of loaded tests.
_SPARE_FDS = 512


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    # The order to end comes through the socket; a signal sent to the whole group must not cut a cell's
    # cleaning short. Handlers, not SIG_IGN, which every program run here would inherit through exec.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    setup = receive_frame(connection)
    if setup is None:
        return
    slot, core = setup.fields["slot"], setup.fields["core"]
    os.sched_setaffinity(0, {core})
    data_dir = Path(setup.fields["data_dir"])
    judge = Judge(
        SandboxConfig(
            data_dir=data_dir,
            insecure_no_cgroup=setup.fields["insecure_no_cgroup"],
            compile_cache_bytes=setup.fields["compile_cache_bytes"],
            testlib=Path(setup.fields["testlib"]),
            checker_cpu_s=setup.fields["checker_cpu_s"],
            languages=None if setup.fields["languages"] is None else frozenset(setup.fields["languages"]),
            time_factors=setup.fields["time_factors"],
        ),
        slot,
        core,
    )
    try:
        problems = LoadedProblems(
            ProblemStore(data_dir / "problems"),
            limit_bytes=setup.fields["problem_cache_bytes"],
            limit_tests=_raise_fd_limit() - _SPARE_FDS,
        )
        graders = {name: GraderInfo(**info) for name, info in setup.fields["graders"].items()}
        judge.warm()
        connection.sendall(Frame("ready", {}).encode())
        _serve(connection, judge, Grading(judge, problems, graders=graders))
    finally:
        judge.close()


def _raise_fd_limit() -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def _serve(connection: socket.socket, judge: Judge, grading: Grading) -> None:
    while (frame := receive_frame(connection)) is not None:
        match frame.kind:
            case "grade":
                answer = _answer(connection, grading, frame)
            case "vet":
                answer = _vetted(connection, judge, frame)
            case _:
                # A cancel that comes alone is one that crossed with its job's result.
                continue
        try:
            connection.sendall(answer.encode())
        except ConnectionError:
            return
        judge.warm()


def _answer(connection: socket.socket, grading: Grading, frame: Frame) -> Frame:
    job = Job(
        request=GradeRequest.model_validate_json(frame.body),
        arrived_s=frame.fields["arrived_s"],
        index=frame.fields["index"],
    )
    try:
        graded = grading.grade(job, queue_s=frame.fields["queue_s"], cancel_fd=connection.fileno())
    except Cancelled:
        return Frame("cancelled", {})
    except UnknownProblem:
        return _refused("unknown_problem", f"no problem {job.problem_id} is stored here")
    except CorruptProblem:
        return _refused("corrupt_problem", f"what is stored as {job.problem_id} is damaged; send the problem again")
    except CheckerRefused as error:
        return _refused(f"problem.{error.field}", str(error))
    except UnknownLanguage as error:
        return _refused("language", str(error))
    except ValidationError:
        return _refused("time_factor", "the limits it comes to are past what is allowed")
    return Frame("result", {"summary": asdict(graded.summary)}, graded.result)


def _vetted(connection: socket.socket, judge: Judge, frame: Frame) -> Frame:
    try:
        judge.vet(load(parse_problem(frame.body)).problem, cancel_fd=connection.fileno())
    except Cancelled:
        return Frame("cancelled", {})
    except CheckerRefused as error:
        return _refused(error.field, str(error))
    except GraderFault as fault:
        return Frame("fault", {"detail": f"the problem's own programs could not be compiled: {fault}"})
    return Frame("vetted", {})


def _refused(reason: str, detail: str) -> Frame:
    return Frame("refused", {"reason": reason, "detail": detail})


if __name__ == "__main__":
    main()
