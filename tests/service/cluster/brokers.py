"""Jobs to put on Redis, and one step of theirs at a time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from service.contract import GradeRequest
from service.engines.base import Job, Priority
from service.engines.frames import Frame
from service.engines.rq import broker as broker_module
from service.engines.rq.broker import Broker, Lease
from service.engines.rq.records import Record, Taken, record
from tests.redis_server import RedisServer

T = TypeVar("T")

ANSWER = Frame("result", {"summary": {}}, b'{"verdict": "accepted"}')

_numbers = itertools.count()


def job(
    id: str | None = None,
    *,
    client: str = "one",
    priority: Priority = Priority.GRADE,
    memory_mb: int = 256,
    deadline_s: float | None = None,
    source: str = "print(3)",
    api: str = "",
    keep_s: int = 0,
) -> Record:
    request = GradeRequest(problem="sha256:" + 64 * "0", language="python", source=source)
    work = Job(
        request,
        0.0,
        id=id or f"job-{next(_numbers)}",
        client=client,
        memory_bytes=memory_mb * 2**20,
        deadline_s=deadline_s,
        keep_s=keep_s,
    )
    return record(work, priority, age_s=0.0, api=api)


def on(redis: RedisServer, act: Callable[[Broker], Awaitable[T]]) -> T:
    """Act on a broker of one's own."""

    async def run() -> T:
        broker = Broker(redis.url)
        try:
            return await act(broker)
        finally:
            await broker.close()

    return asyncio.run(run())


async def enqueue(broker: Broker, *records: Record) -> None:
    for one in records:
        assert await broker.enqueue(one, most_waiting=None) is None


async def take(
    broker: Broker, most: int = 1, *, host: str = "host", free_mb: float = 1e6, busy: bool = False
) -> list[Taken]:
    return await broker.take(host, most, free_mb=free_mb, busy=busy)


def lease_of(taken: Taken) -> Lease:
    return Lease(taken.priority, taken.id, taken.execution)


async def answered(broker: Broker, id: str) -> Frame | None:
    [ended] = await broker.outcomes([id])
    return None if ended is None else ended.answer


async def lapse(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is taken from here on is taken for no time at all."""
    monkeypatch.setattr(broker_module, "LEASE_S", 0)
