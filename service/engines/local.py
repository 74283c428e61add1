"""The engine that needs no other process than its own: one worker process per core beside the API, and one
queue.

Theory of operation. `grade` puts a job into the queue and waits on its future. Each worker has one task of the
workforce that owns its process from start to end: start it, hand it one job at a time, read back one answer
each, and start it anew where it died. No job is timed out here: limits are the judge's, and an answer always comes, or
the socket closes. But a worker at work says every second that it lives, and one that says nothing for long is killed.

    client gone        the future is cancelled; a queued job is dropped, a running one is told to the worker, whose
                       judge sees its socket become readable and stops
    worker dead        its job goes to the front of the queue; at the third death it is an internal_error
    worker stopped     the same: it is killed, and so it is dead
    parts of the data  an internal_error has them looked for; where any is gone, they are made again, all workers
    directory gone     start anew, and the grade is repeated
    API dead           every worker's socket closes, and they end by themselves
"""

from __future__ import annotations

import asyncio
import itertools
import math
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import structlog

from service.contract import GraderInfo
from service.engines.admission import Admission
from service.engines.answers import Answer, Died, from_frame, is_fault
from service.engines.base import (
    EngineStatus,
    Graded,
    Job,
    JobState,
    LanguageInfo,
    Priority,
    Ran,
    Summary,
    ToolCall,
    Vetting,
    Work,
)
from service.engines.book import JobBook, Kept
from service.engines.frames import Frame
from service.engines.pace import retry_after_s
from service.engines.pending import Pending, outcome, shut_down
from service.engines.process import WorkerProcess
from service.engines.queue import Queue
from service.engines.workforce import Workforce
from service.errors import DeadlinePassed
from service.metrics import Metrics
from service.results import fault
from service.sessions.keeper import Keeper
from service.stores.problems import ProblemStore
from service.tool_calls import failed

#: Times a job is given to a worker before a worker's death counts as the job's own fault.
MOST_ATTEMPTS = 3

_log = structlog.get_logger()

#: What a worker died over, for people.
_KINDS = {Job: "this grade", Vetting: "this problem's own programs", ToolCall: "this run"}


