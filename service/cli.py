"""`rkgrade serve`, for the one command line whose root is `rl_client/cli.py`.

Flags are the settings of `service.settings` by the same names; a flag wins over its environment variable.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Coroutine
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import structlog
import typer
import uvicorn
from fastapi import FastAPI
from rich.console import Console

from sandbox.errors import HostError
from service.app import create_app
from service.commands import options
from service.connections import BACKLOG, TellsSeldom, bounded, raise_descriptor_limit
from service.engines.local import LocalEngine
from service.engines.prepare import local_engine
from service.logs import configure
from service.metrics import Metrics
from service.results import VERSION
from service.settings import Settings

app = typer.Typer()

#: What answers get to be sent in, once all work is done.
_FLUSH_S = 5

_log = structlog.get_logger()


def _flag(name: str) -> Any:
    return typer.Option(help=Settings.model_fields[name].description, show_default=False)


@app.command()
def serve(
    host: Annotated[str | None, _flag("host")] = None,
    port: Annotated[int | None, _flag("port")] = None,
    data_dir: Annotated[Path | None, _flag("data_dir")] = None,
    workers: Annotated[int | None, _flag("workers")] = None,
    queue_size: Annotated[int | None, _flag("queue_size")] = None,
    body_limit_mb: Annotated[int | None, _flag("body_limit_mb")] = None,
    problem_cache_mb: Annotated[int | None, _flag("problem_cache_mb")] = None,
    compile_cache_mb: Annotated[int | None, _flag("compile_cache_mb")] = None,
    languages: Annotated[str | None, _flag("languages")] = None,
    time_factors: Annotated[str | None, _flag("time_factors")] = None,
    checker_cpu_s: Annotated[float | None, _flag("checker_cpu_s")] = None,
    testlib: Annotated[Path | None, _flag("testlib")] = None,
    drain_timeout_s: Annotated[float | None, _flag("drain_timeout_s")] = None,
    insecure_no_cgroup: Annotated[bool | None, _flag("insecure_no_cgroup")] = None,
    log_level: Annotated[str | None, _flag("log_level")] = None,
    log_format: Annotated[str | None, _flag("log_format")] = None,
    access_log: Annotated[bool | None, _flag("access_log")] = None,
) -> None:
    """Serve the grader over HTTP. Every option is also an environment variable: RKGRADE_PORT and so on."""
    settings = options.settings(**locals())
    configure(settings)
    metrics = Metrics()
    # Checking the host may take a while and start compilers: SIGTERM then unwinds, so that they end with us.
    signal.signal(signal.SIGTERM, _unwind)
    try:
        descriptors = raise_descriptor_limit()
        listener = _listen(settings)
        engine = local_engine(settings, metrics)
    except HostError as error:
        options.stop(
            options.GRADER_ERROR, f"this host cannot grade: {error}\n`rkgrade doctor` examines it point by point."
        )
    except OSError as error:
        options.stop(options.GRADER_ERROR, str(error))
    _announce(settings, engine, listener)
    server = DrainingServer(create_app(settings, engine, metrics), engine, settings, descriptors)
    asyncio.run(server.serve(sockets=[listener]))


class DrainingServer(uvicorn.Server):
    """A server that keeps answering while it drains.

    The first SIGTERM or SIGINT refuses new work with 503 and lets accepted work end; the second ends at
    once. uvicorn alone would close the door instead, and whoever knocks would not learn why.
    """

    def __init__(self, application: FastAPI, engine: LocalEngine, settings: Settings, descriptors: int) -> None:
        """`descriptors`: how many files this process may open."""
        super().__init__(
            uvicorn.Config(
                application,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="on",
                http=bounded(descriptors),
                backlog=BACKLOG,
                timeout_graceful_shutdown=_FLUSH_S,
            )
        )
        self._engine = engine
        self._drain_timeout_s = settings.drain_timeout_s
        self._draining: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(TellsSeldom())
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if not self.started or self._draining is not None:
            self.should_exit = True
            self._spawn(self._engine.close())
        else:
            self._draining = self._spawn(self._drain())

    async def _drain(self) -> None:
        _log.info("draining", timeout_s=self._drain_timeout_s)
        if not await self._engine.drain(self._drain_timeout_s):
            _log.warning("not all work was done in time; the rest is cancelled")
            await self._engine.close()
        self.should_exit = True

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._loop.create_task(work)


def _unwind(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _listen(settings: Settings) -> socket.socket:
    """The listening socket, made before anything else is: a taken port costs no wait."""
    try:
        info = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise OSError(f"--host / RKGRADE_HOST: cannot listen on {settings.host!r}: {reason}") from error
    family, kind, protocol, _, address = info[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise OSError(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from error
    return listener


def _announce(settings: Settings, engine: LocalEngine, listener: socket.socket) -> None:
    out = Console(stderr=True, highlight=False)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    out.print(f"[bold]rkgrade {VERSION}[/] serves on http://{shown}:{port} (docs at /docs)")
    out.print(f"  sandbox    {engine.sandbox}")
    if not engine.secure:
        out.print("  [bold red]insecure[/]   without cgroups: memory and CPU of process trees are not limited")
    for language in engine.languages:
        out.print(f"  language   {language.id}: {language.version}", soft_wrap=True)
    out.print(f"  workers    {settings.workers}")
    out.print(f"  data       {settings.data_dir}", soft_wrap=True)
