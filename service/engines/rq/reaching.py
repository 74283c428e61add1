"""What is said, and tried again, where Redis is out of reach, out of memory, or holds as much as may wait."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import structlog
from redis.exceptions import OutOfMemoryError, RedisError

from service.engines.pace import retry_after_s
from service.engines.rq.broker import LEASE_S, MOST_LINE_BYTES, Broker, Full, State
from service.engines.rq.records import Record
from service.errors import KeyReused, QueueFull, Unavailable

#: How long a new job tries to reach Redis.
_WITHIN_S: Final = 4.0

#: How soon what has failed begins anew.
_ANEW_S: Final = 0.5

_log = structlog.get_logger()


class Reach:
    """Whether Redis is within reach, which nobody knows before it has answered. Each time that it goes is logged once,
    the start included.
    """

    def __init__(self, shown: str) -> None:
        """`shown`: its URL, without the password."""
        self._shown = shown
        self._since_s: float | None = None
        self._lost_since_s: float | None = time.monotonic()
        self._told = False

    @property
    def reached(self) -> bool:
        return self._lost_since_s is None

    def found(self) -> None:
        """It has answered."""
        if self._lost_since_s is not None:
            self._since_s, self._lost_since_s, self._told = time.monotonic(), None, False

    def lost(self, error: RedisError) -> float:
        """It has not; for how many seconds by now."""
        now_s = time.monotonic()
        if self._lost_since_s is None:
            self._since_s, self._lost_since_s = None, now_s
        if not self._told:
            self._told = True
            _log.error("the queue cannot be reached", redis=self._shown, error=said(error))
        return now_s - self._lost_since_s

    def settled(self) -> bool:
        """Whether others had the time to be heard of again since it was out of reach."""
        return self._since_s is not None and time.monotonic() - self._since_s > LEASE_S


async def unending(work: Callable[[], Awaitable[None]]) -> None:
    """Work that an API's answers rest on, begun anew where it fails of what nobody thought of: else everybody would
    wait for ever, and no log would tell why.
    """
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001
            _log.exception("a part of the queue has failed, and begins anew")
        await asyncio.sleep(_ANEW_S)


async def enqueue(broker: Broker, entry: Record, *, most_waiting: int | None) -> bool:
    """Put it in line; whether it was known before. Raises QueueFull, Unavailable, KeyReused."""
    until = time.monotonic() + _WITHIN_S
    while True:
        try:
            found = await broker.enqueue(entry, most_waiting=most_waiting)
        except OutOfMemoryError:
            if await _room_made(broker):
                continue
            raise Unavailable("the queue's Redis has no memory left for new work", retry_after_s=5) from None
        except RedisError as error:
            # Asked again under the same id: what was in line already stays there once.
            if time.monotonic() > until:
                _log.error("the queue cannot be reached", redis=broker.shown, error=said(error))
                raise Unavailable("the queue cannot be reached", retry_after_s=5) from None
            await asyncio.sleep(0.2)
            continue
        if isinstance(found, Full):
            raise _queue_full(found)
        if found is not None and found.fingerprint != entry.fingerprint:
            raise KeyReused()
        return found is not None


def check_line(state: State) -> None:
    """Raises QueueFull where the requests in line take as much of Redis as they may: what holds a place of its own is
    put in line whatever they take.
    """
    if state.line_bytes >= MOST_LINE_BYTES:
        raise _queue_full(Full(state.waiting, state.workers, state.mean_busy_s, state.line_bytes))


def _queue_full(found: Full) -> QueueFull:
    many = f"{found.waiting} grades are waiting, as many"
    much = f"grades of {found.held_bytes // 2**20} MiB are waiting, as much"
    return QueueFull(
        f"{much if found.held_bytes else many} as may",
        retry_after_s=retry_after_s(found.waiting, found.workers, found.mean_busy_s),
    )


async def _room_made(broker: Broker) -> bool:
    """Whether results that workers keep for each other have made room."""
    try:
        return await broker.drop_verdicts() > 0
    except RedisError:
        return False


@contextlib.contextmanager
def reachable() -> Iterator[None]:
    """Raises Unavailable where Redis is not."""
    try:
        yield
    except RedisError:
        raise Unavailable("the queue cannot be reached", retry_after_s=5) from None


def said(error: RedisError) -> str:
    return f"{type(error).__name__}: {error}"
