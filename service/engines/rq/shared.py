"""What workers' own processes ask Redis for: results that are known, and the secret that signs compiled programs.

Everything else goes through their host's process (`service.engines.rq.host`). Nothing here is worth waiting for.
"""

from __future__ import annotations

import secrets
from importlib.resources import files
from typing import Final, cast

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import OutOfMemoryError, RedisError
from redis.retry import Retry

from service.stores.compiled import SecretUnknown
from service.verdicts.cache import StoreFailed

#: What a look may take: a trivial grade takes some milliseconds.
_WITHIN_S = 0.5

_LUA = files("service.engines.rq") / "lua"
_SECRET: Final = "rkgrade:programs:secret"


def connection(url: str) -> Redis:
    return Redis.from_url(url, socket_timeout=_WITHIN_S, socket_connect_timeout=_WITHIN_S, retry=Retry(NoBackoff(), 0))


class RedisVerdicts:
    """See `service.verdicts.cache.EntryStore`: bounded by what is kept on this Redis, whoever put it there."""

    def __init__(self, redis: Redis, *, limit_bytes: int, keep_s: int) -> None:
        self._redis = redis
        self._limit_bytes = limit_bytes
        self._keep_s = keep_s
        self._keep = redis.register_script((_LUA / "keep_verdict.lua").read_text())
        self._drop = redis.register_script((_LUA / "drop_verdicts.lua").read_text())

    def get(self, key: str) -> bytes | None:
        try:
            return cast(bytes | None, self._redis.get(f"rkgrade:verdict:{key}"))
        except RedisError as error:
            raise StoreFailed(_said(error)) from error

    def put(self, key: str, entry: bytes) -> None:
        try:
            self._keep(args=[key, entry, self._keep_s, self._limit_bytes])
        except OutOfMemoryError as error:
            self._give_way()
            raise StoreFailed("Redis has no memory left; what was kept of results is dropped") from error
        except RedisError as error:
            raise StoreFailed(_said(error)) from error

    def remove(self, key: str) -> None:
        try:
            self._redis.unlink(f"rkgrade:verdict:{key}")
        except RedisError as error:
            raise StoreFailed(_said(error)) from error

    def _give_way(self) -> None:
        try:
            self._drop()
        except RedisError as error:
            raise StoreFailed(_said(error)) from error


class RedisSecret:
    """The secret of all hosts on this Redis; the first to ask makes it."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._known: bytes | None = None

    def __call__(self) -> bytes:
        """Asked for each time: a Redis that came back empty is given the one that was in use until then. Raises
        SecretUnknown.
        """
        try:
            while (shared := cast(bytes | None, self._redis.get(_SECRET))) is None:
                self._redis.set(_SECRET, self._known or secrets.token_bytes(), nx=True)
        except RedisError as error:
            raise SecretUnknown(f"the secret of compiled programs cannot be had from Redis: {_said(error)}") from error
        self._known = shared
        return shared


def _said(error: RedisError) -> str:
    return f"{type(error).__name__}: {error}"
