"""What RQ's own tools (`rq info`, dashboards) see of a host: a worker under its name, alive as long as it says so."""

from __future__ import annotations

import asyncio

import structlog
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from rq.serializers import JSONSerializer
from rq.worker import BaseWorker

from service.engines.base import Priority

_EVERY_S = 10.0

#: What any command may take: a thread that waits for one cannot be stopped, and this process ends no sooner.
_WITHIN_S = 1

#: RQ forgets a worker that was silent for a minute more than this.
_FORGOTTEN_AFTER_S = 60

_log = structlog.get_logger()


class _Listed(BaseWorker):
    """It takes nothing: RQ would have its commands wait for as long as a worker of its own waits for work."""

    @property
    def connection_timeout(self) -> int:
        return _WITHIN_S


async def registered(url: str, name: str) -> None:
    """Be known to RQ as `name` until cancelled. Of use to people alone: no failure of it ends anything."""
    worker: BaseWorker | None = None
    try:
        while True:
            try:
                worker = await asyncio.to_thread(_seen, worker, url, name)
            except RedisError as error:
                _log.debug("RQ's list of workers cannot be written", error=f"{type(error).__name__}: {error}")
            await asyncio.sleep(_EVERY_S)
    finally:
        if worker is not None:
            await asyncio.to_thread(_leave, worker)


def _seen(worker: BaseWorker | None, url: str, name: str) -> BaseWorker:
    if worker is None:
        connection = Redis.from_url(
            url, socket_timeout=_WITHIN_S, socket_connect_timeout=_WITHIN_S, retry=Retry(NoBackoff(), 0)
        )
        queues = [f"rkgrade-{priority}" for priority in Priority]
        worker = _Listed(queues, name, connection=connection, serializer=JSONSerializer, worker_ttl=_FORGOTTEN_AFTER_S)
    if worker.connection.exists(worker.key):
        worker.heartbeat()
    else:
        worker.register_birth()  # type: ignore[no-untyped-call]
    return worker


def _leave(worker: BaseWorker) -> None:
    try:
        worker.register_death()  # type: ignore[no-untyped-call]
        worker.connection.close()
    except RedisError as error:
        _log.debug("RQ's list of workers cannot be written", error=f"{type(error).__name__}: {error}")
