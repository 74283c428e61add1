"""How many connections the API holds, and for how long one may say nothing, or read nothing. Knows nothing of what is
sent over them.

Each connection costs a descriptor, and a process that runs out of them can accept no more, read no file and start no
worker. So the limit on descriptors is raised as far as it goes, and connections past what it leaves room for are told
to come back and closed at once.

An answer that nobody reads stays in memory, and what makes it waits: a client has to go on reading, however slowly.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from sandbox.errors import HostError
from service.descriptors import raise_descriptor_limit
from service.errors import Unavailable
from service.problem_json import answer_to

#: Descriptors below which nothing is served.
LEAST_DESCRIPTORS = 512

#: How many connections are accepted in one turn of the event loop, before any can be closed.
ACCEPTED_AT_ONCE = 128

#: How many the kernel keeps until they are accepted, where `net.core.somaxconn` lets it: a trainer opens a thousand at
#: once. A client whose connection finds no place tries again only after seconds, or is reset.
BACKLOG = 4096

#: Descriptors for anything but connections: workers, files, logs, and a turn's worth of new connections.
_SPARE_DESCRIPTORS = 128 + ACCEPTED_AT_ONCE

#: How long a connection may be open without a whole head of a request.
_HEAD_S = 30.0

#: What a client must read of an answer in so long, once the kernel's buffers are full, until the rest fits in again.
_READ_BYTES = 64 * 2**10
_READ_S = 30.0

#: How often it is looked at meanwhile. Where this process itself was held up, however long, that counts for one look.
_LOOKS = 8

#: A lack of descriptors is told once in so long, not at each of the thousands of attempts that it makes fail.
_TELL_AGAIN_S = 10.0

_REFUSAL = answer_to(Unavailable("as many connections are open as may be"))
_TURNED_AWAY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n%s\r\n%s" % (
    b"".join(b"%s: %s\r\n" % header for header in _REFUSAL.raw_headers),
    _REFUSAL.body,
)

_log = structlog.get_logger()


def enough_descriptors() -> int:
    """Let this process open as many files as it may; how many. Raises HostError where that is too few to serve."""
    allowed = raise_descriptor_limit()
    if allowed < LEAST_DESCRIPTORS:
        raise HostError(
            f"this process may open {allowed} files, and needs {LEAST_DESCRIPTORS}: raise the hard limit "
            "(ulimit -Hn, LimitNOFILE= of systemd, --ulimit nofile of docker)"
        )
    return allowed


def bounded(descriptors: int, *, head_s: float = _HEAD_S, read_s: float = _READ_S) -> type[H11Protocol]:
    """uvicorn's protocol for a process that may open so many files. `head_s`: how long a connection may be open without
    a whole head of a request. `read_s`: how long a client may take for each 64 KiB of a long answer.
    """
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
            self._reader = _Reader(transport, read_s)
            self._expect_head()

        def data_received(self, data: bytes) -> None:
            if not self._turned_away:
                super().data_received(data)

        def connection_lost(self, exc: Exception | None) -> None:
            self._expect_nothing()
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

        def handle_websocket_upgrade(self, event: h11.Request) -> None:
            self._expect_nothing()
            super().handle_websocket_upgrade(event)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._reader.expect()

        def resume_writing(self) -> None:
            self._reader.relax()
            super().resume_writing()

        def _expect_nothing(self) -> None:
            if self._watch is not None:
                self._watch.cancel()
            if not self._turned_away:
                self._reader.relax()

        def _expect_head(self) -> None:
            if self._watch is not None:
                self._watch.cancel()
            self._watch = self.loop.call_later(head_s, self._close_if_none)

        def _close_if_none(self) -> None:
            if self.flow.write_paused:
                # An answer is still being read.
                self._expect_head()
            elif self.cycle is None or self.cycle.response_complete:
                # Not closed: that would wait until the end of an answer has been read, if ever.
                self.transport.abort()

    return Bounded


def bounded_websockets(*, read_s: float = _READ_S) -> type[WebSocketsSansIOProtocol]:
    """uvicorn's protocol for what such a connection becomes; `read_s` as there."""

    class BoundedWebSocket(WebSocketsSansIOProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self._reader = _Reader(self.transport, read_s)

        def connection_lost(self, exc: Exception | None) -> None:
            self._reader.relax()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._reader.expect()

        def resume_writing(self) -> None:
            self._reader.relax()
            super().resume_writing()

        async def send(self, message: Any) -> None:
            await super().send(message)
            if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
                # Refused, which uvicorn (0.54) takes for a handshake that broke off, and logs as an error.
                self.handshake_complete = True

    return BoundedWebSocket


class _Reader:
    """The client at the other end of a transport: expected to read, it loses its connection where it does not."""

    def __init__(self, transport: asyncio.Transport, read_s: float) -> None:
        self._transport = transport
        self._read_s = read_s
        self._watch: asyncio.TimerHandle | None = None

    def expect(self) -> None:
        self._look(self._transport.get_write_buffer_size() - _READ_BYTES, _LOOKS)

    def relax(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _look(self, left_bytes: int, looks: int) -> None:
        loop = asyncio.get_running_loop()
        self._watch = loop.call_later(self._read_s / _LOOKS, self._has_read, left_bytes, looks - 1)

    def _has_read(self, left_bytes: int, looks: int) -> None:
        if self._transport.get_write_buffer_size() <= left_bytes:
            self.expect()
        elif looks > 0:
            self._look(left_bytes, looks)
        else:
            self._transport.abort()


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
