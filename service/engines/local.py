"""The engine that needs no other process than its own: one worker process per core beside the API, and one
queue.

Theory of operation. `grade` puts a job into the queue and waits on its future. Each worker has one task
here that owns its process from start to end: start it, hand it one job at a time, read back one answer
each, and start it anew where it died. No job is timed out here: limits are the judge's, and an answer always comes, or
the socket closes. But a worker at work says every second that it lives, and one that says nothing for long is killed.

    client gone        the future is cancelled; a queued job is dropped, a running one is told to the worker, whose
                       judge sees its socket become readable and stops
    worker dead        its job goes to the front of the queue once; at the second death it is an internal_error
    worker stopped     the same: it is killed, and so it is dead
    parts of the data  an internal_error has them looked for; where any is gone, they are made again, all workers
    directory gone     start anew, and the grade is repeated
    API dead           every worker's socket closes, and they end by themselves
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from sandbox.errors import HostError
from sandbox.verdicts import Verdict
from service.contract import GraderInfo
from service.engines.base import EngineStatus, Graded, Job, LanguageInfo, Summary, Vetting
from service.engines.frames import Frame, read_frame
from service.errors import (
    InternalError,
    InvalidRequest,
    NotFound,
    QueueFull,
    ServiceError,
    StoredProblemCorrupt,
    Unavailable,
)
from service.metrics import Metrics
from service.results import fault
from service.stores.problems import ProblemStore

#: Times a job is given to a worker before a worker's death counts as the job's own fault.
_MOST_ATTEMPTS = 2

_INTERNAL_ERROR = Verdict.INTERNAL_ERROR.value

_FIRST_BACKOFF_S = 0.1
_LONGEST_BACKOFF_S = 10.0

#: How long a worker at work may say nothing, which it does every second.
SILENCE_S = 60.0

#: What a worker gets to close its cells in, once its socket is shut.
_FAREWELL_S = 5.0

_log = structlog.get_logger()


@dataclass(eq=False, slots=True)
class _Pending:
    """Work whose caller waits."""

    number: int
    work: Job | Vetting
    admitted: bool
    future: asyncio.Future[Any]
    """A Graded, or None for a vetting."""
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """All a worker is told at its start."""

    slot: int
    core: int
    data_dir: str
    insecure_no_cgroup: bool
    compile_cache_bytes: int
    testlib: str
    checker_cpu_s: float
    languages: list[str] | None
    """Ids of those offered; None for all."""
    time_factors: dict[str, float]
    problem_cache_bytes: int
    graders: dict[str, dict[str, Any]]
    """By language id: what results say of the grader, as the fields of a GraderInfo."""


class _Worker:
    """One worker's process, as its task in the engine sees it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        silence_s: float,
    ) -> None:
        self._process = process
        # While it starts there is no heart yet to beat.
        self._silence_s = SILENCE_S
        self._silence_at_work_s = silence_s
        self.retired = False
        self._reader = reader
        self._writer = writer
        self.death = asyncio.create_task(process.wait())

    @classmethod
    async def start(cls, command: Sequence[str], setup: WorkerSetup, silence_s: float) -> _Worker | None:
        """A worker that has said it is ready, or None where it died before."""
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours, limit=2**20)
        with theirs:
            # A session of its own: Ctrl-C in a terminal is for the API alone, which then ends its workers
            # in order.
            process = await asyncio.create_subprocess_exec(
                *command,
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        worker = cls(process, reader, writer, silence_s)
        ready = None
        try:
            await worker.send(Frame("setup", {name: getattr(setup, name) for name in setup.__slots__}))
            ready = await worker.answer()
        finally:
            if ready is None:
                await worker.end()
        worker._silence_s = worker._silence_at_work_s
        return None if ready is None else worker

    async def send(self, frame: Frame) -> None:
        # A dead worker is noticed by whoever reads its answer.
        with contextlib.suppress(ConnectionError):
            self._writer.write(frame.encode())
            await self._writer.drain()

    def cancel(self, number: int) -> None:
        self._writer.write(Frame("cancel", {"job": number}).encode())

    async def answer(self) -> Frame | None:
        """What it came to; None where the worker died, or was killed for its silence."""
        while (frame := await self._frame()) is not None and frame.kind == "alive":
            pass
        return frame

    async def _frame(self) -> Frame | None:
        reading = asyncio.ensure_future(read_frame(self._reader))
        try:
            # Twice half the time: where this process was itself stopped for long, what has come meanwhile is read.
            for _ in range(2):
                if (await asyncio.wait({reading}, timeout=self._silence_s / 2))[0]:
                    return reading.result()
        finally:
            reading.cancel()
        _log.error("a worker fell silent and is killed", pid=self._process.pid, silence_s=self._silence_s)
        self.kill()
        return None

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def retire(self) -> None:
        """Have it end, whatever it is doing; that is no fault of its job's."""
        self.retired = True
        self._writer.close()

    async def end(self) -> None:
        """Close its socket, which it takes as the order to end; kill it where it does not."""
        self._writer.close()
        await asyncio.wait({self.death}, timeout=_FAREWELL_S)
        if not self.death.done():
            self.kill()
            await self.death
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


class LocalEngine:
    """See `service.engines.base.Engine`.

    `start` first, `close` last; `drain` before `close` to lose no work.
    """

    def __init__(
        self,
        *,
        setups: Sequence[WorkerSetup],
        languages: tuple[LanguageInfo, ...],
        queue_size: int,
        sandbox: str,
        secure: bool,
        graders: Mapping[str, GraderInfo],
        store: ProblemStore,
        sweep: Callable[[], object],
        recreate: Callable[[], bool],
        metrics: Metrics,
        silence_s: float = SILENCE_S,
        command: Sequence[str] = (sys.executable, "-m", "service.engines.worker"),
    ) -> None:
        """An engine that is ready to be started.

        `graders`: by language id, what results say of it. `sweep` clears what a killed worker left in the
        kernel, and blocks; so does `recreate`, which makes again what the data directory has lost, and says whether
        there was any. `metrics`: what this engine counts in. `silence_s`: how long a worker at work may say nothing.
        """
        self._setups = tuple(setups)
        self._languages = languages
        self._queue_size = queue_size
        self._metrics = metrics
        self.sandbox = sandbox
        self.secure = secure
        self._graders = graders
        self._store = store
        self._sweep = sweep
        self._recreate = recreate
        self._recreating = asyncio.Lock()
        self._recreated_s = -math.inf
        self._faults_in_a_row = 0
        self._silence_s = silence_s
        self._command = tuple(command)
        self._numbers = itertools.count()
        self._queue: deque[_Pending] = deque()
        self._idle: deque[asyncio.Future[_Pending]] = deque()
        self._open = 0
        self._quiet = asyncio.Event()
        self._running: dict[int, _Worker] = {}
        self._alive: set[_Worker] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._draining = False
        self._closed = False
        self._admissions = 0
        self._mean_busy_s = 1.0
        metrics.watch(
            queue_length=lambda: len(self._queue),
            queue_age_s=lambda: time.monotonic() - self._queue[0].work.accepted_s if self._queue else 0.0,
            workers_alive=lambda: len(self._alive),
            workers_busy=lambda: len(self._running),
        )

    @property
    def languages(self) -> tuple[LanguageInfo, ...]:
        return self._languages

    @property
    def batch_window(self) -> int:
        return 2 * len(self._setups)

    def status(self) -> EngineStatus:
        return EngineStatus(
            workers_alive=len(self._alive), draining=self._draining, faults_in_a_row=self._faults_in_a_row
        )

    async def start(self) -> None:
        """Start the workers; they become ready one by one."""
        self._tasks = [asyncio.create_task(self._employ(setup)) for setup in self._setups]

    @contextlib.contextmanager
    def admission(self) -> Iterator[None]:
        self._admit(sum(not pending.admitted for pending in self._queue) + self._admissions)
        self._admissions += 1
        try:
            with self._opened():
                yield
        finally:
            self._admissions -= 1

    async def grade(self, job: Job, *, admitted: bool = False) -> Graded:
        graded: Graded = await self._do(job, admitted=admitted)
        return graded

    async def vet(self, vetting: Vetting) -> None:
        await self._do(vetting, admitted=False)

    async def _do(self, work: Job | Vetting, *, admitted: bool) -> Any:
        if not admitted:
            self._admit(sum(not pending.admitted for pending in self._queue))
        elif self._closed:
            raise _shut_down()
        pending = _Pending(next(self._numbers), work, admitted, asyncio.get_running_loop().create_future())
        if not self._hand_over(pending):
            self._queue.append(pending)
        with self._opened():
            try:
                return await pending.future
            except asyncio.CancelledError:
                self._metrics.cancelled()
                self._abandon(pending)
                raise

    async def drain(self, timeout_s: float) -> bool:
        """Take no new work and wait for what there is; False where the time did not suffice."""
        self._draining = True
        if self._open == 0:
            return True
        self._quiet.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Refuse what still waits, cancel what still runs, end every worker. Again: does nothing."""
        self._draining = self._closed = True
        while self._queue:
            self._fail(self._queue.popleft(), _shut_down())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def fault(self, job: Job, message: str) -> Graded:
        return fault(job, self._store, grader=self._graders[job.request.language], message=message)

    def _retry_after_s(self) -> int:
        """Seconds until about half the queue is done, by the time recent grades took."""
        seconds = self._mean_busy_s * len(self._queue) / (2 * max(1, len(self._alive)))
        return min(60, max(1, math.ceil(seconds)))

    def _admit(self, waiting: int) -> None:
        if self._draining:
            raise Unavailable("the service is shutting down and takes no new work")
        if waiting >= self._queue_size:
            raise QueueFull(f"{waiting} grades are waiting, as many as may", retry_after_s=self._retry_after_s())

    @contextlib.contextmanager
    def _opened(self) -> Iterator[None]:
        """Work that draining has to wait for."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if self._open == 0:
                self._quiet.set()

    def _hand_over(self, pending: _Pending) -> bool:
        """Give the job to an idle worker, past the queue, so that what an idle worker takes is never "waiting"."""
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(pending)
                return True
        return False

    def _put_first(self, pending: _Pending) -> None:
        """A job that was taken and comes back; its caller may have gone meanwhile."""
        if not pending.future.done() and not self._hand_over(pending):
            self._queue.appendleft(pending)

    def _abandon(self, pending: _Pending) -> None:
        if pending in self._queue:
            self._queue.remove(pending)
        elif (worker := self._running.get(pending.number)) is not None:
            worker.cancel(pending.number)

    @staticmethod
    def _fail(pending: _Pending, error: ServiceError) -> None:
        if not pending.future.done():
            pending.future.set_exception(error)

    async def _employ(self, setup: WorkerSetup) -> None:
        """Keep one worker at work for as long as the engine lives."""
        backoff_s = _FIRST_BACKOFF_S
        while True:
            worker = await self._started(setup)
            if worker is not None:
                self._alive.add(worker)
                try:
                    if await self._serve(worker):
                        backoff_s = _FIRST_BACKOFF_S
                finally:
                    self._alive.discard(worker)
                    await worker.end()
            if worker is None or not worker.retired:
                self._metrics.worker_died()
                _log.error("a worker died", slot=setup.slot, again_in_s=backoff_s)
            await self._swept()
            await self._mended(time.monotonic())
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _LONGEST_BACKOFF_S)

    async def _started(self, setup: WorkerSetup) -> _Worker | None:
        try:
            return await _Worker.start(self._command, setup, self._silence_s)
        except OSError as error:
            _log.error("no worker could be started", slot=setup.slot, error=str(error))
            return None

    async def _swept(self) -> None:
        try:
            await asyncio.to_thread(self._sweep)
        except HostError as error:
            _log.error("what a dead worker left could not be cleared", error=str(error))

    async def _mended(self, since_s: float) -> bool:
        """Whether parts of the data directory were gone and have been made again, then or since."""
        async with self._recreating:
            if self._recreated_s < since_s:
                try:
                    if not await asyncio.to_thread(self._recreate):
                        return False
                except (HostError, OSError) as error:
                    _log.error("what the data directory has lost could not be made again", error=str(error))
                    return False
                self._recreated_s = time.monotonic()
                _log.warning("the data directory had lost parts, which are made again; all workers start anew")
                # They hold locks that are nobody else's any more.
                for worker in self._alive:
                    worker.retire()
            return True

    async def _serve(self, worker: _Worker) -> bool:
        """Give one worker jobs until it dies; True where it finished any."""
        finished = False
        while True:
            pending = await self._take(worker)
            if pending is None:
                return finished
            if worker.retired:
                self._put_first(pending)
                return finished
            if pending.future.done():
                continue
            begun_s = time.monotonic()
            self._running[pending.number] = worker
            try:
                answer = await self._ask(worker, pending, queue_s=begun_s - pending.work.accepted_s)
                again = answer is not None and _is_fault(answer) and await self._mended(begun_s)
            except asyncio.CancelledError:
                self._fail(pending, _shut_down())
                raise
            finally:
                del self._running[pending.number]
            if answer is None and worker.retired:
                pending.attempts -= 1
                self._put_first(pending)
                return finished
            if answer is None:
                await self._bury(pending)
                return finished
            if again and pending.attempts < _MOST_ATTEMPTS:
                self._put_first(pending)
                return True
            finished = True
            self._mean_busy_s += 0.1 * (time.monotonic() - begun_s - self._mean_busy_s)
            self._resolve(pending, answer)

    async def _take(self, worker: _Worker) -> _Pending | None:
        """The next job, or None where the worker dies while there is none."""
        if self._queue:
            return self._queue.popleft()
        waiter: asyncio.Future[_Pending] = asyncio.get_running_loop().create_future()
        self._idle.append(waiter)
        try:
            either: set[asyncio.Future[Any]] = {worker.death, waiter}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if waiter.done():
                self._fail(waiter.result(), _shut_down())
            raise
        finally:
            waiter.cancel()
        if not worker.death.done():
            return waiter.result()
        if waiter.done() and not waiter.cancelled():
            self._put_first(waiter.result())
        return None

    async def _ask(self, worker: _Worker, pending: _Pending, *, queue_s: float) -> Frame | None:
        pending.attempts += 1
        work = pending.work
        if isinstance(work, Vetting):
            await worker.send(Frame("vet", {"job": pending.number}, work.problem))
        else:
            fields = {"job": pending.number, "index": work.index, "arrived_s": work.arrived_s, "queue_s": queue_s}
            await worker.send(Frame("grade", fields, work.request.model_dump_json(exclude_defaults=True).encode()))
        return await worker.answer()

    async def _bury(self, pending: _Pending) -> None:
        """A worker died over this job: once may be chance, twice is an internal_error."""
        if pending.attempts < _MOST_ATTEMPTS or pending.future.done():
            self._put_first(pending)
            return
        if isinstance(pending.work, Vetting):
            self._fail(pending, InternalError("the grader's worker died twice over this problem's own programs"))
            return
        message = "the grader's worker died twice over this grade"
        graded = await asyncio.to_thread(self.fault, pending.work, message)
        self._deliver(pending, graded)

    def _resolve(self, pending: _Pending, answer: Frame) -> None:
        match answer.kind:
            case "result":
                self._deliver(pending, Graded(answer.body, Summary(**answer.fields["summary"])))
            case "vetted":
                if not pending.future.done():
                    pending.future.set_result(None)
            case "fault":
                self._fail(pending, InternalError(answer.fields["detail"]))
            case "refused":
                self._fail(pending, _refusal(answer.fields["reason"], answer.fields["detail"]))
            case "cancelled" if pending.future.done():
                pass
            case kind:
                self._fail(pending, InternalError(f"a worker answered {kind!r} out of turn"))

    def _deliver(self, pending: _Pending, graded: Graded) -> None:
        self._metrics.graded(graded.summary)
        self._faults_in_a_row = self._faults_in_a_row + 1 if graded.summary.verdict == _INTERNAL_ERROR else 0
        if not pending.future.done():
            pending.future.set_result(graded)


def _is_fault(answer: Frame) -> bool:
    return answer.kind == "fault" or (
        answer.kind == "result" and answer.fields["summary"]["verdict"] == _INTERNAL_ERROR
    )


def _shut_down() -> Unavailable:
    return Unavailable("the service was shut down before this grade was done")


def _refusal(reason: str, detail: str) -> ServiceError:
    match reason:
        case "unknown_problem":
            return NotFound(detail)
        case "corrupt_problem":
            return StoredProblemCorrupt(detail)
    return InvalidRequest.at(reason, detail)
