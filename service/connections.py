"""How many connections the API holds, and for how long one may say nothing. Knows nothing of what is sent over them.

Each connection costs a descriptor, and a process that runs out of them can accept no more, read no file and start no
worker. So the limit on descriptors is raised as far as it goes, and connections past what it leaves room for are told
to come back and closed at once.
"""

from __future__ import annotations

import asyncio
import math
import resource
import time
from typing import Any

import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

from sandbox.errors import HostError
from service.errors import Unavailable

#: Descriptors below which nothing is served, and from which on more would be of no use.
LEAST_DESCRIPTORS = 512
_MOST_DESCRIPTORS = 65_536

#: How many connections are accepted in one turn of the event loop, before any can be closed.
BACKLOG = 128

#: Descriptors for anything but connections: workers, files, logs, and a turn's worth of new connections.
_SPARE_DESCRIPTORS = 128 + BACKLOG

#: How long a connection may be open without a whole head of a request.
_HEAD_S = 30.0

#: A lack of descriptors is told once in so long, not at each of the thousands of attempts that it makes fail.
_TELL_AGAIN_S = 10.0

_REFUSAL = Unavailable("as many connections are open as may be").response()
_TURNED_AWAY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n%s\r\n%s" % (
    b"".join(b"%s: %s\r\n" % header for header in _REFUSAL.raw_headers),
    _REFUSAL.body,
)

_log = structlog.get_logger()


def raise_descriptor_limit() -> int:
    """Let this process open as many files as it may; how many. Raises HostError where that is too few to serve."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if allowed < LEAST_DESCRIPTORS:
        raise HostError(
            f"this process may open {allowed} files, and needs {LEAST_DESCRIPTORS}: raise the hard limit "
            "(ulimit -Hn, LimitNOFILE= of systemd, --ulimit nofile of docker)"
        )
    if soft == resource.RLIM_INFINITY or soft > allowed:
        return _MOST_DESCRIPTORS
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def bounded(descriptors: int, *, head_s: float = _HEAD_S) -> type[H11Protocol]:
    """uvicorn's protocol for a process that may open so many files."""
    most = descriptors - _SPARE_DESCRIPTORS

    class Bounded(H11Protocol):
        _turned_away = False
        _watch: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            if len(self.connections) >= most:
                self._turned_away = True
                transport.write(_TURNED_AWAY)
                transport.close()
                return
            super().connection_made(transport)
            self._expect_head()

        def data_received(self, data: bytes) -> None:
            if not self._turned_away:
                super().data_received(data)

        def connection_lost(self, exc: Exception | None) -> None:
            if self._watch is not None:
                self._watch.cancel()
            if not self._turned_away:
                super().connection_lost(exc)

        def shutdown(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete and self.cycle.more_body:
                # Its body may never come; whoever reads it learns that the client has gone.
                self.transport.close()
            else:
                super().shutdown()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._expect_head()

        def _expect_head(self) -> None:
            if self._watch is not None:
                self._watch.cancel()
            self._watch = self.loop.call_later(head_s, self._close_if_none)

        def _close_if_none(self) -> None:
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

    return Bounded


class TellsSeldom:
    """The event loop's exception handler: one line, now and then, where no descriptors are left to accept with."""

    def __init__(self) -> None:
        self._told_s = -math.inf

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not str(context.get("message", "")).startswith("socket.accept() out of system resource"):
            loop.default_exception_handler(context)
        elif time.monotonic() - self._told_s > _TELL_AGAIN_S:
            self._told_s = time.monotonic()
            _log.error("no connection can be accepted", error=str(context.get("exception")))
