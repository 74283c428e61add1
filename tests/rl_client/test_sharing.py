"""Work that several wait for: begun once, ended when nobody waits, and forgotten when it has ended."""

from __future__ import annotations

import asyncio

import pytest

from rl_client.sharing import Shared


class Work:
    """Ends when it is told to."""

    def __init__(self) -> None:
        self.begun = self.cancelled = 0
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def __call__(self) -> str:
        self.begun += 1
        try:
            return await asyncio.shield(self.end)
        except asyncio.CancelledError:
            # What lets go of a connection takes a while.
            await asyncio.sleep(0)
            self.cancelled += 1
            raise


def test_all_who_wait_have_what_it_came_to_and_who_comes_later_begins_anew() -> None:
    async def run() -> None:
        shared, work = Shared[str, str](), Work()
        waiting = [asyncio.create_task(shared.done("a", work)) for _ in range(3)]
        other = asyncio.create_task(shared.done("b", work))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert work.begun == 2
        work.end.set_result("done")

        async def again() -> str:
            await waiting[0]
            return await shared.done("a", work)

        assert await asyncio.gather(*waiting, other, again()) == ["done"] * 5
        assert work.begun == 3

    asyncio.run(run())


def test_an_error_is_everybodys() -> None:
    async def run() -> None:
        shared, work = Shared[str, str](), Work()
        waiting = [asyncio.create_task(shared.done("a", work)) for _ in range(3)]
        await asyncio.sleep(0)
        work.end.set_exception(OSError("gone"))
        assert [str(one) for one in await asyncio.gather(*waiting, return_exceptions=True)] == ["gone"] * 3
        assert work.begun == 1

    asyncio.run(run())


def test_it_goes_on_as_long_as_anybody_waits_and_not_longer() -> None:
    async def run() -> None:
        shared, work = Shared[str, str](), Work()
        first, second = (asyncio.create_task(shared.done("a", work)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (work.begun, work.cancelled, second.done()) == (1, 0, False)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        # Whoever has gone has left nothing running behind.
        assert work.cancelled == 1
        third = asyncio.create_task(shared.done("a", work))
        await asyncio.sleep(0)
        work.end.set_result("done")
        assert (await third, work.begun) == ("done", 2)

    asyncio.run(run())
