"""The seam between the routes and whatever runs grades: in this process's own workers, or on other machines.

Knows nothing of HTTP and nothing of how programs are run.
"""

from __future__ import annotations

import enum
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from service.contract import GradeRequest, RunRequest
from service.errors import ServiceError

if TYPE_CHECKING:
    from service.sessions.base import Sessions


class Priority(enum.StrEnum):
    """What is taken first, where several wait."""

    GRADE = "grade"
    """Somebody waits for this one."""
    BATCH = "batch"
    """Part of more, or admitted before: it can wait for its turn."""
    ASYNC = "async"
    """Nobody waits: its result will be asked for."""


def new_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class _Queued:
    """What queues know of all that waits in them."""

    accepted_s: float = field(default_factory=time.monotonic)
    """When it could have been begun, on this machine's monotonic clock; what follows until a worker takes it is
    `queue_s`."""
    id: str = field(default_factory=new_id)
    client: str = ""
    """Who asks: what shares of the workers are counted by."""
    memory_bytes: int = 0
    """What its program may use at most; 0 where no program is run."""
    deadline_s: float | None = None
    """How long from `accepted_s` on somebody waits for it; None for as long as it takes."""
    keep_s: int = 0
    """How long its answer may be asked for again; 0 for one that its caller alone waits for."""
    fingerprint: str = ""
    """Of one that may be asked for again: what is asked."""

    @property
    def time_left_s(self) -> float | None:
        """Until its deadline; None where it has none."""
        return None if self.deadline_s is None else self.accepted_s + self.deadline_s - time.monotonic()


@dataclass(frozen=True, slots=True)
class Job(_Queued):
    """One request on its way. Its problem lies in the store already, so that a queue holds little."""

    request: GradeRequest
    """As it came, but `problem` is always an id and `language` always an id of the registry."""
    arrived_s: float
    """On this machine's monotonic clock."""
    index: int | None = None
    """Position in its batch."""

    @property
    def request_bytes(self) -> int:
        """Of memory, that its program takes while it waits."""
        return sys.getsizeof(self.request.source) + sys.getsizeof(self.request.completion)

    @property
    def problem_id(self) -> str:
        assert isinstance(self.request.problem, str)
        return self.request.problem


@dataclass(frozen=True, slots=True)
class Vetting(_Queued):
    """A problem whose own programs (checker, interactor) are to be compiled before anything is graded on it."""

    problem: bytes
    """Its JSON; what tests it has does not matter."""

    @property
    def request_bytes(self) -> int:
        return len(self.problem)


@dataclass(frozen=True, slots=True)
class ToolCall(_Queued):
    """A program to be run once, for whoever waits for what it says."""

    request: RunRequest
    """As it came, but `language` always an id of the registry."""
    arrived_s: float

    @property
    def request_bytes(self) -> int:
        """Of memory, that it takes while it waits."""
        files = self.request.files.values()
        texts = (self.request.source, self.request.stdin, *(one.text or one.base64 for one in files))
        return sum(map(sys.getsizeof, texts))


Work = Job | Vetting | ToolCall
"""All that engines hand to workers."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What metrics need of a finished grade, or run, so that nobody parses its result again."""

    language: str
    verdict: str
    """Of a run: its status."""
    category: str | None
    tests: dict[str, int]
    """Number of tests by verdict."""
    compile_cache: str | None
    """Where the compiled program was found: "hit" (on this host), "shared" (in the store that hosts share), "miss".
    None where nothing was compiled, or asked for."""
    provoked: int
    """Number of tests whose checker failed on what this program gave it, and on nothing else."""
    reruns: int
    queue_s: float
    compile_s: float
    run_s: float
    cells_started: int
    cpu_s: float = 0.0
    """CPU seconds of the program, over all tests."""
    wall_s: float = 0.0
    """Wall seconds of the program, over all tests; waiting for a core included."""
    problem_cached: bool | None = None
    """Whether the worker had the problem loaded; None where no worker looked."""
    verdict_cached: bool | None = None
    """Whether an earlier grade's result was the answer, and nothing was run; None where nobody looked for one."""
    cache_faults: dict[str, str] = field(default_factory=dict)
    """By cache ("verdicts", "programs"): what it failed of; such a one is done without for a while."""
    oom_kills: int = 0
    """Processes killed at the program's own memory limit."""
    host_oom_kills: int = 0
    """Processes killed below it: the host was out of memory."""
    fault: str = ""
    """What the grader failed of, where it did."""
    sandbox_faults: dict[str, int] = field(default_factory=dict)
    """Faults of the grader by cause, those that a second attempt mended included."""

    def faults_in_a_row(self, before: int) -> int:
        """Grades that came to internal_error, one after the other: so many `before`, and now this one.

        One for which nothing was run says nothing of whether anything can be.
        """
        if self.verdict == "internal_error":
            return before + 1
        return before if self.verdict_cached or self.verdict == "format_error" else 0


