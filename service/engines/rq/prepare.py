"""Both ends of the queue on Redis, made ready from settings: the API's, and that of a host with workers."""

from __future__ import annotations

import math

from service.engines.prepare import local_engine, memory_bytes_of
from service.engines.rq.broker import Broker
from service.engines.rq.engine import RQEngine
from service.engines.rq.host import WorkerHost
from service.engines.rq.hosting import SessionHost
from service.engines.rq.offers import Offer
from service.metrics import Metrics
from service.settings import Settings
from service.stores.shared import open_store


def rq_engine(settings: Settings, metrics: Metrics, url: str) -> RQEngine:
    """An engine that is ready to be started, whether that Redis can be reached or not."""
    return RQEngine(
        Broker(url),
        store=open_store(settings.problems_dir, settings.store_url),
        metrics=metrics,
        queue_size=settings.queue_size,
        sessions=settings.sessions > 0,
    )


def worker_host(settings: Settings, metrics: Metrics, *, url: str, name: str) -> WorkerHost:
    """This host's workers. Blocks, and raises HostError, as `local_engine` does."""
    # How often a job is tried is for Redis to count: the next time may be on another host. And what is taken fits.
    engine = local_engine(settings, metrics, most_attempts=1, memory_bytes=math.inf, redis_url=url)
    metrics.offer(language.id for language in engine.languages)
    offer = Offer(
        sandbox=engine.sandbox, secure=engine.secure, languages=engine.languages, graders=dict(engine.graders)
    )
    memory_mb = memory_bytes_of(settings) / 2**20
    broker = Broker(url)
    sessions = None if engine.sessions is None else SessionHost(engine.sessions, broker.post, name)
    return WorkerHost(engine, broker, sessions, name=name, offer=offer.model_dump_json(), memory_mb=memory_mb)
