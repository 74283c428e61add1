"""The engine whose workers are elsewhere: jobs go into queues on Redis, any number of `rkgrade worker`s take them.

Theory of operation. A grade becomes a record in Redis, and its caller waits on a future here. Whoever finishes a job
adds its id to one stream, which every API reads as it grows; answers lie under keys of their own for a while. Nobody
asks again and again whether one is there.

    client gone        the job is dropped from its queue; where it runs, its host stops it at its next beat
    worker, host gone  see `service.engines.rq.host`: the job is run again, and set aside at the third time
    this API gone      what may be asked for again (jobs, grades with an Idempotency-Key) is done all the same, and got
                       by whoever asks; the rest is dropped, once nothing was heard of this API for long
    Redis gone         nothing new is taken (503); who waits goes on waiting, and is answered once Redis is back. What
                       Redis has forgotten, since it was restarted without its latest writes, is put in line again
    Redis full         nothing new is taken (503); what is in line is worked off, which makes room
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

import structlog
from redis.exceptions import RedisError

from service.contract import GraderInfo
from service.engines.admission import Admission
from service.engines.answers import Answer, Cancelled, Died, from_frame
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
from service.engines.pace import retry_after_s
from service.engines.pending import outcome, shut_down
from service.engines.rq.broker import ABANDONED, CANCELLED, Broker, Ended, State
from service.engines.rq.following import FollowedJobs
from service.engines.rq.offers import Offer, common
from service.engines.rq.reaching import Reach, check_line, enqueue, reachable, said, unending
from service.engines.rq.records import Record, record
from service.engines.rq.sessions import ClusterSessions
from service.errors import DeadlinePassed, JobDeleted, ServiceError, Unavailable
from service.metrics import Metrics
from service.results import VERSION, fault
from service.stores.problems import ProblemStore
from service.tool_calls import failed

#: How long who waits already goes on while Redis is gone: less than an API may be silent (`lua/prelude.lua`).
_PATIENCE_S = 120.0

#: How often the cluster is looked at, and those who wait are compared with what Redis knows.
_LOOK_S = 1.0

_UNKNOWN = GraderInfo(version=VERSION, sandbox="unknown", language_version="unknown", secure=False)

_log = structlog.get_logger()


@dataclass(eq=False, slots=True)
class _Waiter:
    record: Record
    future: asyncio.Future[Ended]
    since_s: float
    request_bytes: int
    """That count: of a batch its place does."""
    users: int = 0


class RQEngine:
    """See `service.engines.base.Engine`."""

    def __init__(
        self, broker: Broker, *, store: ProblemStore, metrics: Metrics, queue_size: int, sessions: bool
    ) -> None:
        """`sessions`: whether clients may have any."""
        self._broker = broker
        self._name = uuid.uuid4().hex
        self._store = store
        self._metrics = metrics
        self._queue_size = queue_size
        self._state = State()
        self._reach = Reach(broker.shown)
        self._offers: tuple[Offer, ...] = ()
        self._languages: tuple[LanguageInfo, ...] = ()
        self._graders: Mapping[str, GraderInfo] = {}
        self._waiting: dict[str, _Waiter] = {}
        self._waiting_bytes = 0
        self._followed = FollowedJobs()
        self._spent: list[str] = []
        self._secret: bytes | None = None
        self._faults_in_a_row = 0
        self._watching: list[asyncio.Task[None]] = []
        self._dropping: set[asyncio.Task[None]] = set()
        self.sessions = ClusterSessions(broker.post, api=self._name) if sessions else None
        self._admission = Admission(
            queue_size,
            waiting=lambda: self._state.unadmitted,
            waiting_bytes=lambda: self._waiting_bytes,
            workers=lambda: self.status().workers_alive,
            retry_after_s=lambda: retry_after_s(self._state.waiting, self._state.workers, self._state.mean_busy_s),
        )
        self._closed = False
        metrics.watch(
            queue_length=lambda: self._state.waiting,
            queue_age_s=lambda: self._state.oldest_s,
            # What was seen before Redis went says nothing of now.
            workers_alive=lambda: self.status().workers_alive,
            workers_busy=lambda: self._state.running if self._reach.reached else 0,
        )

    @property
    def languages(self) -> tuple[LanguageInfo, ...]:
        return self._languages

    @property
    def batch_window(self) -> int:
        return 2 * max(1, self._state.workers)

    def status(self) -> EngineStatus:
        reached = self._reach.reached
        workers = self._state.workers if reached else 0
        return EngineStatus(workers, self._admission.draining, self._faults_in_a_row, queue_reached=reached)

    async def start(self) -> None:
        """Look at the cluster once, so that languages are known where a host is up already."""
        with contextlib.suppress(RedisError):
            await self._look()
        self._watching = [asyncio.create_task(unending(work)) for work in (self._listen, self._keep_looking)]
        if self.sessions is not None:
            self.sessions.start()

    def admission(self, request_bytes: int) -> AbstractContextManager[None]:
        check_line(self._state)
        return self._admission.place(request_bytes)

    async def grade(self, job: Job, *, admitted: bool = False) -> Graded:
        graded = await self._do(job, admitted=admitted)
        assert isinstance(graded, Graded)
        return graded

    async def run(self, call: ToolCall, *, admitted: bool = False) -> Ran:
        ran = await self._do(call, admitted=admitted)
        assert isinstance(ran, Ran)
        return ran

    async def submit(self, job: Job, ended: Callable[[Summary], None]) -> None:
        self._admission.refuse_while_draining()
        # Before it is queued: it may have ended by the time that this is known to be done.
        follows, known = self._followed.add(job, ended), True
        try:
            known = await self._enqueue(self._record(job, Priority.ASYNC), most_waiting=self._queue_size)
        finally:
            if follows and known:
                self._followed.take(job.id)

    async def state(self, identifier: str, *, client: str) -> JobState | None:
        with reachable():
            status = await self._broker.wanted_status(identifier, client=client)
            [ended] = await self._broker.outcomes([identifier])
        if status is None:
            return None
        if ended is None:
            return JobState("waiting" if status == "queued" else "running")
        try:
            graded = outcome(_answer(ended))
        except ServiceError as error:
            return JobState("failed", error=error)
        return JobState("done", result=graded.result) if isinstance(graded, Graded) else None

    async def forget(self, identifier: str, *, client: str) -> bool:
        with reachable():
            if await self._broker.wanted_status(identifier, client=client) is None:
                return False
            # Of what is under way it stays known that it was deleted: a grade may wait under the same key.
            if await self._broker.cancel(identifier) not in ("queued", "started"):
                await self._broker.forget(identifier)
        return True

    async def secret(self) -> bytes:
        # Asked for each time: a Redis that came back empty is given the one that was in use until then.
        try:
            self._secret = await self._broker.secret(self._secret or secrets.token_bytes())
        except RedisError:
            if self._secret is None:
                raise Unavailable("the queue cannot be reached", retry_after_s=5) from None
        return self._secret

    async def vet(self, vetting: Vetting) -> None:
        await self._do(vetting, admitted=False)

    def fault(self, job: Job, message: str) -> Graded:
        return fault(job, self._store, grader=self._graders.get(job.request.language, _UNKNOWN), message=message)

    async def drain(self, timeout_s: float) -> bool:
        until_s = time.monotonic() + timeout_s
        quiet = await self._admission.drain(timeout_s)
        if self.sessions is not None:
            quiet = await self.sessions.drain(until_s - time.monotonic()) and quiet
        return quiet

    async def close(self) -> None:
        self._admission.draining = self._closed = True
        for waiter in self._waiting.values():
            _fail(waiter, shut_down())
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        if self.sessions is not None:
            await self.sessions.close()
        # Those who waited take back what they had queued.
        while self._waiting or self._dropping:
            await asyncio.wait(self._dropping) if self._dropping else await asyncio.sleep(0)
        await self._broker.close()

    # -- one job

    async def _do(self, work: Work, *, admitted: bool) -> Graded | Ran | None:
        if not admitted:
            self._admission.refuse_while_draining()
            self._admission.check_room(work.request_bytes)
        elif self._closed:
            raise shut_down()
        entry = self._record(work, Priority.BATCH if admitted else Priority.GRADE)
        waiter = self._waiting.get(entry.id)
        if waiter is None:
            request_bytes = 0 if admitted else work.request_bytes
            waiter = _Waiter(entry, asyncio.get_running_loop().create_future(), time.monotonic(), request_bytes)
            self._waiting[entry.id] = waiter
            self._waiting_bytes += request_bytes
        waiter.users += 1
        try:
            with self._admission.opened():
                if await self._enqueue(entry, most_waiting=None if admitted else self._queue_size):
                    with reachable():
                        await self._collect([entry.id])
                async with asyncio.timeout(work.time_left_s):
                    # Several may wait for one that can be asked for again.
                    ended = await asyncio.shield(waiter.future)
                if ended.answer is not None and not work.keep_s:
                    # What has none was set aside, for people to look at.
                    self._spent.append(entry.id)
                return await self._outcome(work, ended)
        except (asyncio.CancelledError, TimeoutError, Unavailable) as error:
            if not isinstance(error, Unavailable):
                self._metrics.cancelled()
            if not work.keep_s:
                dropping = asyncio.create_task(self._drop(entry.id))
                self._dropping.add(dropping)
                dropping.add_done_callback(self._dropping.discard)
            if isinstance(error, TimeoutError):
                raise DeadlinePassed() from None
            raise
        finally:
            waiter.users -= 1
            if waiter.users == 0 and self._waiting.get(entry.id) is waiter:
                del self._waiting[entry.id]
                self._waiting_bytes -= waiter.request_bytes
                waiter.future.cancel()

    def _record(self, work: Work, priority: Priority) -> Record:
        arrived_s = work.accepted_s if isinstance(work, Vetting) else work.arrived_s
        return record(work, priority, age_s=time.monotonic() - arrived_s, api=self._name)

    async def _drop(self, id: str) -> None:
        """Nobody waits for it any more."""
        try:
            await self._broker.cancel(id)
        except RedisError as error:
            _log.warning("a job that nobody waits for may still be run", job=id, error=said(error))

    async def _outcome(self, work: Work, ended: Ended) -> Graded | Ran | None:
        """Raises the ServiceError that it stands for."""
        answer = _answer(ended)
        if isinstance(answer, Died) and isinstance(work, Job):
            answer = await asyncio.to_thread(self.fault, work, answer.detail)
        elif isinstance(answer, Died) and isinstance(work, ToolCall):
            answer = failed(work, answer.detail, grader=self._graders.get(work.request.language, _UNKNOWN))
        if isinstance(answer, (Graded, Ran)):
            count = self._metrics.graded if isinstance(answer, Graded) else self._metrics.ran
            count(answer.summary)
            self._faults_in_a_row = answer.summary.faults_in_a_row(self._faults_in_a_row)
        return outcome(answer)

    async def _enqueue(self, entry: Record, *, most_waiting: int | None) -> bool:
        """Whether it was known before. Raises QueueFull, Unavailable, KeyReused."""
        return await enqueue(self._broker, entry, most_waiting=most_waiting)

    # -- what comes back

    async def _listen(self) -> None:
        """Hear of every job that ends."""
        place: str | None = None
        while True:
            try:
                if place is None:
                    place = await self._broker.newest()
                place, ids = await self._broker.ended_since(place, 1.0)
                await self._collect([id for id in ids if id in self._waiting])
                await self._tell([id for id in ids if id in self._followed])
            except RedisError as error:
                self._lost(error)
                await asyncio.sleep(0.2)

    async def _collect(self, ids: list[str]) -> None:
        """Hand over what these came to, where they have ended. Raises RedisError."""
        if not ids:
            return
        spent, self._spent = self._spent, []
        for id, ended in zip(ids, await self._broker.outcomes(ids, spent), strict=True):
            waiter = self._waiting.get(id)
            if ended is None or waiter is None or waiter.future.done():
                continue
            if ended.why == ABANDONED:
                # This API said nothing for long, and yet it lives and has somebody who waits.
                await self._broker.enqueue(waiter.record, most_waiting=None)
            else:
                waiter.future.set_result(ended)

    async def _tell(self, ids: list[str]) -> None:
        """Count jobs that have ended, and tell of them. Raises RedisError."""
        if not ids:
            return
        for id, ended in zip(ids, await self._broker.outcomes(ids), strict=True):
            followed = self._followed.take(id)
            if followed is None or ended is None:
                continue
            # A job that came to no result is told to whoever asks for it.
            with contextlib.suppress(ServiceError):
                graded = await self._outcome(followed.job, ended)
                assert graded is not None
                followed.ended(graded.summary)

    # -- the cluster

    async def _keep_looking(self) -> None:
        while True:
            try:
                await self._look()
                await self._compare()
                if self._reach.settled():
                    for id in await self._broker.sweep():
                        _log.warning("a job's host was lost; it is in line again, or set aside", job=id)
            except RedisError as error:
                self._lost(error)
            await asyncio.sleep(_LOOK_S)

    async def _look(self) -> None:
        self._state = await self._broker.state(self._name)
        self._reach.found()
        if self._state.offers and self._state.offers != self._offers:
            self._offers = self._state.offers
            self._languages = common(self._offers)
            self._metrics.offer(language.id for language in self._languages)
            self._graders = {name: info for offer in self._state.offers for name, info in offer.graders.items()}

    async def _compare(self) -> None:
        """Those who wait with what Redis knows: it may have been restarted without its latest writes."""
        old = [w for w in self._waiting.values() if time.monotonic() - w.since_s > 2 * _LOOK_S and not w.future.done()]
        statuses = await self._broker.statuses([waiter.record.id for waiter in old]) if old else []
        for waiter, status in zip(old, statuses, strict=True):
            if status is None and waiter.record.id in self._waiting:
                _log.warning("Redis has forgotten a job; it is put in line again", job=waiter.record.id)
                await self._broker.enqueue(waiter.record, most_waiting=None)
        done = {"finished", "failed", "canceled"}
        await self._collect([w.record.id for w, status in zip(old, statuses, strict=True) if status in done])

    def _lost(self, error: RedisError) -> None:
        if self._reach.lost(error) > _PATIENCE_S:
            for waiter in self._waiting.values():
                _fail(waiter, Unavailable("the queue cannot be reached", retry_after_s=30))


def _answer(ended: Ended) -> Answer:
    if ended.answer is not None:
        return from_frame(ended.answer)
    if ended.status == "failed":
        return Died("the grader's workers died over this, as often as it was tried")
    if ended.why == "deadline":
        raise DeadlinePassed()
    if ended.why == CANCELLED:
        raise JobDeleted()
    return Cancelled()


def _fail(waiter: _Waiter, error: ServiceError) -> None:
    if not waiter.future.done():
        waiter.future.set_exception(error)
