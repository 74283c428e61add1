from __future__ import annotations

import asyncio
import contextlib

from service.room import Room


async def turns() -> None:
    """Let every task run as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_room_is_given_in_the_order_asked_and_never_more_than_there_is() -> None:
    async def scenario() -> list[str]:
        room, told = Room(100), list[str]()
        leave = {name: asyncio.Event() for name in "abcd"}

        async def holder(name: str, size: int) -> None:
            async with room.taken(size):
                told.append(name)
                await leave[name].wait()
            told.append(name.upper())

        tasks = [asyncio.create_task(holder(*one)) for one in (("a", 60), ("b", 60), ("c", 30), ("d", 100))]
        await turns()
        assert told == ["a"], "c would fit, but b was first"
        for name in "abcd":
            leave[name].set()
            await turns()
        await asyncio.gather(*tasks)
        return told

    assert asyncio.run(scenario()) == ["a", "A", "b", "c", "B", "C", "d", "D"]


def test_who_gives_up_waiting_leaves_the_room_as_it_was() -> None:
    async def scenario() -> None:
        room = Room(100)
        async with room.taken(60):
            for _ in range(3):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.01), room.taken(60):
                        raise AssertionError("there is no room")
            async with asyncio.timeout(1), room.taken(40):
                pass
        async with asyncio.timeout(1), room.taken(100):
            pass

    asyncio.run(scenario())
