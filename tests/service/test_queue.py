"""Whose turn it is in the in-process engine, and what memory has to do with it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest

from service.contract import GradeRequest
from service.engines import queue as queue_module
from service.engines.base import Job, Priority
from service.engines.pending import Pending
from service.engines.queue import Queue

MIB = 2**20

_numbers = itertools.count()


def pending(id: str, *, client: str = "one", priority: Priority = Priority.GRADE, memory_mb: int = 256) -> Pending:
    request = GradeRequest(problem="sha256:" + 64 * "0", language="python", source="print(3)")
    work = Job(request, 0.0, id=id, client=client, memory_bytes=memory_mb * MIB)
    return Pending(next(_numbers), work, priority is Priority.BATCH, priority)


async def take(queue: Queue, within_s: float = 0.05) -> Pending | None:
    """What an idle worker gets; None where that is nothing."""
    death = asyncio.get_running_loop().create_future()
    taking = asyncio.create_task(queue.take(death))
    done, _ = await asyncio.wait({taking}, timeout=within_s)
    if done:
        return taking.result()
    death.set_result(None)
    assert await taking is None
    return None


async def taken_ids(queue: Queue, most: int) -> list[str]:
    found = [await take(queue) for _ in range(most)]
    return [one.work.id for one in found if one is not None]


def run(act: Callable[[], object]) -> None:
    async def running() -> None:
        await act()  # type: ignore[misc]

    asyncio.run(running())


def test_classes_of_priority_and_the_order_of_arrival() -> None:
    async def act() -> None:
        queue = Queue()
        for id, priority in (
            ("a", Priority.ASYNC),
            ("b", Priority.BATCH),
            ("g1", Priority.GRADE),
            ("g2", Priority.GRADE),
        ):
            queue.put(pending(id, priority=priority))
        assert (len(queue), queue.unadmitted) == (4, 3)
        assert await taken_ids(queue, 5) == ["g1", "g2", "b", "a"]

    run(act)


def test_what_waits_is_counted_wherever_it_comes_from_and_goes_to() -> None:
    async def act() -> None:
        queue = Queue()

        def counted() -> tuple[int, int]:
            assert queue.unadmitted_bytes == queue.unadmitted * one.work.request_bytes
            return len(queue), queue.unadmitted

        one, other, batch = pending("one"), pending("other"), pending("batch", priority=Priority.BATCH)
        for work in (one, other, batch):
            queue.put(work)
        assert counted() == (3, 2)
        assert queue.remove(other)
        assert not queue.remove(other)
        assert counted() == (2, 1)
        assert await take(queue) is one
        assert counted() == (1, 0)
        queue.put_first(one)
        assert counted() == (2, 1)
        queue.refuse_all()
        assert counted() == (0, 0)

    run(act)


def test_clients_take_turns_whatever_one_of_them_has_put() -> None:
    async def act() -> None:
        queue = Queue()
        for n in range(20):
            queue.put(pending(f"many-{n}", client="many"))
        for n in range(2):
            queue.put(pending(f"few-{n}", client="few"))
        assert sorted(await taken_ids(queue, 4)) == ["few-0", "few-1", "many-0", "many-1"]

    run(act)


def test_shares_are_of_time_not_of_jobs() -> None:
    async def act() -> None:
        queue = Queue()
        took_s = {"slow": 10.0, "quick": 1.0}
        done = {"slow": 0, "quick": 0}
        for client in took_s:
            for n in range(40):
                queue.put(pending(f"{client}-{n}", client=client))
        for _ in range(33):
            one = await take(queue)
            assert one is not None
            done[one.work.client] += 1
            queue.done(one, took_s[one.work.client])
        assert done["slow"] in (3, 4)

    run(act)


def test_what_comes_back_goes_first() -> None:
    async def act() -> None:
        queue = Queue()
        for id in ("first", "second"):
            queue.put(pending(id))
        one = await take(queue)
        assert one is not None
        queue.put_first(one)
        assert await taken_ids(queue, 2) == ["first", "second"]

    run(act)


def test_two_large_ones_do_not_run_together_and_one_too_large_runs_alone() -> None:
    async def act() -> None:
        queue = Queue(3072 * MIB)
        for id, memory_mb in (("first", 2048), ("second", 2048), ("huge", 9999)):
            queue.put(pending(id, client=id, memory_mb=memory_mb))
        one = await take(queue)
        assert one is not None
        assert await take(queue) is None
        # A worker that waits for it gets it as soon as there is room.
        death = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(queue.take(death))
        await asyncio.sleep(0)
        queue.done(one, 1.0)
        two = await waiting
        assert two is not None
        assert await take(queue) is None
        queue.done(two, 1.0)
        assert [one.work.id, two.work.id, *await taken_ids(queue, 1)] == ["first", "second", "huge"]

    run(act)


def test_small_ones_pass_a_large_one_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        queue = Queue(3072 * MIB)
        running = pending("running", memory_mb=2048)
        queue.put(running)
        assert await taken_ids(queue, 1) == ["running"]
        queue.put(pending("large", memory_mb=2048))
        queue.put(pending("small", client="other"))
        assert await taken_ids(queue, 1) == ["small"]
        queue.put(pending("small-too", client="other"))
        monkeypatch.setattr(queue_module, "_PATIENCE_S", 0.0)
        assert await taken_ids(queue, 1) == []
        queue.done(running, 1.0)
        assert await taken_ids(queue, 2) == ["large", "small-too"]

    run(act)


def test_what_is_removed_is_not_taken() -> None:
    async def act() -> None:
        queue = Queue()
        one, two = pending("one"), pending("two")
        queue.put(one)
        queue.put(two)
        assert "one" in queue
        assert queue.remove(one)
        assert not queue.remove(one)
        assert "one" not in queue
        assert await taken_ids(queue, 2) == ["two"]

    run(act)
