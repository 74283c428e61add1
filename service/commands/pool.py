"""Grades several programs on one problem, one judge process to a core, and tells of each test as it ends.

What a server needs and a command does not (a queue, restarts, an event loop) is `service.engines.local`'s. Knows
nothing of how results are shown.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path

from sandbox.config import SandboxConfig
from sandbox.errors import Cancelled, CheckerRefused, HostError
from sandbox.judge import Judge
from sandbox.problem import TestResult
from service import contract
from service.descriptors import raise_descriptor_limit
from service.engines.base import Job
from service.grading import Grading, LimitsRefused
from service.results import fault
from service.stores.loaded import LoadedProblems
from service.stores.problems import ProblemStore


@dataclass(frozen=True, slots=True)
class TestDone:
    """A test of one program has ended; `position` is the program's place among the requests."""

    position: int


@dataclass(frozen=True, slots=True)
class Result:
    """A program is graded."""

    position: int
    json: bytes
    """Its GradeResult."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing can be graded as asked: the problem, the limits or the host are at fault."""

    reason: str
    host: bool


Event = TestDone | Result | Refused


@contextlib.contextmanager
def judging(
    problem: contract.Problem,
    requests: Sequence[contract.GradeRequest],
    config: SandboxConfig,
    *,
    cores: Sequence[int],
    graders: Mapping[str, contract.GraderInfo],
) -> Iterator[Iterator[Event]]:
    """Grade `requests`, whose `problem` is the id of `problem` and whose `language` is an id of the registry.

    Yields what happens, as it happens. Leaving early cancels what still runs; afterwards no judge, cell or file is
    left. Enter it before any thread is started: it forks.
    """
    with tempfile.TemporaryDirectory(prefix="rkgrade-") as directory:
        store = ProblemStore(Path(directory))
        store.put(contract.canonical_chunks(problem))
        # Judges watch the reading end: it becomes readable when we write to it, and when we die.
        cancelled, cancel = os.pipe()
        workers: dict[Connection, ForkProcess] = {}
        try:
            for slot, core in enumerate(cores[: len(requests)]):
                judging = _Judging(slot, core, config, store, graders, requests, cancelled, cancel)
                ours, theirs = multiprocessing.Pipe()
                process = ForkProcess(target=judging.run, args=(theirs,))
                process.start()
                theirs.close()
                workers[ours] = process
            yield _distribute(requests, workers, store, graders)
        finally:
            os.write(cancel, b"x")
            for connection, process in workers.items():
                connection.close()
                process.join()
            os.close(cancelled)
            os.close(cancel)


def _distribute(
    requests: Sequence[contract.GradeRequest],
    workers: Mapping[Connection, ForkProcess],
    store: ProblemStore,
    graders: Mapping[str, contract.GraderInfo],
) -> Iterator[Event]:
    waiting = deque(range(len(requests)))
    at_work = {connection: waiting.popleft() for connection in workers}
    for connection, position in at_work.items():
        connection.send(position)
    while at_work:
        for connection in [one for one in wait(list(at_work)) if isinstance(one, Connection)]:
            try:
                event: Event = connection.recv()
            except EOFError:
                lost = at_work.pop(connection)
                yield _lost(lost, requests[lost], store, graders)
                continue
            yield event
            if isinstance(event, Result):
                del at_work[connection]
                if waiting:
                    at_work[connection] = waiting.popleft()
                    connection.send(at_work[connection])
    for position in waiting:
        yield _lost(position, requests[position], store, graders)


def _lost(
    position: int,
    request: contract.GradeRequest,
    store: ProblemStore,
    graders: Mapping[str, contract.GraderInfo],
) -> Result:
    job = Job(request, time.monotonic(), position)
    message = "the judge died over this grade"
    return Result(position, fault(job, store, grader=graders[request.language], message=message).result)


@dataclass(frozen=True, slots=True)
class _Judging:
    """All that one judge process needs, handed over by forking."""

    slot: int
    core: int
    config: SandboxConfig
    store: ProblemStore
    graders: Mapping[str, contract.GraderInfo]
    requests: Sequence[contract.GradeRequest]
    cancelled: int
    cancel: int

    def run(self, connection: Connection) -> None:
        """Grade the positions that come in until told to stop, or until the parent is gone."""
        os.close(self.cancel)
        # Ctrl-C in a terminal reaches the whole group; the parent then cancels in order.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Each test holds a descriptor.
        raise_descriptor_limit()
        os.sched_setaffinity(0, {self.core})
        try:
            judge = Judge(self.config, self.slot, self.core)
        except HostError as error:
            connection.send(Refused(str(error), host=True))
            return
        try:
            problems = LoadedProblems(self.store, limit_bytes=0, limit_tests=0)
            grading = Grading(judge, problems, graders=self.graders)
            while connection in wait([connection, self.cancelled]):
                connection.send(self._grade(grading, connection, connection.recv()))
        except (Cancelled, EOFError, BrokenPipeError):
            return
        finally:
            judge.close()

    def _grade(self, grading: Grading, connection: Connection, position: int) -> Event:
        def on_test(_: TestResult) -> None:
            connection.send(TestDone(position))

        job = Job(self.requests[position], time.monotonic(), position)
        try:
            graded = grading.grade(job, queue_s=0.0, cancel_fd=self.cancelled, on_test=on_test)
        except CheckerRefused as error:
            return Refused(f"{error.field}: {error}", host=False)
        except HostError as error:
            return Refused(str(error), host=True)
        except LimitsRefused as error:
            return Refused(str(error), host=False)
        return Result(position, graded.result)
