"""A problem's own programs are compiled when it is sent, by the workers that grade: what that does to the queue."""

from __future__ import annotations

import concurrent.futures
import json
import time
from typing import Any

import httpx
import pytest

from service.contract import parse_problem
from service.vetting import to_vet
from tests.conftest import Serve
from tests.serving import Server, metric, poll

#: Seconds of work for the compiler, and another program for each number.
SLOW_TO_COMPILE = """
constexpr long spin(long n) {{
    long sum = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < 2000; j++) sum += j;
    return sum;
}}
static_assert(spin(700) > {number});
int main() {{ return 42; }}
"""


def problem_of(checker: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"kind": "stdio", "tests": [{"input": "1 2\n", "output": "3\n"}], "checker": checker} | fields


def slow_problem(number: int) -> dict[str, Any]:
    return problem_of({"type": "kattis", "language": "cpp", "source": SLOW_TO_COMPILE.format(number=number)})


def put(server: Server, problem: dict[str, Any]) -> httpx.Response:
    return httpx.put(f"{server.url}/problems", json=problem, timeout=120)


def test_only_problems_with_programs_are_vetted_and_without_their_tests() -> None:
    assert to_vet(parse_problem('{"kind":"stdio","tests":[{"input":"","output":""}]}')) is None
    python = {"type": "python", "source": "print(1)"}
    tests = [{"input": "x" * 1000, "output": "y" * 1000, "points": 1.0, "group": "a"}]
    full = problem_of(python, tests=tests, groups={"a": {"scoring": "sum"}})

    form = to_vet(parse_problem(json.dumps(full)))

    assert form is not None
    assert parse_problem(form) == parse_problem(json.dumps(problem_of(python, tests=[{"input": "", "output": ""}])))


@pytest.mark.jail
def test_a_vetting_waits_in_the_queue_and_is_refused_where_that_is_full(serve: Serve, sleeper: dict[str, Any]) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 3.0
    with serve("--workers", "1", "--queue-size", "1") as server, concurrent.futures.ThreadPoolExecutor(2) as pool:
        grade = pool.submit(httpx.post, f"{server.url}/grade", json=sleeper, timeout=60)
        poll(lambda: metric(server.url, "rkgrade_workers_busy") == 1, 10, "the sleeper runs")
        waiting = pool.submit(put, server, slow_problem(1))
        poll(lambda: metric(server.url, "rkgrade_queue_length") == 1, 10, "the vetting waits")
        refused = put(server, slow_problem(2))
        assert (refused.status_code, refused.json()["type"]) == (429, "urn:rkgrade:error:queue-full")
        assert int(refused.headers["retry-after"]) >= 1
        # A problem without programs needs no worker.
        assert put(server, problem_of({"type": "exact"})).status_code in (200, 201)
        assert grade.result().json()["verdict"] == "idle"
        assert waiting.result().status_code == 201


@pytest.mark.jail
def test_a_vetting_outlives_a_worker(serve: Serve) -> None:
    with serve("--workers", "1") as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(put, server, slow_problem(3))
        poll(lambda: metric(server.url, "rkgrade_workers_busy") == 1, 10, "it is compiled")
        [worker] = server.workers()
        worker.kill()
        assert waiting.result().status_code == 201


@pytest.mark.jail
def test_a_vetting_that_no_worker_survives_is_an_error_of_the_service(serve: Serve) -> None:
    with serve("--workers", "1") as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(put, server, slow_problem(4))
        for _ in range(3):
            poll(lambda: metric(server.url, "rkgrade_workers_busy") == 1, 20, "it is compiled")
            [worker] = server.workers()
            worker.kill()
            worker.wait(10)
            poll(lambda: metric(server.url, "rkgrade_workers_busy") == 0, 10, "the death is noticed")
        answer = waiting.result()
        assert (answer.status_code, answer.json()["type"]) == (500, "urn:rkgrade:error:internal-error")


@pytest.mark.jail
def test_a_client_that_leaves_ends_the_vetting(serve: Serve, a_plus_b: dict[str, Any]) -> None:
    with serve("--workers", "1") as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.put(f"{server.url}/problems", json=slow_problem(5), timeout=httpx.Timeout(5, read=0.3))
        poll(lambda: metric(server.url, "rkgrade_cancelled_total") == 1, 10, "it is cancelled")
        started = time.monotonic()
        assert httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=30).json()["verdict"] == "accepted"
        assert time.monotonic() - started < 10
