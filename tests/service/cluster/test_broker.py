"""A job's way into the queue on Redis and out of it, on a real one; and that RQ's own tools find it there."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import replace
from typing import Any

import pytest
import structlog
from rq import Queue
from rq.job import Job as RQJob
from rq.job import JobStatus
from rq.registry import StartedJobRegistry
from rq.serializers import JSONSerializer

from service.contract import GradeRequest
from service.engines.base import Job, Priority, Vetting
from service.engines.frames import Frame
from service.engines.rq import broker as broker_module
from service.engines.rq.broker import Broker, Full, Known
from service.engines.rq.reaching import check_line, unending
from service.engines.rq.records import Record, record
from service.errors import QueueFull
from tests.redis_server import RedisServer
from tests.service.cluster.brokers import ANSWER, answered, enqueue, job, lease_of, on, take


def test_a_job_is_taken_as_it_was_put_and_its_answer_comes_back(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        place = await broker.newest()
        work = Job(
            GradeRequest(problem="sha256:" + 64 * "a", language="cpp", source="int main() { } // é", id="mine"),
            0.0,
            index=3,
        )
        await enqueue(broker, record(work, Priority.BATCH, age_s=0.5))
        [taken] = await take(broker)
        assert isinstance(taken.work, Job)
        assert (taken.work.request, taken.work.index, taken.work.id) == (work.request, 3, work.id)
        assert 0.5 <= taken.work.accepted_s - taken.work.arrived_s < 0.6
        assert await answered(broker, work.id) is None
        assert await broker.finish(lease_of(taken), ANSWER, keep_s=0, took_s=0.1)
        assert await broker.ended_since(place, 1.0) != (place, [])
        assert await answered(broker, work.id) == ANSWER

    on(redis, act)


def test_a_vetting_travels_as_well(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, record(Vetting(b'{"kind": "stdio"}'), Priority.GRADE, age_s=0))
        [taken] = await take(broker)
        assert isinstance(taken.work, Vetting)
        assert taken.work.problem == b'{"kind": "stdio"}'

    on(redis, act)


def test_the_same_job_put_again_is_in_line_once(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("same"))
        assert await broker.enqueue(job("same"), most_waiting=None) == Known("")
        assert [taken.id for taken in await take(broker, 5)] == ["same"]

    on(redis, act)


@pytest.mark.parametrize(
    "fault", [Frame("fault", {"detail": ""}), Frame("result", {"summary": {"verdict": "internal_error"}}, b"{}")]
)
def test_a_fault_of_the_graders_is_told_and_its_job_run_anew_when_it_is_put_again(
    redis: RedisServer, fault: Frame
) -> None:
    async def act(broker: Broker) -> None:
        one = job()
        for answer in (fault, ANSWER):
            await enqueue(broker, one)
            assert await answered(broker, one.id) is None
            [taken] = await take(broker)
            assert await broker.finish(lease_of(taken), answer, keep_s=60, took_s=0.1)
            assert await answered(broker, one.id) == answer
        assert await broker.enqueue(one, most_waiting=None) == Known("")

    on(redis, act)


def test_who_waits_for_an_answer_goes_before_batches_and_those_before_what_nobody_waits_for(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(
            broker,
            job("a", priority=Priority.ASYNC),
            job("b", priority=Priority.BATCH),
            job("g", priority=Priority.GRADE),
        )
        assert [taken.id for taken in await take(broker, 3)] == ["g", "b", "a"]

    on(redis, act)


def test_clients_take_turns_whatever_one_of_them_has_put(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, *(job(f"many-{n}", client="many") for n in range(20)))
        await enqueue(broker, *(job(f"few-{n}", client="few") for n in range(2)))
        first = [taken.id for taken in await take(broker, 4)]
        assert sorted(first) == ["few-0", "few-1", "many-0", "many-1"]

    on(redis, act)


def test_shares_are_of_time_not_of_jobs(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        took_s = {"slow": 10.0, "quick": 1.0}
        done = {"slow": 0, "quick": 0}
        await enqueue(broker, *(job(client=client) for client in took_s for _ in range(40)))
        for _ in range(33):
            [taken] = await take(broker)
            client = redis.client.hget(RQJob.key_for(taken.id), "rk_client").decode()  # type: ignore[union-attr]
            done[client] += 1
            await broker.finish(lease_of(taken), ANSWER, keep_s=0, took_s=took_s[client])
        assert done["slow"] in (3, 4)

    on(redis, act)


def test_no_more_wait_than_may_and_idle_workers_count_for_nothing_waiting(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await broker.beat("host", 2, "", [])
        for _ in range(3):
            assert await broker.enqueue(job(), most_waiting=1) is None
        full = await broker.enqueue(job(), most_waiting=1)
        assert isinstance(full, Full)
        assert (full.waiting, full.workers) == (3, 2)
        # One that fills the line keeps nobody else out of it; nor do many.
        assert await broker.enqueue(job("late", client="two"), most_waiting=1) is None
        for client in ("two", "three"):
            assert isinstance(await broker.enqueue(job(client=client), most_waiting=1), Full)
        await broker.cancel("late")
        # What holds a place of its own comes all the same.
        assert await broker.enqueue(job(priority=Priority.BATCH), most_waiting=None) is None
        state = await broker.state("api")
        assert (state.waiting, state.unadmitted) == (4, 1)

    on(redis, act)


def test_what_waits_takes_no_more_of_redis_memory_than_it_may(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or one client's large sources would fill it, and nobody's grades be taken on any more."""
    monkeypatch.setattr(broker_module, "MOST_LINE_BYTES", 20_000)

    def large(id: str, **named: Any) -> Record:
        # Records are compressed.
        return job(id, source=random.Random(id).randbytes(6000).hex(), **named)

    async def held(broker: Broker) -> int:
        """What one more of its size is told to be too much beside; 0 where it is taken, and takes its leave again."""
        said = await broker.enqueue(large("next"), most_waiting=100)
        if isinstance(said, Full):
            return said.held_bytes
        await broker.cancel("next")
        return 0

    async def act(broker: Broker) -> None:
        await enqueue(broker, large("taken"), large("cancelled", priority=Priority.ASYNC))
        state = await broker.state("api")
        assert 12_000 < await held(broker) == state.line_bytes < 20_000
        with pytest.raises(QueueFull):
            check_line(replace(state, line_bytes=128 * 2**20))
        check_line(state)
        # What is small finds its place, and what holds one of its own in any case.
        assert await broker.enqueue(job("small"), most_waiting=100) is None
        assert await broker.enqueue(large("batch", priority=Priority.BATCH), most_waiting=None) is None
        # However it leaves the line, or comes back to it.
        [taken] = await take(broker)
        assert taken.id == "taken"
        await broker.cancel("cancelled")
        assert await held(broker) == 0
        await broker.give_back(lease_of(taken), "its worker died")
        assert await held(broker) > 0
        [taken] = await take(broker)
        assert await held(broker) == 0
        redis.client.delete(RQJob.key_for("batch"))
        await broker.sweep()
        await enqueue(broker, large("late", deadline_s=0.01))
        await asyncio.sleep(0.02)
        [small] = await take(broker, 5)
        assert small.id == "small"
        assert int(redis.client.get("rkgrade:line-bytes")) == 0  # type: ignore[arg-type]
        assert redis.client.hlen("rkgrade:line-sizes") == 0
        # Where nothing else waits there is room for anything.
        monkeypatch.setattr(broker_module, "MOST_LINE_BYTES", 10)
        assert await held(broker) == 0

    on(redis, act)