@dataclass(frozen=True, slots=True)
class Graded:
    """A finished grade: the JSON of its GradeResult, made where it was graded and passed on as it is."""

    result: bytes
    summary: Summary


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished run: the JSON of its RunResult, made where it ran."""

    result: bytes
    summary: Summary


@dataclass(frozen=True, slots=True)
class LanguageInfo:
    id: str
    name: str
    version: str
    aliases: tuple[str, ...]
    suffix: str
    self_test: str
    """A program that reads two integers and prints their sum."""


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """What readiness depends on."""

    workers_alive: int
    draining: bool
    faults_in_a_row: int
    """Grades that came to internal_error since one was run that did not."""
    queue_reached: bool = True
    """Where it is elsewhere."""


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a job is that nobody waits for."""

    status: Literal["waiting", "running", "done", "failed"]
    result: bytes | None = None
    """JSON of its GradeResult, where it is done."""
    error: ServiceError | None = None
    """Where it failed."""


class Engine(Protocol):
    """Runs grades, from `start` to `close`.

    Cancelling the task that awaits `grade` cancels the work, queued or running, unless its answer may be asked
    for again.
    """

    @property
    def languages(self) -> tuple[LanguageInfo, ...]:
        """What can be graded here."""
        ...

    @property
    def batch_window(self) -> int:
        """How many grades of one batch should be under way at once: enough to keep every worker fed."""
        ...

    @property
    def sessions(self) -> Sessions | None:
        """Those that clients may open; None where there are none to be had."""
        ...

    def status(self) -> EngineStatus: ...

    def admission(self, request_bytes: int) -> AbstractContextManager[None]:
        """A place for work of many grades, whose requests take so much memory; draining waits until it is left.

        Raises QueueFull where the queue is full or requests take as much memory as they may, and Unavailable while
        draining.
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

    async def submit(self, job: Job, ended: Callable[[Summary], None]) -> None:
        """Take a job on that has a `keep_s`; again under the same id does nothing. `ended`: told what it came to, as
        far as it is heard of here.

        Raises QueueFull, Unavailable, and KeyReused where its id stands for another request.
        """
        ...

    async def state(self, identifier: str, *, client: str) -> JobState | None:
        """How far a job with a `keep_s` is; None where none of that id is known (any more), or where it is not that
        client's. `client`: empty where ids alone tell whose they are. Raises Unavailable.
        """
        ...

    async def forget(self, identifier: str, *, client: str) -> bool:
        """Stop such a job, and keep nothing of it; whether there was one. Raises Unavailable."""
        ...

    async def secret(self) -> bytes:
        """What makes ids of jobs that nobody can guess: the same wherever the same jobs are known. Raises Unavailable
        where it cannot be had.
        """
        ...

    async def vet(self, vetting: Vetting) -> None:
        """Wait for a worker to compile what programs the problem has of its own.

        Raises InvalidRequest naming the field where one is of no use; QueueFull, Unavailable as `grade` does, and
        InternalError.
        """
        ...

    async def run(self, call: ToolCall, *, admitted: bool = False) -> Ran:
        """Wait for a worker to run a program once. Raises as `grade` does; a fault of the grader is a result, too."""
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
