"""POST /grade/batch: results as they end, beside other clients, until all are there or the client leaves."""

from __future__ import annotations

import concurrent.futures
import json
import time
from typing import Any

import httpx
import pytest

from service.contract import GradeResult
from tests.conftest import Serve
from tests.serving import metric, poll

pytestmark = pytest.mark.jail


def sleeping(a_plus_b: dict[str, Any], seconds: float) -> dict[str, Any]:
    return a_plus_b | {"source": f"import time\ntime.sleep({seconds})\n{a_plus_b['source']}"}


def test_every_item_comes_back_once_under_its_index(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    items = [
        a_plus_b | {"id": str(index), "source": a_plus_b["source"] if index % 3 else "print(4)"} for index in range(60)
    ]
    answer = httpx.post(f"{grader_url}/grade/batch", json={"items": items}, timeout=120)
    assert answer.headers["content-type"] == "application/x-ndjson"
    results = [GradeResult.model_validate_json(line) for line in answer.content.splitlines()]
    assert sorted(result.index or 0 for result in results) == list(range(60))
    for result in results:
        assert result.id == str(result.index)
        assert result.verdict == ("accepted" if (result.index or 0) % 3 else "wrong_answer")


def test_results_come_as_each_ends_not_in_order(serve: Serve, a_plus_b: dict[str, Any]) -> None:
    items = [sleeping(a_plus_b, 4), a_plus_b, a_plus_b]
    with (
        serve("--workers", "2") as server,
        httpx.stream("POST", f"{server.url}/grade/batch", json={"items": items}, timeout=30) as answer,
    ):
        arrived = [(json.loads(line)["index"], time.monotonic()) for line in answer.iter_lines()]
    assert arrived[-1][0] == 0
    assert arrived[-1][1] - arrived[0][1] > 1


def test_a_batch_larger_than_the_queue_is_taken_and_lets_others_through(serve: Serve, a_plus_b: dict[str, Any]) -> None:
    items = [sleeping(a_plus_b, 0.1)] * 40
    with (
        serve("--workers", "1", "--queue-size", "2") as server,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        batch = pool.submit(httpx.post, f"{server.url}/grade/batch", json={"items": items}, timeout=120)
        poll(lambda: metric(server.url, "rkgrade_grades_total") >= 7, 30, "the batch is under way")
        before = metric(server.url, "rkgrade_grades_total")
        single = httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=30)
        after = metric(server.url, "rkgrade_grades_total")
        assert single.json()["verdict"] == "accepted"
        # Few go before it, however long each takes on a busy machine, and not the thirty that are left.
        assert after - before < 12
        assert not batch.done()
        results = [json.loads(line) for line in batch.result().text.splitlines()]
    assert [result["verdict"] for result in results] == ["accepted"] * 40
    # Nor does an item's own wait count what went before it in its batch.
    timings = [result["timing"] for result in results]
    assert max(timing["queue_s"] for timing in timings) < max(timing["total_s"] for timing in timings) / 4


def test_a_client_that_leaves_cancels_what_is_left(serve: Serve, a_plus_b: dict[str, Any]) -> None:
    items = [a_plus_b, *[sleeping(a_plus_b, 3)] * 30]
    with serve("--workers", "1") as server:
        before = metric(server.url, "rkgrade_grades_total")
        with httpx.stream("POST", f"{server.url}/grade/batch", json={"items": items}, timeout=30) as answer:
            assert json.loads(next(answer.iter_lines()))["verdict"] == "accepted"
        poll(lambda: metric(server.url, "rkgrade_cancelled_total") == 2, 10, "what was under way is cancelled")
        assert metric(server.url, "rkgrade_queue_length") == 0
        assert httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=30).json()["verdict"] == "accepted"
        assert metric(server.url, "rkgrade_grades_total") == before + 2


def test_a_batch_is_refused_where_the_queue_is_full(
    serve: Serve, a_plus_b: dict[str, Any], sleeper: dict[str, Any]
) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 3.0
    with (
        serve("--workers", "1", "--queue-size", "1") as server,
        concurrent.futures.ThreadPoolExecutor(2) as pool,
    ):
        waiting = [pool.submit(httpx.post, f"{server.url}/grade", json=sleeper, timeout=60) for _ in range(2)]
        poll(lambda: metric(server.url, "rkgrade_queue_length") == 1, 10, "one runs and one waits")
        refused = httpx.post(f"{server.url}/grade/batch", json={"items": [a_plus_b]})
        assert (refused.status_code, refused.headers["content-type"]) == (429, "application/problem+json")
        assert "retry-after" in refused.headers
        assert [one.result().json()["verdict"] for one in waiting] == ["idle", "idle"]
