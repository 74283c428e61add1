"""Which engine the settings ask for. A grader that is all its own never loads what talks to Redis."""

from __future__ import annotations

from service.engines.base import Engine
from service.engines.prepare import local_engine
from service.metrics import Metrics
from service.settings import Settings


def chosen(settings: Settings, metrics: Metrics) -> Engine:
    """The engine, ready to be started. Blocks, and raises HostError, where it is this host's own."""
    if settings.redis_url is None:
        return local_engine(settings, metrics)
    from service.engines.rq.prepare import rq_engine

    return rq_engine(settings, metrics, settings.redis_url.get_secret_value())
