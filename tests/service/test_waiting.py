"""Waiting for room in the queue: in order, for as long as it takes, and no more at once than there is memory for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from service.errors import AskAgain, DeadlinePassed, QueueFull, Unavailable
from service.waiting import Waiting


class Places:
    """So many places as an engine has them, and the sizes of those that hold one."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.asked = 0
        self.closed = False
        self.held: list[int] = []

    @contextlib.contextmanager
    def admission(self, request_bytes: int) -> Iterator[None]:
        self.asked += 1
        if self.closed:
            raise Unavailable("draining")
        if len(self.held) >= self.free:
            raise QueueFull("full", retry_after_s=1)
        self.held.append(request_bytes)
        try:
            yield
        finally:
            self.held.remove(request_bytes)


def waiting(places: Places) -> Waiting:
    return Waiting(places.admission, most=3, most_bytes=100, look_again_s=0.001)


async def stays(line: Waiting, size: int, within_s: float | None = None) -> None:
    async with line.place(size, within_s=within_s):
        await asyncio.sleep(60)


async def begun(*work: Coroutine[Any, Any, None]) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(one) for one in work]
    await asyncio.sleep(0)
    return tasks


async def ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until(places: Places, held: list[int]) -> None:
    async with asyncio.timeout(10):
        while places.held != held:
            await asyncio.sleep(0.001)


def test_all_are_let_in_in_order_whoever_leaves_meanwhile() -> None:
    async def whole() -> None:
        places = Places(1)
        line = waiting(places)
        first, second, third, fourth = await begun(*(stays(line, size) for size in (10, 20, 30, 40)))
        asked = places.asked
        async with asyncio.timeout(10):
            while places.asked < asked + 5:
                await asyncio.sleep(0.001)
        assert places.held == [10]
        await ended(second)
        await ended(first)
        await until(places, [30])
        places.free = 2
        await until(places, [30, 40])
        await ended(third, fourth)
        assert places.held == []

    asyncio.run(whole())


def test_past_its_bounds_nothing_more_waits_and_what_left_counts_no_more() -> None:
    async def refused(line: Waiting, size: int) -> bool:
        [task] = await begun(stays(line, size))
        over = task.done() and isinstance(task.exception(), AskAgain)
        await ended(task)
        return over

    async def whole() -> None:
        line = waiting(Places(0))
        tasks = await begun(stays(line, 60), stays(line, 40))
        assert await refused(line, 1)
        await ended(tasks.pop())
        assert not await refused(line, 40)
        tasks += await begun(stays(line, 1), stays(line, 1))
        assert await refused(line, 1)
        await ended(*tasks)
        assert not await refused(line, 10**6)

    asyncio.run(whole())


def test_a_deadline_ends_it_in_line_and_in_its_place_and_so_does_an_error() -> None:
    async def whole() -> None:
        places = Places(1)
        line = waiting(places)
        [held] = await begun(stays(line, 10))
        for _ in range(2):
            with pytest.raises(DeadlinePassed):
                await stays(line, 20, within_s=0.02)
            await ended(held)
        assert places.held == []
        [held, last] = await begun(stays(line, 10), stays(line, 20))
        places.closed = True
        with pytest.raises(Unavailable):
            await last
        await ended(held)

    asyncio.run(whole())
