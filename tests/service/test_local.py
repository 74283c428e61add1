"""What the in-process engine takes on; none of its workers has come up yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from service.contract import GradeRequest
from service.engines import admission
from service.engines.admission import Admission
from service.engines.base import Job, Summary
from service.engines.local import LocalEngine
from service.engines.workforce import Workforce
from service.errors import DeadlinePassed, QueueFull
from service.metrics import Metrics
from service.stores.problems import ProblemStore


def job(chars: int, *, deadline_s: float | None = None, client: str = "") -> Job:
    request = GradeRequest(problem="sha256:" + 64 * "0", language="python", source="x" * chars)
    return Job(request, 0.0, keep_s=60, deadline_s=deadline_s, client=client)


def unheard(summary: Summary) -> None:
    """Nobody cares what a job came to."""


async def taken(engine: LocalEngine, one: Job) -> bool:
    try:
        await engine.submit(one, unheard)
    except QueueFull:
        return False
    return True


def idle_engine(tmp_path: Path) -> LocalEngine:
    workforce = Workforce([], command=[], sweep=lambda: None, recreate=lambda: False, died=lambda: None)
    return LocalEngine(
        workforce,
        languages=(),
        queue_size=100,
        sandbox="",
        secure=True,
        graders={},
        store=ProblemStore(tmp_path),
        metrics=Metrics(),
    )


def on_an_engine(tmp_path: Path, act: Callable[[LocalEngine], Awaitable[None]]) -> None:
    async def run() -> None:
        engine = idle_engine(tmp_path)
        try:
            await act(engine)
        finally:
            await engine.close()

    asyncio.run(run())


def test_a_client_that_fills_the_line_keeps_nobody_else_out_of_it(tmp_path: Path) -> None:
    async def act(engine: LocalEngine) -> None:
        for _ in range(100):
            assert await taken(engine, job(1, client="many"))
            await asyncio.sleep(0)
        came = []
        for client in ("many", "one", "one", *map(str, range(20))):
            came.append(await taken(engine, job(1, client=client)))
            await asyncio.sleep(0)
        assert came[:3] == [False, True, False]
        # Nor do names without end make it longer than by an eighth.
        assert sum(came) == 12

    on_an_engine(tmp_path, act)


def test_requests_that_wait_take_no_more_memory_than_they_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_MOST_BYTES", 100_000)

    async def act(engine: LocalEngine) -> None:
        jobs = [job(30_000) for _ in range(3)]
        for one in jobs:
            await engine.submit(one, unheard)
            await asyncio.sleep(0)
        for refused in (engine.submit(job(30_000), unheard), engine.grade(job(30_000))):
            with pytest.raises(QueueFull) as error:
                await refused
            assert int(error.value.headers["Retry-After"]) >= 1
        await engine.submit(job(1000), unheard)
        assert await engine.forget(jobs[0].id, client="")
        async with asyncio.timeout(10):
            # It is stopped by and by.
            while not await taken(engine, job(30_000)):
                await asyncio.sleep(0)

    on_an_engine(tmp_path, act)


def test_a_batch_counts_with_all_its_requests_for_as_long_as_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_MOST_BYTES", 100_000)

    async def act(engine: LocalEngine) -> None:
        with engine.admission(90_000):
            with pytest.raises(QueueFull), engine.admission(20_000):
                pass
            with pytest.raises(QueueFull):
                await engine.submit(job(30_000), unheard)
            with engine.admission(5_000):
                pass
        with engine.admission(20_000):
            await engine.submit(job(30_000), unheard)

    on_an_engine(tmp_path, act)


def test_what_runs_in_its_place_does_not_wait() -> None:
    places = Admission(1, waiting=lambda: 0, waiting_bytes=lambda: 0, workers=lambda: 2, retry_after_s=lambda: 1)
    with places.place(1), places.place(1), places.place(1):
        places.check(1, newcomer=False)
        with pytest.raises(QueueFull), places.place(1):
            pass


def test_what_is_past_the_bound_by_itself_is_taken_where_nothing_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_MOST_BYTES", 1000)
    on_an_engine(tmp_path, lambda engine: engine.submit(job(30_000), unheard))


def test_jobs_whose_deadline_passes_while_they_wait_make_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_MOST_BYTES", 100_000)

    async def act(engine: LocalEngine) -> None:
        for _ in range(10):
            late = job(90_000, deadline_s=0.001)
            await engine.submit(late, unheard)
            async with asyncio.timeout(10):
                while (state := await engine.state(late.id, client="")) is not None and state.error is None:
                    await asyncio.sleep(0.001)
            assert state is not None
            assert isinstance(state.error, DeadlinePassed)

    on_an_engine(tmp_path, act)
