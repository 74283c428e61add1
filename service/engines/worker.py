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
import threading
import time
from dataclasses import asdict
from pathlib import Path

from sandbox.config import SandboxConfig
from sandbox.errors import Cancelled, CheckerRefused, GraderFault, UnknownLanguage
from sandbox.judge import Judge
from service.contract import GradeRequest, GraderInfo, parse_problem
from service.engines.base import Job
from service.engines.frames import Frame, receive_frame
from service.grading import Grading, LimitsRefused
from service.stores.loaded import LoadedProblems, load
from service.stores.problems import CorruptProblem, ProblemStore, UnknownProblem

#: How often a worker at work says that it lives.
_BEAT_S = 1.0

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
        _serve(Heartbeat(connection), judge, Grading(judge, problems, graders=graders))
    finally:
        judge.close()


def _raise_fd_limit() -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


class Heartbeat:
    """The worker's end of the socket, which tells the engine every second of a job that this process is not stopped.

    Between jobs it is silent, since nobody reads then.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._sending = threading.Lock()
        self._at_work = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def receive(self) -> Frame | None:
        """The engine's next frame; from here on it hears the heart beat."""
        frame = receive_frame(self.connection)
        self._at_work.set()
        return frame

    def rest(self) -> None:
        """There was nothing to do."""
        self._at_work.clear()

    def answer(self, frame: Frame) -> None:
        """Send what the job came to. Raises ConnectionError."""
        self._at_work.clear()
        with self._sending:
            self.connection.sendall(frame.encode())

    def _beat(self) -> None:
        beat = Frame("alive", {}).encode()
        while True:
            self._at_work.wait()
            time.sleep(_BEAT_S)
            with self._sending:
                if self._at_work.is_set():
                    try:
                        self.connection.sendall(beat)
                    except OSError:
                        return


def _serve(heartbeat: Heartbeat, judge: Judge, grading: Grading) -> None:
    connection = heartbeat.connection
    while (frame := heartbeat.receive()) is not None:
        match frame.kind:
            case "grade":
                answer = answer_to(connection, grading, frame)
            case "vet":
                answer = _vetted(connection, judge, frame)
            case _:
                # A cancel that comes alone is one that crossed with its job's result.
                heartbeat.rest()
                continue
        try:
            heartbeat.answer(answer)
        except ConnectionError:
            return
        judge.warm()


def answer_to(connection: socket.socket, grading: Grading, frame: Frame) -> Frame:
    """What a `grade` comes to. Raises what no answer stands for: a fault of this program's."""
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
    except LimitsRefused as error:
        return _refused("time_factor", str(error))
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
