"""Waiting for room in the queue on behalf of those who take "come back later" for a failure.

What waits so is held in memory beside what the queue holds, and bounded as well. Knows nothing of what waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from service.errors import QueueFull

T = TypeVar("T")

#: Of the requests of all that waits here. One that is larger may, where nothing else does.
_MOST_BYTES = 512 * 2**20

#: How often it is asked whether the queue has room again.
_LOOK_AGAIN_S = 0.25


class Waiting:
    """All that waits in one service."""

    def __init__(self, limit_bytes: int = _MOST_BYTES, *, look_again_s: float = _LOOK_AGAIN_S) -> None:
        self._limit_bytes = limit_bytes
        self._look_again_s = look_again_s
        self._held_bytes = 0

    async def for_room(self, attempt: Callable[[], Awaitable[T]], request_bytes: int) -> T:
        """What the attempt comes to, made again for as long as it raises QueueFull. Raises what else it raises, and
        QueueFull where as much waits already as may. `request_bytes`: what it holds meanwhile.
        """
        try:
            return await attempt()
        except QueueFull:
            if self._held_bytes and self._held_bytes + request_bytes > self._limit_bytes:
                raise
        self._held_bytes += request_bytes
        try:
            while True:
                await asyncio.sleep(self._look_again_s)
                with contextlib.suppress(QueueFull):
                    return await attempt()
        finally:
            self._held_bytes -= request_bytes
