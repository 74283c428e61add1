"""Room for what is parsed: memory that may be taken up at once, given out in the order asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Room:
    def __init__(self, size_bytes: int) -> None:
        self._free_bytes = size_bytes
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def taken(self, size_bytes: int) -> AsyncIterator[None]:
        """Wait for so much room, at most all there is, and have it until the context is left."""
        async with self._turn:
            while self._free_bytes < size_bytes:
                self._freed.clear()
                await self._freed.wait()
            self._free_bytes -= size_bytes
        try:
            yield
        finally:
            self._free_bytes += size_bytes
            self._freed.set()
