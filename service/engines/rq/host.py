"""`rkgrade worker`: takes jobs from Redis and has this host's workers do them.

Theory of operation. One process a host: it owns the workers (`service.engines.local`, one warm judge a core), and takes
a job only when one of them is free and its memory is. What it has taken is leased: it says every second that it lives,
and what it has not spoken for in ten seconds is anyone's. So a worker that dies is noticed here, at once, and a host
that dies is noticed by every other.

    worker dead        its job goes back to the front of its queue, with the cause; at the third death it is set aside
    host dead, cut     its leases lapse; whoever sweeps next (every host and every API does) puts its jobs back
    off or stopped
    cut off, and back  what somebody else has by now is stopped here; what was finished meanwhile is told, and counts
                       where it is the first answer
    Redis gone         what runs goes on, and is told once Redis is back
    SIGTERM            nothing more is taken; what runs ends, or goes back to the queue where that takes too long
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog
from redis.exceptions import RedisError

from service.engines.answers import Died, to_frame
from service.engines.local import LocalEngine
from service.engines.rq.broker import BEAT_S, Broker, Lease
from service.engines.rq.hosting import SessionHost
from service.engines.rq.reaching import Reach
from service.engines.rq.records import Taken
from service.errors import Unavailable

T = TypeVar("T")

_FIRST_BACKOFF_S = 0.1
_LONGEST_BACKOFF_S = 2.0

#: How long an answer is kept here while Redis cannot take it.
_HOLD_S = 600.0

#: How long it tries to say that it goes; it is forgotten all the same.
_LEAVE_WITHIN_S = 1.0

_log = structlog.get_logger()


@dataclass(eq=False, slots=True)
class _InHand:
    job: Taken
    lease: Lease
    task: asyncio.Task[None]
    lost: bool = False
    """Somebody else's by now, or nobody's: to be stopped without a word."""


class WorkerHost:
    """`run` until cancelled; `drain` before that to lose no work."""

    def __init__(
        self,
        engine: LocalEngine,
        broker: Broker,
        sessions: SessionHost | None,
        *,
        name: str,
        offer: str,
        memory_mb: float,
    ) -> None:
        """`offer`: what is told of this host, as JSON. `memory_mb`: what programs may use together, in MiB."""
        self._engine = engine
        self._broker = broker
        self._sessions = sessions
        self._name = name
        self._offer = offer
        self._memory_mb = memory_mb
        self._in_hand: dict[str, _InHand] = {}
        self._changed = asyncio.Event()
        self._draining = False
        self._reach = Reach(broker.shown)

    async def run(self) -> None:
        """Start the workers, and take jobs. Ends when cancelled; workers and leases are given up then."""
        await self._engine.start()
        taking = asyncio.create_task(self._keep_taking())
        beating = asyncio.create_task(self._keep_beating())
        hosting = [] if self._sessions is None else [asyncio.create_task(self._sessions.run())]
        try:
            # Sessions are answered for until they have ended.
            await asyncio.gather(taking, beating, *map(asyncio.shield, hosting))
        finally:
            taking.cancel()
            tasks = [one.task for one in self._in_hand.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(taking, *tasks, return_exceptions=True)
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            await self._engine.close()
            # Those who waited for a session have been told by now that it has ended.
            for task in hosting:
                task.cancel()
            await asyncio.gather(*hosting, return_exceptions=True)
            with contextlib.suppress(RedisError, TimeoutError):
                async with asyncio.timeout(_LEAVE_WITHIN_S):
                    await self._broker.leave(self._name)
            await self._broker.close()

    def reasons(self) -> list[str]:
        """Why this host takes no work now; empty where it does."""
        reasons = []
        if self._draining:
            reasons.append("this host is shutting down")
        if self._engine.status().workers_alive == 0:
            reasons.append("no worker is up")
        if not self._reach.reached:
            reasons.append("the queue cannot be reached")
        return reasons

    async def drain(self, timeout_s: float) -> bool:
        """Take nothing more, and wait for what runs; False where the time did not suffice."""
        self._draining = True
        if self._sessions is not None:
            self._sessions.draining = True
        self._changed.set()
        until_s = time.monotonic() + timeout_s
        tasks = [one.task for one in self._in_hand.values()]
        late = (await asyncio.wait(tasks, timeout=timeout_s))[1] if tasks else ()
        if self._sessions is not None and not await self._sessions.drain(until_s - time.monotonic()):
            return False
        return not late

    # -- taking

    async def _keep_taking(self) -> None:
        backoff_s = _FIRST_BACKOFF_S
        waking: asyncio.Task[None] | None = None
        try:
            while not self._draining:
                try:
                    if await self._take():
                        backoff_s = _FIRST_BACKOFF_S
                        continue
                    # There may be something that does not fit yet: a job that ends counts as much as one that comes.
                    if waking is None:
                        waking = asyncio.create_task(self._broker.work_may_wait(1.0))
                    changing = asyncio.ensure_future(self._changed.wait())
                    await asyncio.wait({waking, changing}, return_when=asyncio.FIRST_COMPLETED)
                    changing.cancel()
                    if waking.done():
                        done, waking = waking, None
                        done.result()
                except RedisError as error:
                    self._reach.lost(error)
                    await asyncio.sleep(backoff_s)
                    backoff_s = min(2 * backoff_s, _LONGEST_BACKOFF_S)
        finally:
            if waking is not None:
                waking.cancel()
                await asyncio.gather(waking, return_exceptions=True)

    async def _take(self) -> bool:
        """Take as much as there are free workers for; whether that was anything. Raises RedisError."""
        self._changed.clear()
        free = self._engine.status().workers_alive - len(self._in_hand)
        if free <= 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await self._changed.wait()
            return True
        free_mb = self._memory_mb - sum(one.job.memory_mb for one in self._in_hand.values())
        if self._sessions is not None:
            free_mb -= self._sessions.held_mb
        jobs = await self._broker.take(self._name, free, free_mb=free_mb, busy=bool(self._in_hand))
        for job in jobs:
            lease = Lease(job.priority, job.id, job.execution)
            task = asyncio.create_task(self._work(job, lease))
            self._in_hand[job.execution] = _InHand(job, lease, task)
            task.add_done_callback(lambda _, execution=job.execution: self._let_go(execution))  # type: ignore[misc]
        return bool(jobs)

    def _let_go(self, execution: str) -> None:
        del self._in_hand[execution]
        self._changed.set()

    # -- one job

    async def _work(self, job: Taken, lease: Lease) -> None:
        begun_s = time.monotonic()
        try:
            answer = await self._engine.attempt(job.work)
        except (asyncio.CancelledError, Unavailable) as end:
            if not self._in_hand[job.execution].lost:
                with contextlib.suppress(RedisError):
                    await self._broker.give_back(lease, "")
            if isinstance(end, asyncio.CancelledError):
                raise
            return
        took_s = time.monotonic() - begun_s
        if isinstance(answer, Died):
            _log.error("a job took its worker with it", job=job.id, cause=answer.detail)
            cause = f"{answer.detail} on {self._name}"
            if await self._told(lambda: self._broker.give_back(lease, cause)):
                _log.error("a job is set aside", job=job.id)
        else:
            frame = to_frame(answer)
            await self._told(lambda: self._broker.finish(lease, frame, keep_s=job.keep_s, took_s=took_s))

    async def _told(self, tell: Callable[[], Awaitable[T]]) -> T | None:
        """Say it until Redis has heard; None where it did not for very long."""
        until = time.monotonic() + _HOLD_S
        while True:
            try:
                return await tell()
            except RedisError as error:
                self._reach.lost(error)
                if time.monotonic() > until:
                    return None
                await asyncio.sleep(0.2)

    # -- leases

    async def _keep_beating(self) -> None:
        while True:
            try:
                await self._beat()
                if self._reach.settled():
                    for id in await self._broker.sweep():
                        _log.warning("a job's host was lost; it is in line again, or set aside", job=id)
            except RedisError as error:
                self._reach.lost(error)
            await asyncio.sleep(BEAT_S)

    async def _beat(self) -> None:
        alive = self._engine.status().workers_alive
        workers = 0 if self._draining else alive
        held = list(self._in_hand.values())
        lost = await self._broker.beat(self._name, workers, self._offer, [one.lease for one in held])
        self._reach.found()
        for one in held:
            if one.lease.execution in lost and not one.task.done():
                one.lost = True
                one.task.cancel()
