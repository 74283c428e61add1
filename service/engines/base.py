"""The seam between the routes and whatever runs grades: in this process's own workers, or on other machines.

Knows nothing of HTTP and nothing of how programs are run.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from service.contract import GradeRequest


@dataclass(frozen=True, slots=True)
class Job:
    """One request on its way. Its problem lies in the store already, so that a queue holds little."""

    request: GradeRequest
    """As it came, but `problem` is always an id and `language` always an id of the registry."""
    arrived_s: float
    """On this machine's monotonic clock."""
    index: int | None = None
    """Position in its batch."""
    accepted_s: float = field(default_factory=time.monotonic)
    """When it could have been graded; what follows until a worker takes it is `queue_s`."""

    @property
    def problem_id(self) -> str:
        assert isinstance(self.request.problem, str)
        return self.request.problem


@dataclass(frozen=True, slots=True)
class Vetting:
    """A problem whose own programs (checker, interactor) are to be compiled before anything is graded on it."""

    problem: bytes
    """Its JSON; what tests it has does not matter."""
    accepted_s: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Summary:
    """What metrics need of a finished grade, so that nobody parses its result again."""

    language: str
    verdict: str
    category: str | None
    tests: dict[str, int]
    """Number of tests by verdict."""
    compile_cached: bool | None
    """None where nothing was compiled."""
    reruns: int
    queue_s: float
    compile_s: float
    run_s: float
    cells_started: int


@dataclass(frozen=True, slots=True)
class Graded:
    """A finished grade: the JSON of its GradeResult, made where it was graded and passed on as it is."""

    result: bytes
    summary: Summary


@dataclass(frozen=True, slots=True)
class LanguageInfo:
    id: str
    name: str
    version: str
    aliases: tuple[str, ...]
    self_test: str
    """A program that reads two integers and prints their sum."""


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """What readiness depends on."""

    workers_alive: int
    draining: bool
    faults_in_a_row: int
    """Grades that came to internal_error since the last one that did not."""


class Engine(Protocol):
    """Runs grades, from `start` to `close`.

    Cancelling the task that awaits `grade` cancels the work, queued or running.
    """

    @property
    def languages(self) -> tuple[LanguageInfo, ...]:
        """What can be graded here."""
        ...

    @property
    def batch_window(self) -> int:
        """How many grades of one batch should be under way at once: enough to keep every worker fed."""
        ...

    def status(self) -> EngineStatus: ...

    def admission(self) -> AbstractContextManager[None]:
        """A place for work of many grades; draining waits until it is left.

        Raises QueueFull where the queue is full, Unavailable while draining.
        """
        ...

    async def grade(self, job: Job, *, admitted: bool = False) -> Graded:
        """Wait for a worker and for its result.

        Raises QueueFull where the queue is full and Unavailable while draining, unless `admitted` says that
        the caller holds an admission; then it waits, however long the queue. Raises InvalidRequest,
        NotFound and StoredProblemCorrupt where the problem turns out to be at fault. A fault of the grader
        is no exception: it is a result whose verdict is internal_error.
        """
        ...

    async def vet(self, vetting: Vetting) -> None:
        """Wait for a worker to compile what programs the problem has of its own.

        Raises InvalidRequest naming the field where one is of no use; QueueFull, Unavailable as `grade` does, and
        InternalError.
        """
        ...

    def fault(self, job: Job, message: str) -> Graded:
        """The result of a job that the grader itself failed at: internal_error, rewards null. Blocks."""
        ...

    async def start(self) -> None:
        """Start what grades; it becomes ready by and by, as `status` tells."""
        ...

    async def drain(self, timeout_s: float) -> bool:
        """Take no new work and wait for what was taken; False where the time did not suffice."""
        ...

    async def close(self) -> None:
        """Refuse what still waits, cancel what still runs, and leave nothing behind. Again: does nothing."""
        ...
