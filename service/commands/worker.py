"""`rkgrade worker`: has this host's cores do what is queued on Redis. Flags are settings, as those of `serve`."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import uuid
from collections.abc import Coroutine
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import structlog

from sandbox.errors import HostError
from service import heap
from service.commands import options
from service.descriptors import raise_descriptor_limit
from service.logs import configure
from service.metrics import Metrics
from service.settings import without_password
from service.watched import WatchedServer, listen

if TYPE_CHECKING:
    from service.auth import Tokens
    from service.engines.rq.host import WorkerHost
    from service.settings import Settings

_log = structlog.get_logger()


def worker(
    redis_url: Annotated[str | None, options.flag("redis_url")] = None,
    store_url: Annotated[str | None, options.flag("store_url")] = None,
    tokens_file: Annotated[Path | None, options.flag("tokens_file")] = None,
    data_dir: Annotated[Path | None, options.flag("data_dir")] = None,
    workers: Annotated[int | None, options.flag("workers")] = None,
    memory_mb: Annotated[int | None, options.flag("memory_mb")] = None,
    problem_store_mb: Annotated[int | None, options.flag("problem_store_mb")] = None,
    problem_cache_mb: Annotated[int | None, options.flag("problem_cache_mb")] = None,
    compile_cache_mb: Annotated[int | None, options.flag("compile_cache_mb")] = None,
    store_programs_mb: Annotated[int | None, options.flag("store_programs_mb")] = None,
    store_secret_file: Annotated[Path | None, options.flag("store_secret_file")] = None,
    verdict_cache: Annotated[bool | None, options.flag("verdict_cache")] = None,
    verdict_cache_mb: Annotated[int | None, options.flag("verdict_cache_mb")] = None,
    verdict_cache_s: Annotated[int | None, options.flag("verdict_cache_s")] = None,
    languages: Annotated[str | None, options.flag("languages")] = None,
    time_factors: Annotated[str | None, options.flag("time_factors")] = None,
    checker_cpu_s: Annotated[float | None, options.flag("checker_cpu_s")] = None,
    testlib: Annotated[Path | None, options.flag("testlib")] = None,
    sessions: Annotated[int | None, options.flag("sessions")] = None,
    session_lifetime_s: Annotated[float | None, options.flag("session_lifetime_s")] = None,
    metrics_host: Annotated[str | None, options.flag("metrics_host")] = None,
    metrics_port: Annotated[int | None, options.flag("metrics_port")] = None,
    metrics_without_token: Annotated[bool | None, options.flag("metrics_without_token")] = None,
    drain_timeout_s: Annotated[float | None, options.flag("drain_timeout_s")] = None,
    uid_base: Annotated[int | None, options.flag("uid_base")] = None,
    insecure_no_cgroup: Annotated[bool | None, options.flag("insecure_no_cgroup")] = None,
    log_level: Annotated[str | None, options.flag("log_level")] = None,
    log_format: Annotated[str | None, options.flag("log_format")] = None,
) -> None:
    """Do what is queued on Redis. SIGTERM takes nothing more and lets work end; a second one gives it back at once."""
    settings = options.settings(**locals())
    from service.engines.rq.prepare import worker_host

    if settings.redis_url is None:
        options.stop(options.USAGE_ERROR, "--redis-url / RKGRADE_REDIS_URL: which Redis to take grades from?")
    url = settings.redis_url.get_secret_value()
    configure(settings)
    tokens = None if settings.metrics_without_token else options.tokens(settings)
    signal.signal(signal.SIGTERM, _unwind)
    name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    metrics = Metrics()
    try:
        raise_descriptor_limit()
        listener = _listener(settings)
        host = worker_host(settings, metrics, url=url, name=name)
    except HostError as error:
        options.stop(
            options.GRADER_ERROR, f"this host cannot grade: {error}\n`rkgrade doctor` examines it point by point."
        )
    except OSError as error:
        options.stop(options.GRADER_ERROR, str(error))
    _log.info("takes grades", redis=without_password(url), name=name, workers=settings.workers)
    heap.settle()
    server = WatchedServer(metrics, host.reasons, tokens)
    asyncio.run(_watched(server, tokens, listener, _run(host, url, name, settings.drain_timeout_s)))


def _listener(settings: Settings) -> socket.socket | None:
    """Raises OSError."""
    if settings.metrics_port is None:
        return None
    listener = listen(settings.metrics_host, settings.metrics_port)
    address = ip_address(listener.getsockname()[0])
    if not (address.is_loopback or settings.tokens_file or settings.metrics_without_token):
        options.stop(
            options.USAGE_ERROR,
            f"--metrics-host / RKGRADE_METRICS_HOST: other machines can reach {settings.metrics_host}: give those that "
            "may read metrics tokens (--tokens-file / RKGRADE_TOKENS_FILE), or say --metrics-without-token",
        )
    return listener


async def _watched(
    server: WatchedServer, tokens: Tokens | None, listener: socket.socket | None, work: Coroutine[None, None, None]
) -> None:
    """Do the work, and tell of it meanwhile where there is somebody to tell."""
    if listener is None:
        await work
        return
    at = f"http://{listener.getsockname()[0]}:{listener.getsockname()[1]}"
    _log.info("tells of itself", at=at)
    telling = asyncio.create_task(server.serve(sockets=[listener]))
    watching = None if tokens is None else asyncio.create_task(tokens.watch())
    try:
        await work
    finally:
        server.should_exit = True
        if watching is not None:
            watching.cancel()
        await asyncio.gather(*filter(None, (telling, watching)), return_exceptions=True)


async def _run(host: WorkerHost, url: str, name: str, drain_timeout_s: float) -> None:
    from service.engines.rq.registration import registered

    loop = asyncio.get_running_loop()
    running = asyncio.create_task(host.run())
    listed = asyncio.create_task(registered(url, name))
    signals: asyncio.Queue[int] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, number)
    told = asyncio.create_task(signals.get())
    await asyncio.wait({running, told}, return_when=asyncio.FIRST_COMPLETED)
    if told.done():
        _log.info("draining", timeout_s=drain_timeout_s)
        draining = asyncio.create_task(host.drain(drain_timeout_s))
        again = asyncio.create_task(signals.get())
        await asyncio.wait({draining, again}, return_when=asyncio.FIRST_COMPLETED)
        if not (draining.done() and draining.result()):
            _log.warning("not all work was done in time; the rest is put back in line")
        for task in (draining, again, running):
            task.cancel()
    for task in (told, listed):
        task.cancel()
    results = await asyncio.gather(running, listed, return_exceptions=True)
    if isinstance(results[0], Exception):
        raise results[0]


def _unwind(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