def test_a_job_that_does_not_fit_into_memory_lets_others_by_but_not_for_ever(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("large", memory_mb=2048), job("small", client="other"))
        assert [taken.id for taken in await take(broker, 1, free_mb=1024, busy=True)] == ["small"]
        await enqueue(broker, job("small-too", client="other"))
        # As if it had waited for long.
        redis.client.hset(RQJob.key_for("large"), "rk_queued", "1")
        assert await take(broker, 2, free_mb=1024, busy=True) == []
        assert [taken.id for taken in await take(broker, 1, free_mb=2048, busy=True)] == ["large"]

    on(redis, act)


def test_two_large_jobs_are_not_taken_together_and_one_too_large_is_taken_alone(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("first", memory_mb=2048), job("second", client="other", memory_mb=2048))
        assert [taken.id for taken in await take(broker, 2, free_mb=3072)] == ["first"]
        assert [taken.id for taken in await take(broker, 2, free_mb=1024)] == ["second"]

    on(redis, act)


def test_a_job_whose_deadline_passed_is_dropped(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("late", deadline_s=0.05), job("in-time", deadline_s=60))
        await asyncio.sleep(0.1)
        assert [taken.id for taken in await take(broker, 2)] == ["in-time"]
        [ended] = await broker.outcomes(["late"])
        assert ended is not None
        assert (ended.status, ended.why) == ("canceled", "deadline")

    on(redis, act)


def test_a_job_in_line_is_cancelled_at_once(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("unwanted"))
        assert await broker.cancel("unwanted") == "queued"
        assert await take(broker) == []
        assert await broker.cancel("unknown") == ""

    on(redis, act)


