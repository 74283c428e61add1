"""What both clients do beyond asking: problems sent once, deadlines, compression, and batches that break off."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import zstandard

from rl_client import compression, patience
from rl_client.async_client import AsyncGrader
from rl_client.compression import chosen
from rl_client.encoded import EncodedProblem
from rl_client.errors import DeadlinePassed, GraderUnfit, GraderUnreachable, Refused, UnknownProblem
from service.contract import GradeRequest, GradeResult, LimitOverrides, StdioProblem, StdioTest, Verdict
from tests.rl_client.answering import Asked, answering
from tests.rl_client.clients import Connect
from tests.rl_client.results import graded
from tests.serving import Server, poll

SUM = StdioProblem(kind="stdio", tests=(StdioTest(input="1 2\n", output="3\n"),))
ENCODED = EncodedProblem.of(SUM)
RIGHT = GradeRequest(problem=SUM, language="python", source="print(sum(map(int, input().split())))")
BY_ID = RIGHT.model_copy(update={"problem": ENCODED.id})
WRONG = RIGHT.model_copy(update={"source": "print(4)"})

NOT_FOUND = {"type": "urn:rkgrade:error:not-found", "detail": "no such problem"}
TOO_LATE = {"type": "urn:rkgrade:error:deadline-passed", "detail": "the deadline passed"}
RESULT = graded((4, Verdict.ACCEPTED)).model_dump(mode="json")

Answer = tuple[int, dict[str, str], object]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_DELAY_S", 0.01)


def line(index: int, **fields: object) -> bytes:
    return json.dumps(RESULT | {"index": index} | fields).encode() + b"\n"


def items(one: Asked) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(one.body)["items"]
    return found


# ---------------------------------------------------------------------------------------------------------------
# Problems


def test_a_problem_that_comes_with_many_requests_is_sent_once_and_goes_by_its_id(connect: Connect) -> None:
    asked: Counter[str] = Counter()

    def reply(one: Asked) -> Answer:
        asked[one.path] += 1
        if one.method == "PUT":
            time.sleep(0.05)
            return 201, {}, {"id": ENCODED.id}
        assert json.loads(one.body)["problem"] == ENCODED.id
        assert asked["/problems"] == 1
        return 200, {}, RESULT

    with answering(reply) as url, connect(url) as client, ThreadPoolExecutor(12) as threads:
        results = list(threads.map(client.grade, [RIGHT] * 24))
    assert asked == {"/problems": 1, "/grade": 24}
    assert {result.verdict for result in results} == {Verdict.ACCEPTED}


def test_a_problem_that_the_grader_has_lost_is_sent_again(connect: Connect) -> None:
    asked: list[str] = []

    def reply(one: Asked) -> Answer:
        asked.append(one.path)
        if one.method == "PUT":
            return 201, {}, {"id": ENCODED.id}
        return (404, {}, NOT_FOUND) if asked.count("/grade") == 2 else (200, {}, RESULT)

    with answering(reply) as url, connect(url) as client:
        for _ in range(2):
            client.grade(RIGHT)
    assert asked == ["/problems", "/grade", "/grade", "/problems", "/grade"]


def test_a_problem_that_went_by_its_id_cannot_be_sent_again(connect: Connect) -> None:
    with (
        answering(lambda _: (404, {}, NOT_FOUND)) as url,
        connect(url) as client,
        pytest.raises(UnknownProblem),
    ):
        client.grade(BY_ID)


def test_one_refusal_of_a_problem_leaves_the_next_try_its_turn(connect: Connect) -> None:
    answers = iter([(422, {}, {"detail": "no", "field": "checker"}), (201, {}, {"id": ENCODED.id})])
    with answering(lambda _: next(answers)) as url, connect(url) as client:
        with pytest.raises(Refused, match="checker: no"):
            client.put_problem(ENCODED)
        client.put_problem(ENCODED)
    assert next(answers, None) is None


# ---------------------------------------------------------------------------------------------------------------
# Deadlines


def test_the_grader_is_told_of_the_deadline_and_of_what_is_left_of_it(connect: Connect) -> None:
    told: list[float] = []

    def reply(one: Asked) -> Answer:
        told.append(float(one.headers["X-Deadline-S"]))
        return (503, {}, {}) if len(told) < 3 else (200, {}, RESULT)

    with answering(reply) as url, connect(url) as client:
        client.grade(BY_ID, deadline_s=20)
    assert 20 >= told[0] > told[1] > told[2] > 15


def test_a_deadline_that_the_grader_says_has_passed(connect: Connect) -> None:
    asked: list[Asked] = []

    def reply(one: Asked) -> Answer:
        asked.append(one)
        return 504, {}, TOO_LATE

    with answering(reply) as url, connect(url) as client, pytest.raises(DeadlinePassed, match="had 5 s"):
        client.grade(BY_ID, deadline_s=5)
    assert len(asked) == 1


def test_a_grader_that_answers_nothing_by_the_deadline(connect: Connect) -> None:
    over = threading.Event()

    def reply(_: Asked) -> Answer:
        over.wait(30)
        return 200, {}, RESULT

    with answering(reply) as url, connect(url) as client:
        started = time.monotonic()
        with pytest.raises(DeadlinePassed):
            client.grade(BY_ID, deadline_s=0.3)
        assert 0.25 < time.monotonic() - started < 10
        over.set()


def test_no_wait_is_begun_that_would_outlast_the_deadline(connect: Connect) -> None:
    with answering(lambda _: (503, {"Retry-After": "25"}, {})) as url, connect(url) as client:
        started = time.monotonic()
        with pytest.raises(DeadlinePassed, match="it answers 503"):
            client.grade(BY_ID, deadline_s=20)
        assert time.monotonic() - started < 5


def test_a_deadline_lies_in_the_future(connect: Connect) -> None:
    with connect("http://127.0.0.1:9") as client, pytest.raises(ValueError, match="deadline_s is 0"):
        client.grade(BY_ID, deadline_s=0)


@pytest.mark.jail
def test_a_real_grader_drops_what_is_too_late(connect: Connect, grader: Server) -> None:
    sleeper = RIGHT.model_copy(update={"source": "import time\ntime.sleep(20)"})
    with connect(grader.url) as client:
        started = time.monotonic()
        with pytest.raises(DeadlinePassed):
            client.grade(sleeper, deadline_s=1.0)
        assert time.monotonic() - started < 3
        assert client.grade(RIGHT, deadline_s=60).category == "correct"


# ---------------------------------------------------------------------------------------------------------------
# Compression


DECODE: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.decompress, "zstd": zstandard.decompress, "none": bytes}


@pytest.mark.parametrize("coding", DECODE)
def test_large_bodies_are_compressed_and_small_ones_are_not(connect: Connect, coding: str) -> None:
    large = BY_ID.model_copy(update={"source": "# " + "x" * compression.LEAST_BYTES})
    asked: list[Asked] = []

    def reply(one: Asked) -> Answer:
        asked.append(one)
        return 200, {}, RESULT

    with answering(reply) as url, connect(url, compression=coding) as client:
        client.grade(large)
        client.grade(BY_ID)
    assert [one.headers.get("Content-Encoding") for one in asked] == [None if coding == "none" else coding, None]
    assert GradeRequest.model_validate_json(DECODE[coding](asked[0].body)) == large
    assert (len(asked[0].body) < 1000) == (coding != "none")


@pytest.mark.jail
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_real_grader_reads_what_is_compressed(connect: Connect, grader: Server, coding: str) -> None:
    text = " ".join(map(str, range(100_000)))
    problem = StdioProblem(kind="stdio", tests=(StdioTest(input=text, output=str(sum(range(100_000))), name=coding),))
    with connect(grader.url, compression=coding) as client:
        assert client.grade(RIGHT.model_copy(update={"problem": problem})).category == "correct"


def test_how_bodies_are_sent_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("http://127.0.0.1:8000", "http://localhost", "http://[::1]:1"):
        assert chosen("auto", url) == "none"
    assert chosen("auto", "http://grader.example:8000") == "zstd"
    assert chosen("gzip", "http://localhost") == "gzip"
    monkeypatch.setattr(compression, "find_spec", lambda _: None)
    assert chosen("auto", "http://grader.example:8000") == "gzip"
    with pytest.raises(ValueError, match="needs the package zstandard"):
        chosen("zstd", "http://grader.example:8000")
    with pytest.raises(ValueError, match="auto, zstd, gzip or none"):
        chosen("brotli", "http://grader.example:8000")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------------
# Batches


@pytest.mark.jail
def test_a_real_batch_comes_as_it_ends(connect: Connect, grader: Server) -> None:
    requests = [WRONG if number % 3 == 0 else RIGHT for number in range(20)]
    with connect(grader.url) as client:
        found = {result.index: result for result in client.grade_batch(requests)}
        assert list(client.grade_batch([])) == []
    assert sorted(found) == list(range(20))  # type: ignore[type-var]
    for number in range(20):
        assert found[number].category == ("correctness_failure" if number % 3 == 0 else "correct")


@pytest.mark.jail
def test_what_a_real_grader_refuses_of_a_batch_is_named(connect: Connect, grader: Server) -> None:
    requests = [RIGHT, RIGHT, RIGHT.model_copy(update={"language": "cobol"})]
    with connect(grader.url) as client, pytest.raises(Refused, match=r"items\[2\]\.language"):
        list(client.grade_batch(requests))


def test_a_batch_that_breaks_off_is_asked_for_what_is_missing(connect: Connect) -> None:
    """Of five items the first answer has two, in the middle of a line; the second refuses; the third has none; the last
    has the rest, in pieces that no line ends with.
    """
    asked: list[list[str]] = []

    def reply(one: Asked) -> Answer:
        asked.append([item["id"] for item in items(one)])
        match len(asked):
            case 1:
                return 200, {"Content-Length": "100000", "Connection": "close"}, line(3) + line(0) + line(1)[:50]
            case 2:
                return 503, {}, {}
            case 3:
                return 200, {}, b""
        return 200, {}, line(1) + line(2) + line(0, id="a\u2028b")

    requests = [BY_ID.model_copy(update={"id": f"n{number}"}) for number in range(5)]
    with answering(reply) as url, connect(url) as client:
        found = list(client.grade_batch(requests))
    assert [result.index for result in found] == [3, 0, 2, 4, 1]
    assert asked == [["n0", "n1", "n2", "n3", "n4"], *[["n1", "n2", "n4"]] * 3]
    assert found[-1].id == "a\u2028b"


def test_large_batches_go_in_parts(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rl_client.exchange.MAX_BATCH_ITEMS", 3)
    monkeypatch.setattr("rl_client.exchange.BATCH_BYTES", 1000)
    sizes: list[int] = []

    def reply(one: Asked) -> Answer:
        sizes.append(len(items(one)))
        return 200, {}, b"".join(line(index) for index in range(sizes[-1]))

    requests = [BY_ID] * 4 + [BY_ID.model_copy(update={"source": "x" * 2000})] + [BY_ID]
    with answering(reply) as url, connect(url) as client:
        assert [result.index for result in client.grade_batch(requests)] == list(range(6))
    assert sizes == [3, 1, 1, 1]


def test_a_refusal_names_the_item_as_the_caller_counts(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rl_client.exchange.MAX_BATCH_ITEMS", 2)

    def reply(one: Asked) -> Answer:
        if "bad" in one.body.decode():
            return 422, {}, {"detail": "items[1].language: no such", "field": "items[1].language"}
        return 200, {}, line(0) + line(1)

    requests = [BY_ID, BY_ID, BY_ID, BY_ID.model_copy(update={"language": "bad"})]
    with answering(reply) as url, connect(url) as client, pytest.raises(Refused) as refused:
        list(client.grade_batch(requests))
    assert refused.value.field == "items[3].language"
    assert "items[3].language: no such" in str(refused.value)


@pytest.mark.parametrize("index", [None, 1, 7])
def test_a_batch_answered_with_what_was_not_asked_for(connect: Connect, index: int | None) -> None:
    body = line(0) + json.dumps(RESULT | {"index": index}).encode() + b"\n"
    with answering(lambda _: (200, {}, body)) as url, connect(url) as client, pytest.raises(GraderUnfit, match="item"):
        list(client.grade_batch([BY_ID, BY_ID] if index == 7 else [BY_ID]))


def test_a_batch_that_gets_nowhere_ends_with_patience(connect: Connect) -> None:
    with (
        answering(lambda _: (200, {}, b"")) as url,
        connect(url, patience_s=0.1) as client,
        pytest.raises(GraderUnreachable, match="its answer ends too early"),
    ):
        list(client.grade_batch([BY_ID]))


def test_problems_of_a_batch_are_sent_first_and_again_where_they_are_lost(connect: Connect) -> None:
    other = SUM.model_copy(update={"exit_code": "ignore"})
    asked: list[str] = []

    def reply(one: Asked) -> Answer:
        asked.append(one.path)
        if one.method == "PUT":
            return 201, {}, {"id": EncodedProblem.of(StdioProblem.model_validate_json(one.body)).id}
        return (404, {}, NOT_FOUND) if asked.count("/grade/batch") == 1 else (200, {}, line(0) + line(1) + line(2))

    with answering(reply) as url, connect(url) as client:
        found = list(client.grade_batch([RIGHT, RIGHT, RIGHT.model_copy(update={"problem": other})]))
    assert len(found) == 3
    assert asked == ["/problems", "/problems", "/grade/batch", "/problems", "/problems", "/grade/batch"]


@pytest.mark.jail
def test_a_task_that_is_cancelled_leaves_and_its_grade_ends(grader: Server) -> None:
    sleeper = RIGHT.model_copy(update={"source": "import time\ntime.sleep(60)", "limits": LimitOverrides(wall_s=60.0)})

    def busy() -> int:
        workers: int = httpx.get(f"{grader.url}/status").json()["workers"]["busy"]
        return workers

    async def run() -> None:
        async with AsyncGrader(grader.url, connections=1) as client:
            task = asyncio.create_task(client.grade(sleeper))
            await asyncio.to_thread(poll, lambda: busy() == 1, 30.0, "the sleeper runs")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(poll, lambda: busy() == 0, 10.0, "the sleeper has ended")
            assert (await client.grade(RIGHT)).category == "correct"

    asyncio.run(run())


def test_who_leaves_a_batch_leaves_its_connection_to_others(connect: Connect) -> None:
    first = True

    def reply(one: Asked) -> Answer:
        nonlocal first
        if first:
            first = False
            return 200, {}, line(0) + line(1)
        return 200, {}, RESULT

    with answering(reply) as url, connect(url, connections=1) as client:
        results = client.grade_batch([BY_ID, BY_ID])
        assert isinstance(next(results), GradeResult)
        results.close()
        assert client.grade(BY_ID).category == "correct"
