"""One worker's process, as its engine sees it: started, sent work, read, and ended whatever it does."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence

import structlog

from service.engines.frames import Frame, read_frame
from service.engines.setup import WorkerSetup

#: How long a worker at work may say nothing, which it does every second.
SILENCE_S = 60.0

#: What a worker gets to close its cells in, once its socket is shut.
_FAREWELL_S = 5.0

_log = structlog.get_logger()


class WorkerProcess:
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        silence_s: float,
    ) -> None:
        self._process = process
        # While it starts there is no heart yet to beat.
        self._silence_s = SILENCE_S
        self._silence_at_work_s = silence_s
        self.retired = False
        self._reader = reader
        self._writer = writer
        self.death = asyncio.create_task(process.wait())

    @classmethod
    async def start(cls, command: Sequence[str], setup: WorkerSetup, silence_s: float) -> WorkerProcess | None:
        """A worker that has said it is ready, or None where it died before."""
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours, limit=2**20)
        with theirs:
            # A session of its own: Ctrl-C in a terminal is for the API alone, which then ends its workers
            # in order.
            process = await asyncio.create_subprocess_exec(
                *command,
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        worker = cls(process, reader, writer, silence_s)
        ready = None
        try:
            await worker.send(setup.frame())
            ready = await worker.answer()
        finally:
            if ready is None:
                await worker.end()
        worker._silence_s = worker._silence_at_work_s
        return None if ready is None else worker

    async def send(self, frame: Frame) -> None:
        # A dead worker is noticed by whoever reads its answer.
        with contextlib.suppress(ConnectionError):
            self._writer.write(frame.encode())
            await self._writer.drain()

    def cancel(self, number: int) -> None:
        self._writer.write(Frame("cancel", {"job": number}).encode())

    async def answer(self) -> Frame | None:
        """What it came to; None where the worker died, or was killed for its silence."""
        while (frame := await self._frame()) is not None and frame.kind == "alive":
            pass
        return frame

    async def _frame(self) -> Frame | None:
        reading = asyncio.ensure_future(read_frame(self._reader))
        try:
            # Twice half the time: where this process was itself stopped for long, what has come meanwhile is read.
            for _ in range(2):
                if (await asyncio.wait({reading}, timeout=self._silence_s / 2))[0]:
                    return reading.result()
        finally:
            reading.cancel()
        _log.error("a worker fell silent and is killed", pid=self._process.pid, silence_s=self._silence_s)
        self.kill()
        return None

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def retire(self) -> None:
        """Have it end, whatever it is doing; that is no fault of its job's."""
        self.retired = True
        self._writer.close()

    async def end(self) -> None:
        """Close its socket, which it takes as the order to end; kill it where it does not."""
        self._writer.close()
        await asyncio.wait({self.death}, timeout=_FAREWELL_S)
        if not self.death.done():
            self.kill()
            await self.death
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
