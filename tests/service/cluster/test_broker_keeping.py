"""What a Redis keeps of answers, and of itself, and for how long."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import pytest
from redis.exceptions import RedisError
from rq.job import Job as RQJob

from service.engines.frames import Frame
from service.engines.rq import broker as broker_module
from service.engines.rq.broker import LEAST_KEEP_S, Broker
from service.settings import without_password
from tests.redis_server import PASSWORD, RedisServer
from tests.service.cluster.brokers import ANSWER, answered, enqueue, job, lease_of, on, take


def test_a_secret_is_shared_and_a_redis_that_came_back_empty_is_given_it_again(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        assert [await broker.secret(mine) for mine in (b"first", b"second", b"first")] == [b"first"] * 3
        redis.client.flushall()
        assert [await broker.secret(mine) for mine in (b"first", b"third")] == [b"first"] * 2

    on(redis, act)


def test_full_memory_refuses_what_is_new_and_lets_what_is_there_come_to_its_end(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("before"))
        redis.client.config_set("maxmemory", "1")
        try:
            with pytest.raises(RedisError, match="memory"):
                await broker.enqueue(job("after"), most_waiting=None)
            [taken] = await take(broker)
            assert await broker.beat("host", 1, "", [lease_of(taken)]) == set()
            assert await broker.finish(lease_of(taken), ANSWER, keep_s=0, took_s=1)
            assert await answered(broker, "before") == ANSWER
        finally:
            redis.client.config_set("maxmemory", "0")

    on(redis, act)


async def done(broker: Broker, id: str, size: int, *, keep_s: int = 60) -> None:
    """A job that has come to an answer of a certain size."""
    await enqueue(broker, job(id, keep_s=keep_s))
    [taken] = await take(broker)
    assert await broker.finish(lease_of(taken), Frame("result", {"summary": {}}, bytes(size)), keep_s=keep_s, took_s=0)


async def kept(broker: Broker, *ids: str) -> list[str]:
    return [id for id in ids if await answered(broker, id) is not None]


def test_of_answers_that_may_be_asked_for_again_the_oldest_go_where_there_is_too_much_of_them(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "MOST_KEPT_BYTES", 40_000)

    async def act(broker: Broker) -> None:
        for id in "abcd":
            await done(broker, id, 10_000)
        # Nobody asks for this one again, and it goes soon.
        await done(broker, "unkept", 100_000, keep_s=0)
        assert await kept(broker, *"abcd") == ["b", "c", "d"]
        assert await broker.statuses(["a", "b"]) == [None, "finished"]
        await broker.forget("c")
        await done(broker, "e", 10_000)
        assert await kept(broker, *"abcde") == ["b", "d", "e"]
        # However large, whoever waits for it gets it.
        await done(broker, "f", 50_000)
        assert await kept(broker, *"abcdef", "unkept") == ["f", "unkept"]
        assert int(redis.client.get("rkgrade:kept-bytes") or 0) > 50_000  # type: ignore[arg-type]
        await broker.forget("f")
        assert redis.client.get("rkgrade:kept-bytes") == b"0"

    on(redis, act)


@pytest.mark.parametrize(("keep_s", "kept_s"), [(600, 600), (60, LEAST_KEEP_S), (0, LEAST_KEEP_S)])
def test_an_answer_is_kept_for_as_long_as_its_job_says_and_no_longer(
    redis: RedisServer, keep_s: int, kept_s: int
) -> None:
    """Long enough in any case for who waits for it to fetch it."""

    async def act(broker: Broker) -> None:
        await done(broker, "a", 10, keep_s=keep_s)
        left_s = {redis.client.ttl(key) for key in (RQJob.key_for("a"), "rkgrade:answer:a")}
        assert left_s <= {kept_s, kept_s - 1}

    on(redis, act)


def test_answers_whose_time_has_come_are_counted_no_more(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await done(broker, "old", 10_000)
        redis.client.zadd("rkgrade:kept", {"old": time.time() - 1})
        await done(broker, "new", 10)
        assert await kept(broker, "old", "new") == ["new"]
        assert int(redis.client.get("rkgrade:kept-bytes") or 0) < 3000  # type: ignore[arg-type]

    on(redis, act)


@pytest.mark.parametrize("end", ["cancelled in line", "cancelled", "late in line", "late", "done"])
def test_the_request_of_what_has_ended_takes_no_memory(redis: RedisServer, end: str) -> None:
    """A client that drops its own jobs, or gives them no time, would fill Redis with them."""

    async def act(broker: Broker) -> None:
        source = random.Random(1).randbytes(2**18).hex()
        await enqueue(broker, job("large", source=source, keep_s=3600, deadline_s=0.2 if "late" in end else None))
        leases = [] if end.endswith("in line") else [lease_of(taken) for taken in await take(broker)]
        if end.startswith("cancelled"):
            await broker.cancel("large")
        elif end == "done":
            assert await broker.finish(leases[0], ANSWER, keep_s=3600, took_s=0)
        else:
            await asyncio.sleep(0.3)
            assert await take(broker) == []
            await broker.beat("host", 1, "", leases)
        assert await broker.statuses(["large"]) == ["finished" if end == "done" else "canceled"]
        assert redis.client.memory_usage(RQJob.key_for("large")) < 5000
        assert redis.client.get("rkgrade:line-bytes") == b"0"

    on(redis, act)


def test_what_was_dropped_is_bounded_too_where_it_may_be_asked_for_again(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes little, and thousands come in a minute from a client that gives them no time."""
    monkeypatch.setattr(broker_module, "MOST_KEPT_BYTES", 30_000)

    async def act(broker: Broker) -> None:
        before = int(redis.client.info("memory")["used_memory_dataset"])
        names = [f"job-{number}" for number in range(400)]
        for name in names:
            await enqueue(broker, job(name, keep_s=3600))
            await broker.cancel(name)
        there = [name for name, status in zip(names, await broker.statuses(names), strict=True) if status is not None]
        assert there == names[-len(there) :]
        assert 5 < len(there) < 15
        assert int(redis.client.info("memory")["used_memory_dataset"]) - before < 100_000

    on(redis, act)


def test_no_error_and_no_log_tells_the_password() -> None:
    url = f"redis://user:{PASSWORD}@127.0.0.1:1/0"
    assert without_password(url) == "redis://127.0.0.1:1/0"

    async def act() -> Any:
        broker = Broker(url)
        with pytest.raises(RedisError) as caught:
            await broker.state("api")
        await broker.close()
        return caught.value

    assert PASSWORD not in str(asyncio.run(act()))
