"""The in-process engine at its edges: a full queue, clients that leave, workers that die, an API that dies."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest

from tests.conftest import Serve
from tests.serving import Server, assert_nothing_left, metric, poll

pytestmark = pytest.mark.jail


def busy_workers(server: Server) -> int:
    """Workers with a job, as their clients' grades that have neither ended nor still wait."""
    return int(metric(server.url, "rkgrade_workers_busy"))


@contextlib.contextmanager
def posting(server: Server, *requests: dict[str, Any]) -> Iterator[list[concurrent.futures.Future[httpx.Response]]]:
    """Grades under way, each on a connection of its own."""
    with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
        yield [pool.submit(httpx.post, f"{server.url}/grade", json=request, timeout=60) for request in requests]


def leave_early(server: Server, request: dict[str, Any]) -> None:
    """Send a grade and hang up without waiting for its result."""
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.url}/grade", json=request, timeout=httpx.Timeout(5, read=0.5))


def test_a_full_queue_says_when_to_come_back(serve: Serve, sleeper: dict[str, Any]) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 3.0
    with serve("--workers", "1", "--queue-size", "1") as server, posting(server, sleeper, sleeper) as waiting:
        poll(lambda: metric(server.url, "rkgrade_queue_length") == 1, 10, "one runs and one waits")
        refused = httpx.post(f"{server.url}/grade", json=sleeper)
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.json()["type"] == "urn:rkgrade:error:queue-full"
        # What was accepted is not lost by it.
        assert [one.result().json()["verdict"] for one in waiting] == ["idle", "idle"]
        assert metric(server.url, "rkgrade_refused_total") == 1


def test_a_client_that_leaves_frees_its_worker(serve: Serve, sleeper: dict[str, Any], a_plus_b: dict[str, Any]) -> None:
    with serve("--workers", "1") as server:
        leave_early(server, sleeper)
        started = time.monotonic()
        assert httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=30).json()["verdict"] == "accepted"
        # Far from the 20 s that the abandoned program would have slept.
        assert time.monotonic() - started < 5
        assert metric(server.url, "rkgrade_cancelled_total") == 1


def test_a_client_that_leaves_the_queue_is_dropped_from_it(
    serve: Serve, sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 3.0
    with serve("--workers", "1") as server:
        before = metric(server.url, "rkgrade_grades_total")
        with posting(server, sleeper) as [running]:
            poll(lambda: busy_workers(server) == 1, 10, "the sleeper runs")
            leave_early(server, a_plus_b)
            poll(lambda: metric(server.url, "rkgrade_queue_length") == 0, 10, "nobody waits")
            assert running.result().json()["verdict"] == "idle"
        assert metric(server.url, "rkgrade_grades_total") == before + 1
        assert metric(server.url, "rkgrade_cancelled_total") == 1


def test_a_killed_worker_loses_nothing(serve: Serve, sleeper: dict[str, Any], a_plus_b: dict[str, Any]) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 2.0
    with serve("--workers", "1") as server:
        with posting(server, sleeper) as [running]:
            poll(lambda: busy_workers(server) == 1, 10, "the sleeper runs")
            [worker] = server.workers()
            family = [worker, *worker.children(recursive=True)]
            worker.kill()
            assert running.result().json()["verdict"] == "idle"
        assert_nothing_left(family)
        assert metric(server.url, "rkgrade_faults_total") == 1
        assert httpx.post(f"{server.url}/grade", json=a_plus_b).json()["verdict"] == "accepted"


def test_a_grade_that_no_worker_survives_is_an_internal_error(
    serve: Serve, sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    sleeper["problem"]["tests"].append({"input": "x" * 20, "output": "", "name": "longer"})
    with serve("--workers", "1", "--log-format", "json") as server:
        with posting(server, sleeper | {"id": "unlucky"}) as [running]:
            for _ in range(3):
                poll(lambda: busy_workers(server) == 1, 20, "the sleeper runs")
                [worker] = server.workers()
                worker.kill()
                worker.wait(10)
                poll(lambda: busy_workers(server) == 0, 10, "the death is noticed")
            result = running.result().json()
        assert (result["id"], result["verdict"], result["category"]) == ("unlucky", "internal_error", None)
        assert result["rewards"] == {"R_1": None, "R_2": None, "R_inf": None}
        assert [test["verdict"] for test in result["tests"]] == ["internal_error"] * 2
        logged = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
        [told] = [line for line in logged if line["event"] == "the grader failed at a grade"]
        assert told["request_id"] == running.result().headers["x-request-id"]
        assert (told["problem"], told["cause"]) == (result["problem_id"], result["tests"][0]["message"])
        assert sleeper["source"] not in json.dumps(told)
        poll(lambda: metric(server.url, "rkgrade_workers_alive") == 1, 20, "a worker is back")
        assert httpx.post(f"{server.url}/grade", json=a_plus_b).json()["verdict"] == "accepted"


def test_an_idle_worker_that_dies_is_replaced(serve: Serve, a_plus_b: dict[str, Any]) -> None:
    with serve("--workers", "1") as server:
        [worker] = server.workers()
        family = [worker, *worker.children(recursive=True)]
        worker.kill()
        assert httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=30).json()["verdict"] == "accepted"
        assert_nothing_left(family)


def test_a_killed_api_leaves_nothing_behind(serve: Serve, sleeper: dict[str, Any]) -> None:
    with serve("--workers", "1") as server, posting(server, sleeper) as [running]:
        poll(lambda: busy_workers(server) == 1, 10, "the sleeper runs")
        family = server.family()
        server.process.kill()
        server.process.wait(10)
        assert isinstance(running.exception(), httpx.TransportError)
        assert_nothing_left(family)


def test_workers_stay_on_their_cores(serve: Serve) -> None:
    cores = sorted(os.sched_getaffinity(0))[:2]
    with serve("--workers", str(len(cores))) as server:
        assert sorted(worker.cpu_affinity() for worker in server.workers()) == [[core] for core in cores]


def test_an_idle_grader_stays_within_250_mb(serve: Serve) -> None:
    with serve("--workers", str(min(2, len(os.sched_getaffinity(0))))) as server:
        processes = [psutil.Process(server.process.pid), *server.workers()]
        assert sum(process.memory_info().rss for process in processes) <= 250 * 2**20


def test_two_grades_of_2_gb_do_not_run_together_on_3_gb(serve: Serve, sleeper: dict[str, Any]) -> None:
    sleeper["problem"]["limits"] |= {"wall_s": 3.0, "memory_mb": 2048}
    with serve("--workers", "2", "--memory-mb", "3072") as server, posting(server, sleeper, sleeper) as both:
        poll(lambda: busy_workers(server) == 1, 10, "one runs")
        poll(lambda: metric(server.url, "rkgrade_queue_length") == 1, 10, "the other waits")
        timings = sorted(one.result().json()["timing"]["queue_s"] for one in both)
        assert timings[0] < 1 < timings[1]
