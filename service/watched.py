"""What `rkgrade worker` tells of itself over HTTP: metrics, for a token where tokens are set, and health. It grades
nothing here.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from service.auth import Tokens
from service.guard import Guard
from service.metrics import CONTENT_TYPE, Metrics

#: Prometheus and a supervisor need a few; whoever holds more open is neither.
_MOST_CONNECTIONS = 64

_FLUSH_S = 1


class WatchedServer(uvicorn.Server):
    """Serves until `should_exit`. Signals are its worker's."""

    def __init__(self, metrics: Metrics, reasons: Callable[[], list[str]], tokens: Tokens | None) -> None:
        """`reasons`: why no work is taken now; empty where it is. `tokens`: of those that may read metrics; None lets
        anybody.
        """
        super().__init__(
            uvicorn.Config(
                _application(metrics, reasons, tokens),
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                limit_concurrency=_MOST_CONNECTIONS,
                timeout_graceful_shutdown=_FLUSH_S,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """Raises OSError that names the setting."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise OSError(f"--metrics-host, --metrics-port: cannot listen on {host}:{port}: {error.strerror}") from error


def _application(metrics: Metrics, reasons: Callable[[], list[str]], tokens: Tokens | None) -> ASGIApp:
    # On the event loop, as all that they read is.
    async def exposition(request: Request) -> Response:
        return Response(metrics.exposition(), media_type=CONTENT_TYPE)

    async def live(request: Request) -> Response:
        return JSONResponse({"status": "live"})

    async def ready(request: Request) -> Response:
        why = reasons()
        return JSONResponse({"ready": not why, "reasons": why}, status_code=503 if why else 200)

    health = {"/health/live": live, "/health/ready": ready}
    routes = [Route("/metrics", exposition), *(Route(path, tell) for path, tell in health.items())]
    if tokens is None:
        # By whatever name Prometheus calls it: there is nothing here that a page could do.
        return Starlette(routes=routes)
    return Guard(
        Starlette(routes=routes),
        tokens=tokens,
        hosts=(),
        open_paths=health,
        count=metrics.refused,
        served=metrics.let_in,
    )
