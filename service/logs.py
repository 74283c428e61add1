"""Logs: one event a line, for people or for machines, each with the id of the request it belongs to.

Sources, completions and test data never go here.
"""

from __future__ import annotations

import logging
import sys
import time
import uuid
from http import HTTPStatus

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.settings import Settings

_log = structlog.get_logger()

_MOST_ID_CHARS = 128

#: What an answer begins with; that of a WebSocket that is accepted has no status of its own.
_ANSWERS = ("http.response.start", "websocket.accept", "websocket.http.response.start")


def configure(settings: Settings) -> None:
    """Send everything that logs, uvicorn included, through one formatter to stderr."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        # No rich tracebacks: they show local variables, and take a tenth of a second each.
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    last: list[structlog.typing.Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if settings.log_format == "json":
        frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        last.append(structlog.processors.ExceptionRenderer(frames))
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[*last, renderer]))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True
    # Its lines on each start and stop say what ours say.
    logging.getLogger("uvicorn.error").setLevel(max(logging.WARNING, root.level))


class RequestLog:
    """ASGI middleware:

    an id for each request (the client's X-Request-ID where it sent one), echoed and logged.
    """

    def __init__(self, app: ASGIApp, *, access_log: bool) -> None:
        self._app = app
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        identifier = _sent_id(scope) or uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = identifier
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=identifier)
        begun_s = time.monotonic()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] in _ANSWERS:
                status = message.get("status", HTTPStatus.SWITCHING_PROTOCOLS)
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", identifier.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            if self._access_log:
                _log.info(
                    "request",
                    method=scope.get("method", "GET"),
                    path=scope["path"],
                    status=status,
                    seconds=round(time.monotonic() - begun_s, 4),
                )


def _sent_id(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            text: str = value.decode("latin-1")
            if 0 < len(text) <= _MOST_ID_CHARS and text.isascii() and text.isprintable():
                return text
    return None
