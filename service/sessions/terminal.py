"""A command of a session on a terminal: what it prints is read as fast as its client takes it, and no faster.

Nothing is kept here: what waits, waits in the kernel, and whoever fills that waits, too. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from sandbox.session import Ended
from sandbox.terminal import Terminal
from service.contract import TerminalEnd

#: Beyond this much at once, a pause: a flood takes its turn with all else that this process does.
_BURST_BYTES = 64 * 1024
_PAUSE_S = 0.02

#: What is still read once the command has ended and others hold its terminal: more than the kernel keeps.
_LAST_BYTES = 64 * 1024
_LAST_S = 0.5


class LiveTerminal:
    """See `service.sessions.base.OpenTerminal`; `service.sessions.live` makes it."""

    def __init__(self, terminal: Terminal, ended: asyncio.Future[Ended], touch: Callable[[], None]) -> None:
        """`ended`: of the command. `touch`: called whenever the terminal is used."""
        self._terminal = terminal
        self._ended = ended
        self._touch = touch
        self._loop = asyncio.get_running_loop()
        self._read_bytes = 0
        self._left_bytes = _LAST_BYTES

    async def read(self) -> bytes:
        if self._read_bytes >= _BURST_BYTES:
            self._read_bytes = 0
            await asyncio.sleep(_PAUSE_S)
        while self._left_bytes > 0:
            try:
                data = self._terminal.read()
            except BlockingIOError:
                if not await self._readable():
                    break
                continue
            self._read_bytes += len(data)
            if self._ended.done():
                self._left_bytes -= len(data)
            return data
        return b""

    async def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[await self.take(rest) :]

    async def take(self, data: bytes | memoryview) -> int:
        """Type, and wait until some of it is taken; how much. Cancelling takes nothing."""
        self._touch()
        while True:
            try:
                return self._terminal.write(data)
            except BlockingIOError:
                await self._writable()

    async def resize(self, rows: int, columns: int) -> None:
        self._touch()
        self._terminal.resize(rows, columns)

    async def ended(self) -> TerminalEnd:
        ended = await asyncio.shield(self._ended)
        return TerminalEnd(exit_code=ended.exit_code, signal=ended.signal)

    async def _readable(self) -> bool:
        """Whether there is something to read, or nobody left to write it; False once the command has ended and others
        that hold its terminal say nothing.
        """
        ready = self._loop.create_future()
        self._loop.add_reader(self._terminal, _set, ready)
        try:
            await asyncio.wait({ready, self._ended}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({ready}, timeout=_LAST_S)
            return ready.done()
        finally:
            self._loop.remove_reader(self._terminal)

    async def _writable(self) -> None:
        ready = self._loop.create_future()
        self._loop.add_writer(self._terminal, _set, ready)
        try:
            await ready
        finally:
            self._loop.remove_writer(self._terminal)


def _set(ready: asyncio.Future[None]) -> None:
    with contextlib.suppress(asyncio.InvalidStateError):
        ready.set_result(None)
