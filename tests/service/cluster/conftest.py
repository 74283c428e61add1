"""A Redis for tests of the queue on it, empty for each; and whole clusters for tests that break theirs."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.redis_server import RedisServer, redis_server
from tests.serving import Host, Server, serving, working


@pytest.fixture(scope="session")
def _redis_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis(_redis_of_the_session: RedisServer) -> RedisServer:
    _redis_of_the_session.client.flushall()
    return _redis_of_the_session


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Redis of its own, and what is started on it."""

    redis: RedisServer
    host: Callable[..., contextlib.AbstractContextManager[Host]]
    """A further `rkgrade worker`: `with cluster.host("--workers", "1") as host`."""
    api: Callable[..., contextlib.AbstractContextManager[Server]]
    """A further `rkgrade serve`, ready."""


@pytest.fixture
def own_cluster(grader_data_dir: Path, tmp_path: Path) -> Iterator[Cluster]:
    """Redis with AOF, as it should be run; hosts and APIs share the session's data directory."""
    numbers = itertools.count()

    def host(*flags: str) -> contextlib.AbstractContextManager[Host]:
        log = tmp_path / f"host-{next(numbers)}.log"
        return working(redis.url, grader_data_dir, log, "--languages", "python", *flags)

    def api(*flags: str) -> contextlib.AbstractContextManager[Server]:
        return serving(grader_data_dir, tmp_path / f"api-{next(numbers)}.log", *flags, redis_url=redis.url)

    with redis_server(tmp_path / "redis", "--appendonly", "yes", "--appendfsync", "everysec") as redis:
        yield Cluster(redis, host, api)
