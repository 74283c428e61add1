"""The queue of the in-process engine: work that waits for a worker, or workers that wait for work.

What is next: in each class of priority, the client that has used least of the workers' time; its own work in the order
of arrival. What was taken and comes back goes to the front. Work whose memory is not to be had now lets others by, but
not for long. `service/engines/rq/lua` does the same on Redis.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from typing import Any

from service.engines.base import Priority
from service.engines.pending import Pending, shut_down

#: How long work that finds too little memory is passed over, before everything waits for it.
_PATIENCE_S = 10.0


class _Line:
    """Who waits in one class of priority."""

    def __init__(self) -> None:
        self.clients: dict[str, deque[Pending]] = {}
        self.used_s: dict[str, float] = {}
        """Of each client that waits."""
        self.level_s = 0.0
        """What the client had used that was served last: who comes anew starts there."""

    def put(self, pending: Pending, *, first: bool) -> None:
        waiting = self.clients.setdefault(pending.work.client, deque())
        self.used_s.setdefault(pending.work.client, self.level_s)
        waiting.appendleft(pending) if first else waiting.append(pending)

    def remove(self, pending: Pending) -> bool:
        client = pending.work.client
        waiting = self.clients.get(client, ())
        if pending not in waiting:
            return False
        self.clients[client].remove(pending)
        if not self.clients[client]:
            del self.clients[client], self.used_s[client]
        return True

    def heads(self) -> list[Pending]:
        """What is next of each client, by whose turn it is."""
        return [self.clients[client][0] for client in sorted(self.clients, key=self.used_s.__getitem__)]


class Queue:
    def __init__(self, memory_bytes: float = math.inf) -> None:
        """`memory_bytes`: what programs may use together."""
        self._memory_bytes = memory_bytes
        self._lines = {priority: _Line() for priority in Priority}
        self._idle: deque[asyncio.Future[Pending]] = deque()
        self._taken: dict[int, float] = {}
        """By the number of what is in hand: seconds that its client was charged for it."""
        self._in_use_bytes = 0
        self.unadmitted = 0
        """How many wait whose callers hold no place of their own."""
        self.unadmitted_bytes = 0
        """What the requests of those take."""
        self.mean_s = 1.0
        """That work takes, on average of late."""

    def set_aside(self, memory_bytes: int) -> None:
        """Memory that work cannot have any more; less than 0 where it can again."""
        self._memory_bytes -= memory_bytes
        self._hand_over()

    def __len__(self) -> int:
        return sum(len(waiting) for line in self._lines.values() for waiting in line.clients.values())

    def __contains__(self, identifier: str) -> bool:
        """Whether work of that id waits."""
        return any(pending.work.id == identifier for pending in self._waiting())

    def holds(self, client: str) -> bool:
        """Whether anything of that client's waits, batches aside."""
        return any(client in line.clients for name, line in self._lines.items() if name is not Priority.BATCH)

    @property
    def age_s(self) -> float:
        """How long the longest-waiting one has waited."""
        return max((time.monotonic() - pending.work.accepted_s for pending in self._waiting()), default=0.0)

    def put(self, pending: Pending) -> None:
        self._enter(pending, first=False)
        self._hand_over()

    def put_first(self, pending: Pending) -> None:
        """Work that was taken and comes back; its caller may have gone meanwhile."""
        self._release(pending)
        if not pending.over:
            self._enter(pending, first=True)
        self._hand_over()

    def done(self, pending: Pending, took_s: float) -> None:
        """Work that was taken has come to its end."""
        self.mean_s += 0.1 * (took_s - self.mean_s)
        line, client = self._lines[pending.priority], pending.work.client
        charged_s = self._release(pending)
        if client in line.used_s:
            # What it really took, in place of what was expected.
            line.used_s[client] += took_s - charged_s
        self._hand_over()

    def remove(self, pending: Pending) -> bool:
        """Whether it was waiting here, which it does no more."""
        waited = self._lines[pending.priority].remove(pending)
        if waited and not pending.admitted:
            self.unadmitted -= 1
            self.unadmitted_bytes -= pending.work.request_bytes
        return waited

    async def take(self, death: asyncio.Future[Any]) -> Pending | None:
        """The next piece of work, or None where `death`, the worker's, comes while there is none.

        What is taken is to be given to `done` or `put_first`.
        """
        waiter: asyncio.Future[Pending] = asyncio.get_running_loop().create_future()
        self._idle.append(waiter)
        self._hand_over()
        try:
            either: set[asyncio.Future[Any]] = {death, waiter}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if waiter.done():
                waiter.result().fail(shut_down())
            raise
        finally:
            waiter.cancel()
        if not death.done():
            return waiter.result()
        if waiter.done() and not waiter.cancelled():
            self.put_first(waiter.result())
        return None

    def refuse_all(self) -> None:
        """Nobody is left who would take what waits."""
        for pending in self._waiting():
            self.remove(pending)
            pending.fail(shut_down())

    def _waiting(self) -> list[Pending]:
        return [pending for line in self._lines.values() for waiting in line.clients.values() for pending in waiting]

    def _enter(self, pending: Pending, *, first: bool) -> None:
        self._lines[pending.priority].put(pending, first=first)
        if not pending.admitted:
            self.unadmitted += 1
            self.unadmitted_bytes += pending.work.request_bytes

    def _hand_over(self) -> None:
        """Give work to idle workers at once, so that what an idle worker takes is never "waiting"."""
        while self._idle:
            waiter = self._idle[0]
            if waiter.done():
                self._idle.popleft()
                continue
            pending = self._next()
            if pending is None:
                return
            self._idle.popleft()
            waiter.set_result(pending)

    def _next(self) -> Pending | None:
        """Take what is next, as far as memory goes; None where that is nothing."""
        free_bytes = self._memory_bytes - self._in_use_bytes
        for line in self._lines.values():
            for pending in line.heads():
                if pending.over or pending.work.memory_bytes <= free_bytes or not self._taken:
                    client = pending.work.client
                    line.level_s = line.used_s[client]
                    line.used_s[client] += self.mean_s
                    self.remove(pending)
                    self._taken[pending.number] = self.mean_s
                    self._in_use_bytes += pending.work.memory_bytes
                    return pending
                if time.monotonic() - pending.work.accepted_s > _PATIENCE_S:
                    return None
        return None

    def _release(self, pending: Pending) -> float:
        """What its client was charged for it."""
        charged_s = self._taken.pop(pending.number, None)
        if charged_s is None:
            return 0.0
        self._in_use_bytes -= pending.work.memory_bytes
        return charged_s
