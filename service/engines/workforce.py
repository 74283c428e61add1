"""Keeps one worker at work for each core: starts them, replaces those that die, and mends what they stand on.

Knows nothing of what work there is.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence

import structlog

from sandbox.errors import HostError
from service.engines.process import SILENCE_S, WorkerProcess
from service.engines.setup import WorkerSetup

_FIRST_BACKOFF_S = 0.1
_LONGEST_BACKOFF_S = 10.0

_log = structlog.get_logger()

Serve = Callable[[WorkerProcess], Awaitable[bool]]
"""Gives one worker work until it dies; True where it finished any."""


class Workforce:
    def __init__(
        self,
        setups: Sequence[WorkerSetup],
        *,
        command: Sequence[str],
        sweep: Callable[[], object],
        recreate: Callable[[], bool],
        died: Callable[[], None],
        silence_s: float = SILENCE_S,
    ) -> None:
        """`command`: what a worker is, its descriptor's number aside. `sweep` clears what a killed worker left in the
        kernel, and blocks; so does `recreate`, which makes again what the data directory has lost, and says whether
        there was any. `died`: called for each worker that ends unasked. `silence_s`: how long a worker at work may say
        nothing.
        """
        self._setups = tuple(setups)
        self._command = tuple(command)
        self._sweep = sweep
        self._recreate = recreate
        self._died = died
        self._silence_s = silence_s
        self._recreating = asyncio.Lock()
        self._recreated_s = -math.inf
        self._alive: set[WorkerProcess] = set()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def size(self) -> int:
        """How many there should be."""
        return len(self._setups)

    @property
    def alive(self) -> int:
        """How many can work now."""
        return len(self._alive)

    def start(self, serve: Serve) -> None:
        """Start the workers, each of which `serve` is called with once it is ready."""
        self._tasks = [asyncio.create_task(self._employ(setup, serve)) for setup in self._setups]

    async def close(self) -> None:
        """End every worker. Again: does nothing."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def mended(self, since_s: float) -> bool:
        """Whether parts of the data directory were gone and have been made again, now or since then."""
        async with self._recreating:
            if self._recreated_s < since_s:
                try:
                    if not await asyncio.to_thread(self._recreate):
                        return False
                except (HostError, OSError) as error:
                    _log.error("what the data directory has lost could not be made again", error=str(error))
                    return False
                self._recreated_s = time.monotonic()
                _log.warning("the data directory had lost parts, which are made again; all workers start anew")
                # They hold locks that are nobody else's any more.
                for worker in self._alive:
                    worker.retire()
            return True

    async def _employ(self, setup: WorkerSetup, serve: Serve) -> None:
        backoff_s = _FIRST_BACKOFF_S
        while True:
            worker = await self._started(setup)
            if worker is not None:
                self._alive.add(worker)
                try:
                    if await serve(worker):
                        backoff_s = _FIRST_BACKOFF_S
                finally:
                    self._alive.discard(worker)
                    await worker.end()
            if worker is None or not worker.retired:
                self._died()
                _log.error("a worker died", slot=setup.slot, again_in_s=backoff_s)
            await self._swept()
            await self.mended(time.monotonic())
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _LONGEST_BACKOFF_S)

    async def _started(self, setup: WorkerSetup) -> WorkerProcess | None:
        try:
            return await WorkerProcess.start(self._command, setup, self._silence_s)
        except OSError as error:
            _log.error("no worker could be started", slot=setup.slot, error=str(error))
            return None

    async def _swept(self) -> None:
        try:
            await asyncio.to_thread(self._sweep)
        except HostError as error:
            _log.error("what a dead worker left could not be cleared", error=str(error))
