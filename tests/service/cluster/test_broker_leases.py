"""Jobs on Redis whose workers, or whose askers, have gone."""

from __future__ import annotations

import asyncio
import time

import pytest
from rq.job import Job as RQJob
from rq.registry import FailedJobRegistry
from rq.serializers import JSONSerializer
from rq.worker import BaseWorker

from service.engines.frames import Frame
from service.engines.rq.broker import Broker
from service.engines.rq.offers import Offer
from service.engines.rq.registration import registered
from tests.redis_server import RedisServer
from tests.service.cluster.brokers import ANSWER, answered, enqueue, job, lapse, lease_of, on, take


def test_a_job_that_runs_past_its_deadline_is_given_up(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("late", deadline_s=0.05))
        [taken] = await take(broker)
        await asyncio.sleep(0.1)
        assert await broker.beat("host", 1, "", [lease_of(taken)]) == {taken.execution}
        [ended] = await broker.outcomes(["late"])
        assert ended is not None
        assert (ended.status, ended.why) == ("canceled", "deadline")

    on(redis, act)


def test_a_job_that_runs_is_given_up_at_its_hosts_next_beat(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("unwanted"), job("wanted"))
        taken = await take(broker, 2)
        leases = [lease_of(one) for one in taken]
        assert await broker.beat("host", 1, "", leases) == set()
        assert await broker.cancel("unwanted") == "started"
        assert await broker.beat("host", 1, "", leases) == {one.execution for one in taken if one.id == "unwanted"}
        [unwanted] = [lease for lease in leases if lease.id == "unwanted"]
        await broker.give_back(unwanted, "")
        assert await take(broker) == []

    on(redis, act)


def test_what_was_cancelled_while_it_ran_may_be_asked_for_anew_at_once(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("again"))
        [first] = await take(broker)
        assert await broker.cancel("again") == "started"
        await enqueue(broker, job("again"))
        [second] = await take(broker)
        # Its first host has not yet heard that it is to stop.
        assert await broker.beat("host", 2, "", [lease_of(first), lease_of(second)]) == {first.execution}
        assert await broker.give_back(lease_of(first), "") is False
        assert await broker.finish(lease_of(second), ANSWER, keep_s=0, took_s=1)

    on(redis, act)


@pytest.mark.parametrize("ended", ["cancelled", "late"])
@pytest.mark.parametrize("next_is", ["in line", "taken"])
def test_no_answer_is_taken_for_that_of_what_stands_under_its_id_by_now(
    redis: RedisServer, ended: str, next_is: str
) -> None:
    """As from a host that was cut off while its job was dropped, and its key used for another program."""

    async def act(broker: Broker) -> None:
        await enqueue(broker, job("again", deadline_s=0.05 if ended == "late" else None))
        [first] = await take(broker)
        if ended == "late":
            await asyncio.sleep(0.1)
            await broker.beat("host", 1, "", [lease_of(first)])
        else:
            await broker.cancel("again")
        await enqueue(broker, job("again", source="print(4)"))
        taken = await take(broker) if next_is == "taken" else []
        assert not await broker.finish(lease_of(first), Frame("result", {}, b"of another"), keep_s=0, took_s=1)
        [second] = taken or await take(broker)
        assert await broker.finish(lease_of(second), ANSWER, keep_s=0, took_s=1)
        assert await answered(broker, "again") == ANSWER

    on(redis, act)


def test_what_a_silent_host_holds_is_anyones(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("held"))
        await lapse(broker, monkeypatch)
        [first] = await take(broker, host="silent")
        assert await broker.sweep() == ["held"]
        [second] = await take(broker, host="other")
        # The silent one comes back: its beat tells it that the job is not its own any more.
        assert await broker.beat("silent", 1, "", [lease_of(first)]) == {first.execution}
        assert await broker.finish(lease_of(second), ANSWER, keep_s=0, took_s=1)
        assert not await broker.finish(lease_of(first), Frame("result", {}, b"late"), keep_s=0, took_s=1)
        assert await answered(broker, "held") == ANSWER

    on(redis, act)


def test_an_answer_that_comes_late_is_as_good_as_its_repetition(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("held"))
        await lapse(broker, monkeypatch)
        [first] = await take(broker, host="silent")
        assert await broker.sweep() == ["held"]
        assert await broker.finish(lease_of(first), ANSWER, keep_s=0, took_s=1)
        # Nobody does it again.
        assert await take(broker) == []

    on(redis, act)


