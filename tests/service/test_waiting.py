"""Waiting for room in the queue: for as long as it takes, and no more at once than there is memory for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from service.errors import QueueFull, Unavailable
from service.waiting import Waiting


def refusing(times: int, error: Exception | None = None) -> Callable[[], Awaitable[int]]:
    """An attempt that finds the queue full so often, and comes to its own number then, or to the error."""
    count = 0

    async def attempt() -> int:
        nonlocal count
        count += 1
        if count <= times:
            raise QueueFull("full", retry_after_s=1)
        if error is not None:
            raise error
        return count

    return attempt


def waiting(limit_bytes: int = 100) -> Waiting:
    return Waiting(limit_bytes, look_again_s=0.001)


def test_it_is_tried_again_until_there_is_room() -> None:
    assert asyncio.run(waiting().for_room(refusing(20), 10)) == 21


def test_other_errors_end_it() -> None:
    with pytest.raises(Unavailable):
        asyncio.run(waiting().for_room(refusing(2, Unavailable("draining")), 10))


async def held(room: Waiting, request_bytes: int) -> asyncio.Task[int]:
    """One that waits for good."""
    task = asyncio.create_task(room.for_room(refusing(10**9), request_bytes))
    await asyncio.sleep(0.01)
    return task


def test_past_its_bound_nothing_more_waits_and_what_left_counts_no_more() -> None:
    async def whole() -> None:
        room = waiting()
        first, second = await held(room, 60), await held(room, 40)
        with pytest.raises(QueueFull):
            await room.for_room(refusing(1), 1)
        assert await room.for_room(refusing(0), 10**6) == 1
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert await room.for_room(refusing(3), 40) == 4
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert await room.for_room(refusing(3), 10**6) == 4

    asyncio.run(whole())
