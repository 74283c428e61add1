"""What workers' own processes keep on Redis: results, within bounds that hold for all of them, and a secret."""

from __future__ import annotations

import concurrent.futures
import signal
import time
from collections.abc import Iterator

import pytest

from service.engines.rq.shared import RedisSecret, RedisVerdicts, connection
from service.stores.compiled import SecretUnknown
from service.verdicts.cache import StoreFailed
from tests.redis_server import PASSWORD, RedisServer
from tests.serving import poll

KEYS = [f"{number:064x}" for number in range(300)]

#: Of one entry of a hundred bytes, with what lies around it.
ENTRY_BYTES = 100 + 2 * 64 + 256


@pytest.fixture
def store(redis: RedisServer) -> Iterator[RedisVerdicts]:
    client = connection(redis.url)
    yield RedisVerdicts(client, limit_bytes=100 * ENTRY_BYTES, keep_s=1000)
    client.close()


def taken(redis: RedisServer) -> int:
    return int(redis.client.get("rkgrade:verdicts:bytes") or 0)  # type: ignore[arg-type]


def kept(store: RedisVerdicts) -> list[str]:
    return [key for key in KEYS if store.get(key) is not None]


def test_the_first_entry_stands_until_it_is_removed(store: RedisVerdicts) -> None:
    assert store.get(KEYS[0]) is None
    store.put(KEYS[0], b"\0\xff")
    store.put(KEYS[0], b"second")
    assert store.get(KEYS[0]) == b"\0\xff"
    store.remove(KEYS[0])
    assert store.get(KEYS[0]) is None
    store.put(KEYS[0], b"third")
    assert store.get(KEYS[0]) == b"third"


def test_those_that_were_kept_first_make_room(store: RedisVerdicts, redis: RedisServer) -> None:
    for key in KEYS:
        store.put(key, b"x" * 100)
    left = kept(store)
    # Those of one second are in no order.
    assert len(left) == 100
    assert taken(redis) == 100 * ENTRY_BYTES
    assert redis.client.zcard("rkgrade:verdicts") == 100
    # What is counted is not less than what Redis needs.
    used = sum(redis.client.memory_usage(f"rkgrade:verdict:{key}") or 0 for key in left)
    assert used + (redis.client.memory_usage("rkgrade:verdicts") or 0) < 1.2 * taken(redis)


def test_one_larger_than_the_bound_is_not_kept(store: RedisVerdicts, redis: RedisServer) -> None:
    store.put(KEYS[0], b"x" * 100 * ENTRY_BYTES)
    assert (kept(store), taken(redis)) == ([], 0)


def test_entries_lapse_and_are_counted_no_longer(redis: RedisServer) -> None:
    client = connection(redis.url)
    brief = RedisVerdicts(client, limit_bytes=2**20, keep_s=1)
    for key in KEYS[:5]:
        brief.put(key, b"x" * 100)
    poll(lambda: not kept(brief), 5, "all have lapsed")
    brief.put(KEYS[9], b"x" * 100)
    poll(lambda: taken(redis) == ENTRY_BYTES or brief.put(KEYS[9], b"x" * 100), 5, "they are counted no longer")
    client.close()


def test_many_who_put_at_once_keep_the_count(store: RedisVerdicts, redis: RedisServer) -> None:
    def put(number: int) -> None:
        client = connection(redis.url)
        other = RedisVerdicts(client, limit_bytes=100 * ENTRY_BYTES, keep_s=1000)
        for key in KEYS[number * 20 : number * 20 + 60]:
            other.put(key, b"x" * 100)
        client.close()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(8)))
    assert taken(redis) == len(kept(store)) * ENTRY_BYTES <= 100 * ENTRY_BYTES


def test_a_redis_that_is_silent_or_gone_is_not_waited_for(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.redis_server import redis_server

    with redis_server(tmp_path_factory.mktemp("own")) as own:
        client = connection(own.url)
        store, secret = RedisVerdicts(client, limit_bytes=2**20, keep_s=1000), RedisSecret(client)
        known = secret()
        own.signal(signal.SIGSTOP)
        begun_s = time.monotonic()
        for ask in (lambda: store.get(KEYS[0]), lambda: store.put(KEYS[0], b"x"), lambda: store.remove(KEYS[0])):
            with pytest.raises(StoreFailed) as failed:
                ask()
            assert PASSWORD not in str(failed.value)
        with pytest.raises(SecretUnknown):
            secret()
        assert time.monotonic() - begun_s < 6
        own.signal(signal.SIGCONT)
        # One that came back empty is given the secret that was in use.
        poll(lambda: own.client.flushall(), 5, "it is empty")
        assert secret() == known
        own.end()
        with pytest.raises(StoreFailed):
            store.get(KEYS[0])
        client.close()


def test_all_hosts_have_one_secret(redis: RedisServer) -> None:
    clients = [connection(redis.url) for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(lambda client: RedisSecret(client)(), clients))
    [secret] = secrets
    assert len(secret) == 32
    for client in clients:
        client.close()


def test_where_memory_has_run_out_results_are_dropped(store: RedisVerdicts, redis: RedisServer) -> None:
    for key in KEYS[:50]:
        store.put(key, b"x" * 100)
    redis.client.config_set("maxmemory", "1")
    try:
        with pytest.raises(StoreFailed, match="no memory left"):
            store.put(KEYS[60], b"x" * 100)
    finally:
        redis.client.config_set("maxmemory", "0")
    assert (kept(store), taken(redis)) == ([], 0)