def test_a_job_that_takes_three_workers_with_it_is_set_aside_with_its_causes(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("deadly"), job("next"))
        for death in (1, 2, 3):
            [taken] = await take(broker)
            assert taken.id == "deadly"
            assert await broker.give_back(lease_of(taken), f"death {death}") is (death == 3)
        assert [taken.id for taken in await take(broker, 2)] == ["next"]
        [ended] = await broker.outcomes(["deadly"])
        assert ended is not None
        assert (ended.status, ended.why) == ("failed", "death 1; death 2; death 3")

    on(redis, act)
    registry = FailedJobRegistry("rkgrade-grade", connection=redis.client, serializer=JSONSerializer)
    assert registry.get_job_ids() == ["deadly"]
    result = RQJob.fetch("deadly", redis.client, JSONSerializer).latest_result()
    assert result is not None
    assert result.exc_string == "death 1; death 2; death 3"


def test_a_job_set_aside_is_run_again_when_rq_is_told_to(redis: RedisServer) -> None:
    async def kill(broker: Broker) -> None:
        await enqueue(broker, job("deadly"))
        for _ in range(3):
            [taken] = await take(broker)
            await broker.give_back(lease_of(taken), "death")

    on(redis, kill)
    FailedJobRegistry("rkgrade-grade", connection=redis.client, serializer=JSONSerializer).requeue("deadly")

    async def again(broker: Broker) -> None:
        await broker.sweep()
        [taken] = await take(broker)
        assert taken.id == "deadly"
        assert await broker.finish(lease_of(taken), ANSWER, keep_s=0, took_s=1)

    on(redis, again)


def test_a_job_given_back_without_fault_counts_no_attempt(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("moved"))
        for _ in range(5):
            [taken] = await take(broker)
            assert await broker.give_back(lease_of(taken), "") is False
        assert [taken.id for taken in await take(broker)] == ["moved"]

    on(redis, act)


def test_hosts_are_listed_as_workers_of_rq(redis: RedisServer) -> None:
    async def act() -> None:
        listed = asyncio.create_task(registered(redis.url, "a-host"))
        while not await asyncio.to_thread(BaseWorker.all_keys, redis.client):
            await asyncio.sleep(0.02)
        [worker] = await asyncio.to_thread(BaseWorker.all, redis.client)
        assert worker.name == "a-host"
        listed.cancel()
        await asyncio.gather(listed, return_exceptions=True)
        assert await asyncio.to_thread(BaseWorker.all_keys, redis.client) == []

    asyncio.run(act())


def silence(redis: RedisServer, api: str) -> None:
    """As if nothing had been heard of that API for long."""
    redis.client.zadd("rkgrade:apis", {api: time.time() - 1})


def test_what_an_api_that_has_gone_was_asked_for_is_dropped_whether_it_waits_or_runs(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("runs", api="gone"))
        [running] = await take(broker)
        assert await broker.beat("host", 1, "", [lease_of(running)]) == set()
        await enqueue(broker, job("waits", api="gone"), job("of-another", api="lives"), job("of-nobody"))
        silence(redis, "gone")
        assert [taken.id for taken in await take(broker, 5)] == ["of-another", "of-nobody"]
        assert await broker.beat("host", 1, "", [lease_of(running)]) == {running.execution}
        ended = await broker.outcomes(["waits", "runs"])
        assert [(one.status, one.why) for one in ended if one is not None] == [("canceled", "abandoned")] * 2

    on(redis, act)


def test_what_may_be_asked_for_again_outlives_the_api_that_took_it(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("kept", api="gone", keep_s=60))
        silence(redis, "gone")
        assert [taken.id for taken in await take(broker, 5)] == ["kept"]

    on(redis, act)


def test_an_api_that_looks_at_the_cluster_or_queues_something_is_there(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("first", api="api"))
        silence(redis, "api")
        await broker.state("api")
        assert [taken.id for taken in await take(broker, 5)] == ["first"]
        silence(redis, "api")
        await broker.sweep()
        assert redis.client.zcard("rkgrade:apis") == 0
        await enqueue(broker, job("second", api="api"))
        assert [taken.id for taken in await take(broker, 5)] == ["second"]

    on(redis, act)


def test_what_a_host_of_another_version_offers_ends_nothing(redis: RedisServer) -> None:
    offer = Offer(sandbox="nsjail", secure=True, languages=(), graders={})

    async def act(broker: Broker) -> None:
        await broker.beat("ours", 2, offer.model_dump_json(), [])
        await broker.beat("newer", 1, '{"box": "nsjail", "secure": true}', [])
        for _ in range(2):
            state = await broker.state("api")
            assert (state.workers, state.offers) == (3, (offer,))

    on(redis, act)
