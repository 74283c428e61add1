"""Connections that are kept, each used by one request at a time: for threads, and for the tasks of an event loop.

httpx' own pool is not safe where many threads share it: while it looks which of its connections are idle and have been
closed by the other side, a thread may begin to use one and have its answer, which looks the same. It is then closed
under that thread's hands (httpcore 1.0, seen a few times in a hundred requests on a loaded machine). Tasks do not get
into each other's way like that, but it looks at every connection for every request, which costs a millisecond with 64.
So each connection is an httpx client of its own here, taken and given back; the latest used is used again first.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from ssl import SSLContext
from typing import Any

import httpx

from rl_client.errors import GaveUp


@dataclass(frozen=True, slots=True)
class Settings:
    """Of one connection."""

    timeout: httpx.Timeout
    keep_s: float
    """How long it stays open while nobody uses it."""
    headers: Mapping[str, str]
    ssl: SSLContext
    """Shared: to read all certificates takes longer than a request."""

    def arguments(self) -> dict[str, Any]:
        """Of an httpx client."""
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=self.keep_s)
        return {"timeout": self.timeout, "limits": limits, "headers": self.headers, "verify": self.ssl}


class Connections:
    """So many, for threads; made when they are needed."""

    def __init__(self, count: int, settings: Settings) -> None:
        """Raises ValueError where there would be none."""
        self._unused = _checked(count)
        self._settings = settings
        self._idle: list[httpx.Client] = []
        self._closed = False
        self._changed = threading.Condition()

    def take(self, within_s: float | None) -> httpx.Client:
        """One for the caller alone, to be given back. Raises httpx.PoolTimeout, and GaveUp once they are closed."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._unused or self._closed, within_s):
                raise httpx.PoolTimeout("no connection is free")
            if self._closed:
                raise _gave_up()
            self._unused -= 1
            if self._idle:
                return self._idle.pop()
        return httpx.Client(**self._settings.arguments())

    def give_back(self, client: httpx.Client) -> None:
        with self._changed:
            self._unused += 1
            if not self._closed:
                self._idle.append(client)
                self._changed.notify()
                return
        client.close()

    def close(self) -> None:
        """Those in use are closed when they are given back."""
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for client in idle:
            client.close()


class AsyncConnections:
    """So many, for the tasks of one event loop; made when they are needed."""

    def __init__(self, count: int, settings: Settings) -> None:
        """Raises ValueError where there would be none."""
        self._unused = asyncio.Semaphore(_checked(count))
        self._settings = settings
        self._idle: list[httpx.AsyncClient] = []
        self._closed = False

    async def take(self, within_s: float | None) -> httpx.AsyncClient:
        """One for the caller alone, to be given back. Raises httpx.PoolTimeout, and GaveUp once they are closed."""
        try:
            async with asyncio.timeout(within_s):
                await self._unused.acquire()
        except TimeoutError:
            raise httpx.PoolTimeout("no connection is free") from None
        if self._closed:
            self._unused.release()
            raise _gave_up()
        return self._idle.pop() if self._idle else httpx.AsyncClient(**self._settings.arguments())

    async def give_back(self, client: httpx.AsyncClient) -> None:
        self._unused.release()
        if self._closed:
            await client.aclose()
        else:
            self._idle.append(client)

    async def aclose(self) -> None:
        """Those in use are closed when they are given back, and who waits for one learns of it then."""
        self._closed = True
        idle, self._idle = self._idle, []
        for client in idle:
            await client.aclose()


def _checked(count: int) -> int:
    if count < 1:
        raise ValueError(f"connections is {count}: there has to be one at least")
    return count


def _gave_up() -> GaveUp:
    return GaveUp("nobody waits for this grader any more")
