"""What an engine takes on: no more than may wait, nor than there is memory for, and nothing new while it drains.

Knows nothing of where work waits and who does it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from service.errors import QueueFull, Unavailable

#: Of the requests of all that waits. One that is larger finds room where nothing else waits.
_MOST_BYTES = 256 * 2**20


def room_beyond(limit: int) -> int:
    """How many more may wait of clients of whom nothing waits yet: one that fills the line, and asks again and again,
    keeps nobody else out of it.
    """
    return max(1, limit // 8)


class Admission:
    def __init__(
        self,
        limit: int,
        *,
        waiting: Callable[[], int],
        waiting_bytes: Callable[[], int],
        workers: Callable[[], int],
        retry_after_s: Callable[[], int],
    ) -> None:
        """`limit`: of what may wait. `waiting`: pieces of work that wait now, those aside whose callers hold a place,
        and `waiting_bytes` what their requests take. `workers`: as many places are what runs, and does not wait.
        `retry_after_s`: when to come back where it is too much.
        """
        self._limit = limit
        self._waiting = waiting
        self._waiting_bytes = waiting_bytes
        self._workers = workers
        self._retry_after_s = retry_after_s
        self._places = 0
        self._places_bytes = 0
        self._open = 0
        self._quiet = asyncio.Event()
        self.draining = False

    def check(self, request_bytes: int, *, newcomer: bool) -> None:
        """Whether one more piece of work may come. `newcomer`: nothing of its client's waits. Raises QueueFull,
        Unavailable while draining.
        """
        self._check(self._waiting(), beyond=room_beyond(self._limit) if newcomer else 0)
        self.check_room(request_bytes)

    def check_room(self, request_bytes: int) -> None:
        """Whether there is memory for one more request. Raises QueueFull."""
        held_bytes = self._waiting_bytes() + self._places_bytes
        if held_bytes and held_bytes + request_bytes > _MOST_BYTES:
            raise QueueFull(
                f"grades of {held_bytes // 2**20} MiB are waiting, as much as may", retry_after_s=self._retry_after_s()
            )

    @contextlib.contextmanager
    def place(self, request_bytes: int) -> Iterator[None]:
        """A place for work of many pieces, however long it takes. Raises what `check` raises."""
        self._check(self._waiting() + max(0, self._places - self._workers()))
        self.check_room(request_bytes)
        self._places += 1
        self._places_bytes += request_bytes
        try:
            with self.opened():
                yield
        finally:
            self._places -= 1
            self._places_bytes -= request_bytes

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Work that draining has to wait for."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if self._open == 0:
                self._quiet.set()

    async def drain(self, timeout_s: float) -> bool:
        """Take no new work and wait for what there is; False where the time did not suffice."""
        self.draining = True
        if self._open == 0:
            return True
        self._quiet.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    def refuse_while_draining(self) -> None:
        """Raises Unavailable."""
        if self.draining:
            raise Unavailable("the service is shutting down and takes no new work")

    def _check(self, waiting: int, *, beyond: int = 0) -> None:
        self.refuse_while_draining()
        if waiting >= self._limit + beyond:
            raise QueueFull(f"{waiting} grades are waiting, as many as may", retry_after_s=self._retry_after_s())
