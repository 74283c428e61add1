"""What the in-process engine keeps of jobs, and for how long."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
import weakref
from collections.abc import Awaitable, Callable

import pytest

from service.contract import GradeRequest
from service.engines.base import Graded, Job, Summary
from service.engines.book import JobBook
from service.errors import DeadlinePassed, InternalError, InvalidRequest, JobDeleted, KeyReused, ServiceError

MIB = 2**20


def job(id: str, *, source: str = "print(3)", keep_s: int = 60, fingerprint: str = "the same") -> Job:
    request = GradeRequest(problem="sha256:" + 64 * "0", language="python", source=source)
    return Job(request, 0.0, id=id, client="one", keep_s=keep_s, fingerprint=fingerprint)


def graded(verdict: str = "accepted", size_bytes: int = 2) -> Graded:
    summary = Summary("python", verdict, None, {}, None, 0, 0, 0.0, 0.0, 0.0, 0)
    return Graded(b"x" * size_bytes, summary)


def coming_to(*outcomes: Graded | Exception) -> Callable[[Job], Awaitable[Graded]]:
    """Grades one job after another so, holding the job meanwhile as the engine does."""
    left = iter(outcomes)

    async def run(job: Job) -> Graded:
        try:
            await asyncio.sleep(0)
            outcome = next(left)
            if isinstance(outcome, Exception):
                raise outcome
        except ValueError as error:
            raise InternalError("led to by another") from error
        return outcome

    return run


async def do(book: JobBook, job: Job, run: Callable[[Job], Awaitable[Graded]]) -> Graded | BaseException:
    async def begin() -> Graded:
        return await run(job)

    [outcome] = await asyncio.gather(book.join(job, begin).graded(), return_exceptions=True)
    return outcome


@pytest.mark.parametrize("made", [graded, DeadlinePassed, lambda: InvalidRequest.at("source", "no"), ValueError])
def test_nothing_of_a_request_is_held_once_its_job_has_ended(made: Callable[[], Graded | Exception]) -> None:
    async def scenario() -> bool:
        book = JobBook()
        one = job("a")
        request = weakref.ref(one.request)
        await do(book, one, coming_to(made()))
        assert book.get("a") is not None
        del one
        await asyncio.sleep(0)
        # Frames and errors refer to one another.
        gc.collect()
        return request() is None

    assert asyncio.run(scenario())


def test_what_a_job_failed_of_can_be_asked_for_and_tells_what_it_told() -> None:
    async def scenario() -> None:
        book = JobBook()
        refused = InvalidRequest.at("source", "no")
        assert await do(book, job("a"), coming_to(refused)) is refused
        kept = book.get("a")
        assert kept is not None
        assert isinstance(kept.came_to, InvalidRequest)
        assert (kept.came_to.detail, kept.came_to.errors) == (refused.detail, refused.errors)
        assert (str(kept.came_to), kept.came_to.__traceback__) == (str(refused), None)

    asyncio.run(scenario())


def test_a_key_is_told_apart_from_another_of_the_same_id_after_its_job_has_ended() -> None:
    async def scenario() -> None:
        book, run = JobBook(), coming_to(graded())
        first = await do(book, job("a"), run)
        assert await do(book, job("a"), run) is first
        with pytest.raises(KeyReused):
            await do(book, job("a", fingerprint="another"), run)

    asyncio.run(scenario())


@pytest.mark.parametrize("fault", [graded("internal_error"), DeadlinePassed(), InternalError("it broke")])
def test_a_fault_of_the_graders_is_told_but_tried_anew_when_asked_again(fault: Graded | ServiceError) -> None:
    async def scenario() -> None:
        book, run = JobBook(), coming_to(fault, graded())
        assert await do(book, job("a"), run) is fault
        assert book.get("a") is not None
        assert await do(book, job("a"), run) == graded()
        assert book.bytes < 2 * 4096 + 10

    asyncio.run(scenario())


def test_all_that_is_kept_is_counted_and_bounded_and_the_oldest_goes_first() -> None:
    async def scenario() -> None:
        book = JobBook(MIB)
        for number in range(20):
            await do(book, job(str(number)), coming_to(graded(size_bytes=100_000)))
        assert [number for number in range(20) if book.get(str(number))] == list(range(10, 20))
        for number in range(1000):
            await do(book, job(f"failed {number}"), coming_to(InvalidRequest.at("source", "x" * 1000)))
        assert book.get("19") is None
        assert book.bytes <= MIB
        for number in range(1000):
            book.drop(f"failed {number}")
        assert book.bytes == 0

    asyncio.run(scenario())


def test_no_less_is_counted_than_jobs_take() -> None:
    async def scenario() -> tuple[int, int]:
        book = JobBook()
        tracemalloc.start()
        for number in range(500):
            outcome: Graded | Exception = DeadlinePassed() if number % 2 else graded(size_bytes=1000)
            await do(book, job(f"{number:032}", source="é" * 10_000), coming_to(outcome))
        taken_bytes, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return taken_bytes, book.bytes

    taken_bytes, counted_bytes = asyncio.run(scenario())
    assert taken_bytes <= counted_bytes


def test_a_job_is_forgotten_when_its_time_is_over_and_no_earlier() -> None:
    async def scenario() -> None:
        book = JobBook()
        await do(book, job("at once", keep_s=0), coming_to(graded()))
        await do(book, job("later"), coming_to(graded()))
        assert (book.get("at once"), book.get("later") is None) == (None, False)

    asyncio.run(scenario())


def test_a_job_that_is_dropped_is_stopped() -> None:
    async def scenario() -> None:
        book, stopped = JobBook(), asyncio.Event()

        async def begin() -> Graded:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return graded()

        kept = book.join(job("a"), begin)
        await asyncio.sleep(0)
        book.drop("a")
        with pytest.raises(JobDeleted):
            await kept.graded()
        assert (stopped.is_set(), book.get("a"), book.bytes) == (True, None, 0)

    asyncio.run(scenario())