def test_rqs_own_tools_see_queue_jobs_and_leases(redis: RedisServer) -> None:
    on(redis, lambda broker: enqueue(broker, job("waits"), job("waits-too")))
    queue = Queue("rkgrade-grade", connection=redis.client, serializer=JSONSerializer)
    assert queue in Queue.all(connection=redis.client, serializer=JSONSerializer)
    assert queue.job_ids == ["waits", "waits-too"]
    fetched = RQJob.fetch("waits", redis.client, JSONSerializer)
    assert fetched.get_status() is JobStatus.QUEUED
    assert json.loads(fetched.kwargs["request"])["language"] == "python"
    on(redis, take)
    assert StartedJobRegistry("rkgrade-grade", connection=redis.client).get_job_ids() == ["waits"]
    assert RQJob.fetch("waits", redis.client, JSONSerializer).get_status() is JobStatus.STARTED
    assert queue.job_ids == ["waits-too"]


def test_what_is_queued_is_json_and_nothing_is_unpickled(redis: RedisServer) -> None:
    on(redis, lambda broker: enqueue(broker, job("plain", source="print('find me')")))
    arguments = JSONSerializer.loads(RQJob.fetch("plain", redis.client, JSONSerializer).data)
    assert "find me" in arguments[3]["request"]
    # A record in another form is answered as our fault, whatever it would do; the next one is taken.
    redis.client.hset(RQJob.key_for("plain"), "data", b"cos\nsystem\n(S'touch /tmp/never'\ntR.")

    # So is one of another version's, of which the log tells no word.
    arguments[3]["request"] = json.dumps({"new": {"source": "find me"}, "source": ["find me"], "problem": "find me"})
    on(redis, lambda broker: enqueue(broker, job("newer")))
    redis.client.hset(RQJob.key_for("newer"), "data", JSONSerializer.dumps(arguments))
    on(redis, lambda broker: enqueue(broker, job("spoiled")))
    redis.client.hset(RQJob.key_for("spoiled"), "rk_keep_s", "long")

    async def act(broker: Broker) -> None:
        await enqueue(broker, job("next"))
        assert [taken.id for taken in await take(broker, 4)] == ["next"]
        for id in ("plain", "newer", "spoiled"):
            answer = await answered(broker, id)
            assert answer is not None
            assert answer.kind == "fault"

    with structlog.testing.capture_logs() as lines:
        on(redis, act)
    assert {line.get("job") for line in lines} == {"plain", "newer", "spoiled"}
    assert "find me" not in str(lines)


@pytest.mark.parametrize("answer", [b"", b"\xff" * 64, b"\0\0\0\2\0\0\0\0[]", b"\0\0\0\2\0\0\0\0{}"])
def test_what_stands_for_an_answer_and_is_none_is_a_fault(redis: RedisServer, answer: bytes) -> None:
    async def act(broker: Broker) -> Frame | None:
        await enqueue(broker, job("one"))
        redis.client.hset(RQJob.key_for("one"), "status", "finished")
        redis.client.set("rkgrade:answer:one", answer)
        return await answered(broker, "one")

    found = on(redis, act)
    assert found is not None
    assert found.kind == "fault"


def test_what_answers_rest_on_begins_anew_where_it_fails_and_tells_of_it() -> None:
    async def act() -> None:
        begun = asyncio.Semaphore(0)

        async def work() -> None:
            begun.release()
            raise ZeroDivisionError

        task = asyncio.create_task(unending(work))
        async with asyncio.timeout(10):
            await begun.acquire()
            await begun.acquire()
        task.cancel()

    with structlog.testing.capture_logs() as lines:
        asyncio.run(act())
    assert lines[0]["exc_info"]


def test_work_wakes_who_waits_for_it(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        waiting = asyncio.create_task(broker.work_may_wait(4.0))
        started = time.monotonic()
        while not redis.client.info("clients")["blocked_clients"]:  # type: ignore[index]
            await asyncio.sleep(0.02)
        await enqueue(broker, job())
        await waiting
        assert time.monotonic() - started < 3

    on(redis, act)


@pytest.mark.parametrize("client", ["", "one"])
def test_what_waits_is_counted_for_as_long_as_it_waits_whether_its_client_has_a_name_or_not(
    redis: RedisServer, client: str
) -> None:
    async def act(broker: Broker) -> None:
        await enqueue(broker, job("first", client=client), job("second", client=client))
        await broker.sweep()
        await asyncio.sleep(0.2)
        state = await broker.state("api")
        assert (state.waiting, state.oldest_s > 0.1) == (2, True)
        assert isinstance(await broker.enqueue(job(client=client), most_waiting=2), Full)

    on(redis, act)


def test_a_burst_is_queued_over_a_few_connections(redis: RedisServer) -> None:
    async def act(broker: Broker) -> None:
        before = len(redis.client.client_list())
        await asyncio.gather(*(enqueue(broker, job()) for _ in range(200)))
        assert len(redis.client.client_list()) - before <= 16
        assert (await broker.state("api")).waiting == 200

    on(redis, act)