class LocalEngine:
    """See `service.engines.base.Engine`.

    `start` first, `close` last; `drain` before `close` to lose no work.
    """

    def __init__(
        self,
        workforce: Workforce,
        *,
        languages: tuple[LanguageInfo, ...],
        queue_size: int,
        sandbox: str,
        secure: bool,
        graders: Mapping[str, GraderInfo],
        store: ProblemStore,
        metrics: Metrics,
        most_attempts: int = MOST_ATTEMPTS,
        memory_bytes: float = math.inf,
        sessions: Callable[[Callable[[int], None]], Keeper] | None = None,
    ) -> None:
        """An engine that is ready to be started.

        `graders`: by language id, what results say of it. `metrics`: what this engine counts in. `memory_bytes`: what
        programs may use together. `sessions`: makes what keeps them, given what sets memory aside for them.
        """
        self._workforce = workforce
        self._languages = languages
        self._metrics = metrics
        self.sandbox = sandbox
        self.secure = secure
        self.graders = graders
        self._most_attempts = most_attempts
        self._store = store
        self._queue = Queue(memory_bytes)
        self.sessions = None if sessions is None else sessions(self._queue.set_aside)
        self._admission = Admission(
            queue_size,
            waiting=lambda: self._queue.unadmitted,
            waiting_bytes=lambda: self._queue.unadmitted_bytes,
            workers=lambda: workforce.alive,
            retry_after_s=self._retry_after_s,
        )
        self._numbers = itertools.count()
        self._running: dict[int, WorkerProcess] = {}
        self._book = JobBook()
        self._secret = secrets.token_bytes()
        self._closed = False
        self._faults_in_a_row = 0
        metrics.watch(
            queue_length=lambda: len(self._queue),
            queue_age_s=lambda: self._queue.age_s,
            workers_alive=lambda: workforce.alive,
            workers_busy=lambda: len(self._running),
        )

    @property
    def languages(self) -> tuple[LanguageInfo, ...]:
        return self._languages

    @property
    def batch_window(self) -> int:
        return 2 * self._workforce.size

    def status(self) -> EngineStatus:
        return EngineStatus(
            workers_alive=self._workforce.alive,
            draining=self._admission.draining,
            faults_in_a_row=self._faults_in_a_row,
        )

    async def start(self) -> None:
        """Start the workers; they become ready one by one."""
        self._workforce.start(self._serve)
        if self.sessions is not None:
            self.sessions.start()

    def admission(self, request_bytes: int) -> AbstractContextManager[None]:
        return self._admission.place(request_bytes)

    async def grade(self, job: Job, *, admitted: bool = False) -> Graded:
        if not job.keep_s:
            return await self._graded(job, self._enqueue(job, admitted=admitted))
        # Who asks for it again, and whoever asks first, may come and go.
        return await self._book.join(job, lambda: self._graded(job, self._enqueue(job, admitted=admitted))).graded()

    async def submit(self, job: Job, ended: Callable[[Summary], None]) -> None:
        async def told(pending: Pending) -> Graded:
            graded = await self._graded(job, pending)
            ended(graded.summary)
            return graded

        self._book.join(job, lambda: told(self._enqueue(job, admitted=False, priority=Priority.ASYNC)))

    async def state(self, identifier: str, *, client: str) -> JobState | None:
        kept = self._kept(identifier, client)
        if kept is None:
            return None
        if kept.came_to is None:
            return JobState("waiting" if kept.id in self._queue else "running")
        if isinstance(kept.came_to, Graded):
            return JobState("done", result=kept.came_to.result)
        return JobState("failed", error=kept.came_to)

    async def forget(self, identifier: str, *, client: str) -> bool:
        if self._kept(identifier, client) is None:
            return False
        self._book.drop(identifier)
        return True

    async def secret(self) -> bytes:
        return self._secret

    async def vet(self, vetting: Vetting) -> None:
        outcome(await self._answer(self._enqueue(vetting, admitted=False)))

    async def run(self, call: ToolCall, *, admitted: bool = False) -> Ran:
        answer = await self._answer(self._enqueue(call, admitted=admitted))
        if isinstance(answer, Died):
            answer = failed(call, answer.detail, grader=self.graders[call.request.language])
            self._count(answer)
        ran = outcome(answer)
        assert isinstance(ran, Ran)
        return ran

    async def attempt(self, work: Work) -> Answer:
        """Have it done, past the queue's limit. Raises Unavailable where the engine is closed meanwhile."""
        return await self._answer(self._enqueue(work, admitted=True))

    async def drain(self, timeout_s: float) -> bool:
        until_s = time.monotonic() + timeout_s
        quiet = await self._admission.drain(timeout_s)
        if self.sessions is not None:
            quiet = await self.sessions.drain(until_s - time.monotonic()) and quiet
        return quiet

    async def close(self) -> None:
        """Refuse what still waits, cancel what still runs, end every worker. Again: does nothing."""
        self._admission.draining = self._closed = True
        self._queue.refuse_all()
        if self.sessions is not None:
            await self.sessions.close()
        await self._workforce.close()

    def fault(self, job: Job, message: str) -> Graded:
        return fault(job, self._store, grader=self.graders[job.request.language], message=message)

    def _kept(self, identifier: str, client: str) -> Kept | None:
        kept = self._book.get(identifier)
        return None if kept is None or client not in ("", kept.client) else kept

    async def _graded(self, job: Job, pending: Pending) -> Graded:
        answer = await self._answer(pending)
        if isinstance(answer, Died):
            answer = await asyncio.to_thread(self.fault, job, answer.detail)
            self._count(answer)
        graded = outcome(answer)
        assert isinstance(graded, Graded)
        return graded

    def _enqueue(self, work: Work, *, admitted: bool, priority: Priority | None = None) -> Pending:
        """Raises QueueFull, Unavailable."""
        if not admitted:
            self._admission.check(work.request_bytes, newcomer=not self._queue.holds(work.client))
        elif self._closed:
            raise shut_down()
        pending = Pending(
            next(self._numbers), work, admitted, priority or (Priority.BATCH if admitted else Priority.GRADE)
        )
        self._queue.put(pending)
        return pending

    async def _answer(self, pending: Pending) -> Answer:
        """Raises DeadlinePassed, and ServiceErrors of this engine's own."""
        with self._admission.opened():
            try:
                async with asyncio.timeout(pending.work.time_left_s):
                    return await pending.future
            except TimeoutError:
                raise DeadlinePassed() from None
            finally:
                if pending.future.cancelled():
                    self._metrics.cancelled()
                    self._abandon(pending)

    def _abandon(self, pending: Pending) -> None:
        if not self._queue.remove(pending) and (worker := self._running.get(pending.number)) is not None:
            worker.cancel(pending.number)

    def _retry_after_s(self) -> int:
        return retry_after_s(len(self._queue), self._workforce.alive, self._queue.mean_s)

    async def _serve(self, worker: WorkerProcess) -> bool:
        """Give one worker jobs until it dies; True where it finished any."""
        finished = False
        while True:
            pending = await self._queue.take(worker.death)
            if pending is None:
                return finished
            if worker.retired:
                self._queue.put_first(pending)
                return finished
            if pending.over:
                self._queue.done(pending, 0.0)
                continue
            begun_s = time.monotonic()
            self._running[pending.number] = worker
            try:
                answer = await _ask(worker, pending, queue_s=begun_s - pending.work.accepted_s)
                again = answer is not None and is_fault(answer) and await self._workforce.mended(begun_s)
            except asyncio.CancelledError:
                pending.fail(shut_down())
                raise
            finally:
                del self._running[pending.number]
            if answer is None and worker.retired:
                pending.attempts -= 1
                self._queue.put_first(pending)
                return finished
            if answer is None:
                self._bury(pending)
                return finished
            if again and not pending.mended:
                pending.mended = True
                pending.attempts -= 1
                self._queue.put_first(pending)
                return True
            finished = True
            self._queue.done(pending, time.monotonic() - begun_s)
            self._finish(pending, answer)

    def _bury(self, pending: Pending) -> None:
        """A worker died over this: that may be chance, until it has happened too often."""
        if pending.attempts < self._most_attempts or pending.over:
            self._queue.put_first(pending)
            return
        what = _KINDS[type(pending.work)]
        self._queue.done(pending, 0.0)
        times = "" if pending.attempts == 1 else f" {pending.attempts} times"
        pending.finish(Died(f"the grader's worker died{times} over {what}"))

    def _finish(self, pending: Pending, answer: Answer) -> None:
        if isinstance(answer, (Graded, Ran)):
            self._count(answer)
        pending.finish(answer)

    def _count(self, answer: Graded | Ran) -> None:
        if isinstance(answer, Graded):
            self._metrics.graded(answer.summary)
        else:
            self._metrics.ran(answer.summary)
        for cache, why in answer.summary.cache_faults.items():
            _log.warning("a cache that is shared fails, and is done without for a while", cache=cache, error=why)
        self._faults_in_a_row = answer.summary.faults_in_a_row(self._faults_in_a_row)


async def _ask(worker: WorkerProcess, pending: Pending, *, queue_s: float) -> Answer | None:
    """None where the worker died over it."""
    pending.attempts += 1
    match work := pending.work:
        case Vetting():
            await worker.send(Frame("vet", {"job": pending.number}, work.problem))
        case Job():
            fields = {"job": pending.number, "index": work.index, "arrived_s": work.arrived_s, "queue_s": queue_s}
            await worker.send(Frame("grade", fields, work.request.model_dump_json(exclude_defaults=True).encode()))
        case ToolCall():
            fields = {"job": pending.number, "arrived_s": work.arrived_s, "queue_s": queue_s}
            await worker.send(Frame("run", fields, work.request.model_dump_json(exclude_defaults=True).encode()))
    frame = await worker.answer()
    return None if frame is None else from_frame(frame)
