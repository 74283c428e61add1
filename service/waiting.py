"""Waiting for room in the queue on behalf of those who take "come back later" for a failure.

They stand in one line, and are let in in the order in which they came: else some would be passed by so often that their
trainer's patience ends. What waits so is held in memory beside what the queue holds, and bounded as well. Knows nothing
of what waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from service.errors import AskAgain, DeadlinePassed, QueueFull

#: Requests that wait at once, and what they take together. One that is larger may wait, where nothing else does.
_MOST: Final = 16_384
_MOST_BYTES: Final = 512 * 2**20

#: How often it is asked, by the first in line, whether the queue has room again.
_LOOK_AGAIN_S: Final = 0.05

#: When to come back where nothing more may wait.
_RETRY_AFTER_S: Final = 5


class Waiting:
    """The line of one service."""

    def __init__(
        self,
        admission: Callable[[int], AbstractContextManager[None]],
        *,
        most: int = _MOST,
        most_bytes: int = _MOST_BYTES,
        look_again_s: float = _LOOK_AGAIN_S,
    ) -> None:
        """`admission`: an engine's."""
        self._admission = admission
        self._most = most
        self._most_bytes = most_bytes
        self._look_again_s = look_again_s
        self._first = asyncio.Lock()
        self._waiting = 0
        self._waiting_bytes = 0

    @contextlib.asynccontextmanager
    async def place(self, request_bytes: int, *, within_s: float | None = None) -> AsyncIterator[None]:
        """An admission, however long it takes to get one. `request_bytes`: what is held meanwhile. `within_s`: how long
        it takes at most, and what is done with it; None for as long as it likes.

        Raises AskAgain where as much waits already as may, DeadlinePassed, and what the admission raises but QueueFull.
        """
        try:
            async with asyncio.timeout(within_s):
                with contextlib.ExitStack() as place:
                    with self._counted(request_bytes):
                        async with self._first:
                            await self._enter(place, request_bytes)
                    yield
        except TimeoutError:
            raise DeadlinePassed() from None

    @contextlib.contextmanager
    def _counted(self, request_bytes: int) -> Iterator[None]:
        too_much = self._waiting > 0 and self._waiting_bytes + request_bytes > self._most_bytes
        if too_much or self._waiting >= self._most:
            raise AskAgain("as many requests wait for room in the queue as may", retry_after_s=_RETRY_AFTER_S)
        self._waiting += 1
        self._waiting_bytes += request_bytes
        try:
            yield
        finally:
            self._waiting -= 1
            self._waiting_bytes -= request_bytes

    async def _enter(self, place: contextlib.ExitStack, request_bytes: int) -> None:
        while True:
            try:
                place.enter_context(self._admission(request_bytes))
                return
            except QueueFull:
                await asyncio.sleep(self._look_again_s)
