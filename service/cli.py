"""`rkgrade serve` and `rkgrade worker`, for the one command line whose root is `rl_client/cli.py`.

Flags are the settings of `service.settings` by the same names; a flag wins over its environment variable.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Coroutine
from ipaddress import ip_address
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
from service.commands.worker import worker
from service.connections import ACCEPTED_AT_ONCE, BACKLOG, TellsSeldom, bounded, bounded_websockets, enough_descriptors
from service.engines.base import Engine
from service.engines.choice import chosen
from service.engines.local import LocalEngine
from service.logs import configure
from service.metrics import Metrics
from service.results import VERSION
from service.rewarding import rewarding
from service.routes.terminal import MOST_MESSAGE_BYTES
from service.settings import Settings, without_password

app = typer.Typer()

#: What answers get to be sent in, once all work is done.
_FLUSH_S = 5

_log = structlog.get_logger()

_flag = options.flag


@app.command()
def serve(
    host: Annotated[str | None, _flag("host")] = None,
    port: Annotated[int | None, _flag("port")] = None,
    tokens_file: Annotated[Path | None, _flag("tokens_file")] = None,
    insecure_no_token: Annotated[bool | None, _flag("insecure_no_token")] = None,
    metrics_without_token: Annotated[bool | None, _flag("metrics_without_token")] = None,
    allowed_hosts: Annotated[str | None, _flag("allowed_hosts")] = None,
    data_dir: Annotated[Path | None, _flag("data_dir")] = None,
    workers: Annotated[int | None, _flag("workers")] = None,
    redis_url: Annotated[str | None, _flag("redis_url")] = None,
    store_url: Annotated[str | None, _flag("store_url")] = None,
    queue_size: Annotated[int | None, _flag("queue_size")] = None,
    body_limit_mb: Annotated[int | None, _flag("body_limit_mb")] = None,
    memory_mb: Annotated[int | None, _flag("memory_mb")] = None,
    problem_store_mb: Annotated[int | None, _flag("problem_store_mb")] = None,
    problem_cache_mb: Annotated[int | None, _flag("problem_cache_mb")] = None,
    compile_cache_mb: Annotated[int | None, _flag("compile_cache_mb")] = None,
    store_programs_mb: Annotated[int | None, _flag("store_programs_mb")] = None,
    store_secret_file: Annotated[Path | None, _flag("store_secret_file")] = None,
    verdict_cache: Annotated[bool | None, _flag("verdict_cache")] = None,
    verdict_cache_mb: Annotated[int | None, _flag("verdict_cache_mb")] = None,
    verdict_cache_s: Annotated[int | None, _flag("verdict_cache_s")] = None,
    languages: Annotated[str | None, _flag("languages")] = None,
    time_factors: Annotated[str | None, _flag("time_factors")] = None,
    checker_cpu_s: Annotated[float | None, _flag("checker_cpu_s")] = None,
    testlib: Annotated[Path | None, _flag("testlib")] = None,
    job_keep_s: Annotated[int | None, _flag("job_keep_s")] = None,
    sessions: Annotated[int | None, _flag("sessions")] = None,
    session_lifetime_s: Annotated[float | None, _flag("session_lifetime_s")] = None,
    drain_timeout_s: Annotated[float | None, _flag("drain_timeout_s")] = None,
    uid_base: Annotated[int | None, _flag("uid_base")] = None,
    insecure_no_cgroup: Annotated[bool | None, _flag("insecure_no_cgroup")] = None,
    log_level: Annotated[str | None, _flag("log_level")] = None,
    log_format: Annotated[str | None, _flag("log_format")] = None,
    access_log: Annotated[bool | None, _flag("access_log")] = None,
) -> None:
    """Serve the grader over HTTP. Every option is also an environment variable: RKGRADE_PORT and so on."""
    settings = options.settings(**locals())
    configure(settings)
    tokens = options.tokens(settings)
    metrics = Metrics()
    # Checking the host may take a while and start compilers: SIGTERM then unwinds, so that they end with us.
    signal.signal(signal.SIGTERM, _unwind)
    try:
        descriptors = enough_descriptors()
        listener = _listen(settings)
        engine = chosen(settings, metrics)
    except HostError as error:
        options.stop(
            options.GRADER_ERROR, f"this host cannot grade: {error}\n`rkgrade doctor` examines it point by point."
        )
    except OSError as error:
        options.stop(options.GRADER_ERROR, str(error))
    application = create_app(settings, engine, metrics, tokens, rewarding())
    server = DrainingServer(
        application,
        engine,
        settings,
        descriptors,
        on_started=lambda: _announce(settings, engine, listener),
        on_hangup=None if tokens is None else tokens.reload,
    )
    asyncio.run(server.serve(sockets=[listener]))


app.command()(worker)


class DrainingServer(uvicorn.Server):
    """A server that keeps answering while it drains.

    The first SIGTERM or SIGINT refuses new work with 503 and lets accepted work end; the second ends at
    once. uvicorn alone would close the door instead, and whoever knocks would not learn why.
    """

    def __init__(
        self,
        application: FastAPI,
        engine: Engine,
        settings: Settings,
        descriptors: int,
        *,
        on_started: Callable[[], None] = lambda: None,
        on_hangup: Callable[[], None] | None = None,
    ) -> None:
        """`descriptors`: how many files this process may open. `on_started`: called once the door is open. `on_hangup`:
        what SIGHUP asks for; without it, it ends the process as ever.
        """
        super().__init__(
            uvicorn.Config(
                application,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="on",
                http=bounded(descriptors),
                ws=bounded_websockets(),
                # Of which a server may keep a hundred times as much as it was sent.
                ws_per_message_deflate=False,
                ws_max_size=MOST_MESSAGE_BYTES,
                backlog=ACCEPTED_AT_ONCE,
                timeout_graceful_shutdown=_FLUSH_S,
            )
        )
        self._engine = engine
        self._drain_timeout_s = settings.drain_timeout_s
        self._on_started = on_started
        self._on_hangup = on_hangup
        self._draining: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(TellsSeldom())
        if self._on_hangup is not None:
            self._loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # asyncio has one number for what is kept and for what is accepted at once.
        for listener in sockets or ():
            listener.listen(BACKLOG)
        if self.started:
            self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if not self.started or self._draining is not None:
            self.should_exit = True
            self._spawn(self._engine.close())
        else:
            self._draining = self._spawn(self._drain())

    async def _drain(self) -> None:
        # A signal comes in whatever context the process was at, be it that of a request.
        structlog.contextvars.clear_contextvars()
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
    if not (ip_address(address[0]).is_loopback or settings.tokens_file or settings.insecure_no_token):
        options.stop(
            options.USAGE_ERROR,
            f"--host / RKGRADE_HOST: other machines can reach {settings.host}, and could run programs here: "
            "give clients tokens (--tokens-file / RKGRADE_TOKENS_FILE), or say --insecure-no-token",
        )
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise OSError(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from error
    return listener


def _announce(settings: Settings, engine: Engine, listener: socket.socket) -> None:
    out = Console(stderr=True, highlight=False)
    host, port = listener.getsockname()[:2]
    at = f"[{host}]" if ":" in host else host
    out.print(f"[bold]rkgrade {VERSION}[/] serves on http://{at}:{port} (docs at /docs)")
    if isinstance(engine, LocalEngine):
        out.print(f"  sandbox    {engine.sandbox}")
        if not engine.secure:
            out.print("  [bold red]insecure[/]   without cgroups: memory and CPU of process trees are not limited")
        for language in engine.languages:
            out.print(f"  language   {language.id}: {language.version}", soft_wrap=True)
        out.print(f"  workers    {settings.workers}")
    elif settings.redis_url is not None:
        out.print(
            f"  queue      {without_password(settings.redis_url.get_secret_value())}, for `rkgrade worker`s",
            soft_wrap=True,
        )
    if not settings.tokens_file:
        reach = "whoever reaches the port" if settings.insecure_no_token else "every program on this machine"
        out.print(f"  [bold red]no token[/]   {reach} may use it")
    out.print(f"  data       {settings.data_dir}", soft_wrap=True)
