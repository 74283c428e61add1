"""How long requests take, for metrics: by route, never by the path that a client made up."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPMethod

from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Of requests that no route took: an unknown path, or one refused before.
NO_ROUTE = "none"

_METHODS = frozenset(HTTPMethod)


class RequestTimes:
    """ASGI middleware, the outermost: what others refuse takes time, too."""

    def __init__(self, app: ASGIApp, *, observe: Callable[[str, str, str, float], None]) -> None:
        """`observe`: told method, route, status and seconds of each request once its answer has been sent."""
        self._app = app
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun_s = time.monotonic()
        status = "none"

        async def send_seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, send_seen)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            # Routing leaves it in the scope that it was given.
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            self._observe(method, route, status, time.monotonic() - begun_s)
