"""Nothing lost, nothing doubled, no wrong verdict, whatever is killed, cut off or full."""

from __future__ import annotations

import concurrent.futures
import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.service.cluster.conftest import Cluster
from tests.service.cluster.test_cluster import posting, running
from tests.serving import READY_WITHIN_S, Host, Server, assert_nothing_left, metric, poll

pytestmark = pytest.mark.jail

#: Within which a job whose worker or host went must run elsewhere.
RECOVERED_WITHIN_S = 15.0


@contextlib.contextmanager
def behind(
    server: Server, sleeper: dict[str, Any], *requests: dict[str, Any]
) -> Iterator[list[concurrent.futures.Future[httpx.Response]]]:
    """Grades of which the first runs and the others wait, on a host with one worker."""
    with posting(server, sleeper) as first:
        poll(lambda: running(server) == 1, 10, "the sleeper runs")
        with posting(server, *requests) as others:
            poll(lambda: metric(server.url, "rkgrade_queue_length") == len(requests), 10, "the others wait")
            yield [*first, *others]


@pytest.fixture
def short_sleeper(sleeper: dict[str, Any]) -> dict[str, Any]:
    sleeper["problem"]["limits"]["wall_s"] = 5.0
    return sleeper


def _runs_on(cluster: Cluster, host: Host) -> bool:
    """Whether a job is leased to that host, as RQ's records tell."""
    [lease] = cluster.redis.client.zrange("rq:wip:rkgrade-grade", 0, -1) or [b":"]  # type: ignore[misc]
    name = cluster.redis.client.hget(f"rq:job:{lease.decode().partition(':')[0]}", "worker_name") or b""
    return f"-{host.process.pid}-" in name.decode()  # type: ignore[union-attr]


def _see_attempt(number: int, cluster: Cluster, host: Host) -> None:
    poll(lambda: _attempts(cluster) == number and _runs_a_program(host), 30, f"attempt {number} runs its program")


def _attempts(cluster: Cluster) -> int:
    """How often the one job that is leased has been taken."""
    [lease] = cluster.redis.client.zrange("rq:wip:rkgrade-grade", 0, -1) or [b":"]  # type: ignore[misc]
    return int(cluster.redis.client.hget(f"rq:job:{lease.decode().partition(':')[0]}", "rk_attempts") or 0)  # type: ignore[arg-type]


def _runs_a_program(host: Host) -> bool:
    """Whether a process of its one worker's has the uid of a program: in each cell the second, after the warden's."""
    try:
        return any(one.uids().real % 2 for worker in host.workers() for one in worker.children(recursive=True))
    except psutil.NoSuchProcess:
        return False


def kill_worker(host: Host) -> None:
    [worker] = host.workers()
    worker.kill()
    worker.wait(10)


def test_a_killed_worker_loses_nothing(own_cluster: Cluster, short_sleeper: dict[str, Any]) -> None:
    with own_cluster.host("--workers", "1") as host, own_cluster.api() as server:
        with posting(server, short_sleeper) as [waiting]:
            poll(lambda: running(server) == 1, 10, "the sleeper runs")
            family = [one for worker in host.workers() for one in (worker, *worker.children(recursive=True))]
            killed_s = time.monotonic()
            kill_worker(host)
            assert waiting.result().json()["verdict"] == "idle"
            assert time.monotonic() - killed_s < RECOVERED_WITHIN_S + 5
        assert_nothing_left(family)


def test_a_job_that_kills_three_workers_is_an_internal_error_and_set_aside(
    own_cluster: Cluster, sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    with own_cluster.host("--workers", "1") as host, own_cluster.api() as server:
        with posting(server, sleeper | {"id": "unlucky"}) as [waiting]:
            for attempt in (1, 2, 3):
                _see_attempt(attempt, own_cluster, host)
                kill_worker(host)
            result = waiting.result().json()
        assert (result["id"], result["verdict"], result["category"]) == ("unlucky", "internal_error", None)
        assert result["rewards"] == {"R_1": None, "R_inf": None}
        assert own_cluster.redis.client.zcard("rq:failed:rkgrade-grade") == 1
        assert httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=60).json()["verdict"] == "accepted"


def test_a_host_that_is_gone_loses_nothing(own_cluster: Cluster, short_sleeper: dict[str, Any]) -> None:
    # Long enough for another host to come up meanwhile.
    short_sleeper["problem"]["limits"]["wall_s"] = 20.0
    with (
        own_cluster.host("--workers", "1") as host,
        own_cluster.api() as server,
        posting(server, short_sleeper) as [waiting],
    ):
        poll(lambda: running(server) == 1, 10, "the sleeper runs")
        with own_cluster.host("--workers", "1") as other:
            poll(lambda: other.workers(), 20, "another host is there")
            poll(lambda: metric(server.url, "rkgrade_workers_alive") == 2, READY_WITHIN_S, "another host is ready")
            killed_s = time.monotonic()
            host.process.kill()
            poll(lambda: running(server) == 1, RECOVERED_WITHIN_S, "it runs again")
            poll(lambda: _runs_on(own_cluster, other), RECOVERED_WITHIN_S, "on the other host")
            assert time.monotonic() - killed_s < RECOVERED_WITHIN_S
            assert waiting.result().json()["verdict"] == "idle"


def test_a_host_that_was_stopped_does_not_answer_twice(own_cluster: Cluster, short_sleeper: dict[str, Any]) -> None:
    with own_cluster.host("--workers", "1") as host, own_cluster.api() as server:
        before = metric(server.url, "rkgrade_grades_total")
        with posting(server, short_sleeper) as [waiting]:
            poll(lambda: running(server) == 1, 10, "the sleeper runs")
            with own_cluster.host("--workers", "1"):
                host.process.send_signal(signal.SIGSTOP)
                try:
                    assert waiting.result().json()["verdict"] == "idle"
                finally:
                    host.process.send_signal(signal.SIGCONT)
                poll(lambda: metric(server.url, "rkgrade_workers_alive") == 2, READY_WITHIN_S, "it is back")
                assert metric(server.url, "rkgrade_grades_total") == before + 1
                # Both of them take work again.
                with posting(server, short_sleeper, short_sleeper) as both:
                    poll(lambda: running(server) == 2, 15, "both hosts work")
                    assert [one.result().json()["verdict"] for one in both] == ["idle", "idle"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_redis_that_is_started_again_loses_nothing(
    own_cluster: Cluster, short_sleeper: dict[str, Any], a_plus_b: dict[str, Any], number: signal.Signals
) -> None:
    with own_cluster.host("--workers", "1"), own_cluster.api() as server:
        with behind(server, short_sleeper, *[a_plus_b] * 5) as waiting:
            own_cluster.redis.signal(number)
            own_cluster.redis.end()
            own_cluster.redis.start()
            verdicts = sorted(one.result().json()["verdict"] for one in waiting)
        assert verdicts == ["accepted"] * 5 + ["idle"]


def test_a_redis_that_comes_back_empty_loses_nothing(
    own_cluster: Cluster, short_sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    with own_cluster.host("--workers", "1"), own_cluster.api() as server:
        with behind(server, short_sleeper, *[a_plus_b] * 3) as waiting:
            own_cluster.redis.client.flushall()
            verdicts = sorted(one.result().json()["verdict"] for one in waiting)
        assert verdicts == ["accepted"] * 3 + ["idle"]


def test_a_redis_out_of_reach_for_20_s_loses_nothing_and_refuses_what_is_new(
    own_cluster: Cluster, short_sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    with own_cluster.host("--workers", "1"), own_cluster.api() as server:
        before = metric(server.url, "rkgrade_grades_total")
        with behind(server, short_sleeper, *[a_plus_b] * 3) as waiting:
            own_cluster.redis.signal(signal.SIGSTOP)
            back_s = time.monotonic() + 20
            refused = httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=30)
            assert (refused.status_code, refused.json()["type"]) == (503, "urn:rkgrade:error:unavailable")
            assert "cannot be reached" in refused.json()["detail"]
            assert int(refused.headers["retry-after"]) >= 1
            poll(lambda: metric(server.url, "rkgrade_workers_alive") == 0, 15, "no worker is known of")
            assert httpx.get(f"{server.url}/health/ready").json()["reasons"] == ["the queue cannot be reached"]
            poll(lambda: time.monotonic() > back_s, 25, "20 s have passed")
            assert not any(one.done() for one in waiting)
            own_cluster.redis.signal(signal.SIGCONT)
            verdicts = sorted(one.result().json()["verdict"] for one in waiting)
        assert verdicts == ["accepted"] * 3 + ["idle"]
        assert metric(server.url, "rkgrade_grades_total") == before + 4
        poll(lambda: httpx.get(f"{server.url}/health/ready").status_code == 200, 15, "ready again")
        assert metric(server.url, "rkgrade_workers_alive") == 1


def test_a_redis_out_of_memory_refuses_what_is_new_and_ends_what_it_has(
    own_cluster: Cluster, short_sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    with own_cluster.host("--workers", "1"), own_cluster.api() as server:
        with behind(server, short_sleeper, *[a_plus_b] * 2) as waiting:
            own_cluster.redis.client.config_set("maxmemory", "1")
            refused = httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=30)
            assert (refused.status_code, refused.json()["type"]) == (503, "urn:rkgrade:error:unavailable")
            assert "memory" in refused.json()["detail"]
            refused = httpx.post(f"{server.url}/run_code", json={"language": "python", "code": ""}, timeout=30)
            assert (refused.status_code, refused.json()["type"]) == (504, "urn:rkgrade:error:ask-again")
            assert sorted(one.result().json()["verdict"] for one in waiting) == ["accepted", "accepted", "idle"]
        own_cluster.redis.client.config_set("maxmemory", "0")
        assert httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=30).json()["verdict"] == "accepted"


@contextlib.contextmanager
def small_disk(mounted_at: Path) -> Iterator[None]:
    mounted_at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", mounted_at], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", mounted_at], check=True)


def test_a_disk_that_is_full_at_the_store_refuses_what_is_new_and_costs_no_verdict(
    own_cluster: Cluster, a_plus_b: dict[str, Any], tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    flags = ("--languages", "python,c", "--store-url", f"file://{disk}")
    with (
        small_disk(disk),
        own_cluster.host("--workers", "1", *flags),
        own_cluster.api(*flags) as server,
    ):

        def put(problem: dict[str, Any]) -> httpx.Response:
            return httpx.put(f"{server.url}/problems", json=problem, timeout=30)

        def grade(**changes: Any) -> httpx.Response:
            return httpx.post(f"{server.url}/grade", json=a_plus_b | changes, timeout=60)

        stored = put(a_plus_b["problem"]).json()["id"]
        new = {"kind": "stdio", "tests": [{"input": "1 2\n", "output": "3\n", "name": "x" * 100}] * 60}
        with contextlib.suppress(OSError), (disk / "ballast").open("wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(4096))
        for refused in (put(new), grade(problem=new)):
            assert (refused.status_code, refused.json()["type"]) == (507, "urn:rkgrade:error:disk-full")
        # What is there is graded, and so is a program that the worker can keep for no other.
        in_c = {"language": "c", "source": '#include <stdio.h>\nint main(void) { puts("3"); }'}
        for changes in ({}, in_c):
            assert grade(problem=stored, **changes).json()["verdict"] == "accepted"
        assert grade(problem=stored, source="print(4)").json()["verdict"] == "wrong_answer"
        assert metric(server.url, 'rkgrade_cache_faults_total{cache="programs"}') >= 1
        (disk / "ballast").unlink()
        assert put(new).status_code == 201
        assert grade(problem=new).json()["verdict"] == "accepted"


def test_many_grades_come_back_right_while_workers_and_hosts_are_killed(
    own_cluster: Cluster, a_plus_b: dict[str, Any]
) -> None:
    wrong = a_plus_b | {"source": "print(4)"}
    requests = [(a_plus_b, "accepted") if n % 2 else (wrong, "wrong_answer") for n in range(60)]
    with own_cluster.host("--workers", "1") as host, own_cluster.api() as server:
        with (
            own_cluster.host("--workers", "1") as other,
            concurrent.futures.ThreadPoolExecutor(8) as pool,
        ):
            poll(lambda: metric(server.url, "rkgrade_workers_alive") == 2, READY_WITHIN_S, "both hosts are there")
            answers = [
                pool.submit(httpx.post, f"{server.url}/grade", json=request, timeout=90) for request, _ in requests
            ]
            for done in (5, 15):
                poll(lambda done=done: sum(one.done() for one in answers) > done, 60, "some are done")  # type: ignore[misc]
                for worker in host.workers():
                    worker.kill()
            other.process.kill()
            verdicts = [answer.result().json()["verdict"] for answer in answers]
        assert verdicts == [verdict for _, verdict in requests]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_api_that_is_started_again_answers_once_whoever_asks_again(
    own_cluster: Cluster, short_sleeper: dict[str, Any], number: signal.Signals
) -> None:
    headers = {"Idempotency-Key": "asked-twice"}
    with own_cluster.host("--workers", "1"):
        with own_cluster.api("--drain-timeout-s", "0.1") as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(httpx.post, f"{server.url}/grade", json=short_sleeper, headers=headers, timeout=60)
            poll(lambda: running(server) == 1, 10, "the sleeper runs")
            server.process.send_signal(number)
            server.process.wait(15)
            error = waiting.exception()
            assert isinstance(error, httpx.TransportError) or waiting.result().status_code == 503
        with own_cluster.api() as server:
            first = httpx.post(f"{server.url}/grade", json=short_sleeper, headers=headers, timeout=60)
            second = httpx.post(f"{server.url}/grade", json=short_sleeper, headers=headers, timeout=60)
            assert first.json()["verdict"] == "idle"
            assert first.text == second.text
            # It is the grade that was under way before: no worker began it anew.
            client = own_cluster.redis.client
            jobs = [client.hmget(key, "rk_keep_s", "rk_attempts") for key in client.scan_iter("rq:job:*")]
            assert [attempts for keep_s, attempts in jobs if keep_s != b"0"] == [b"1"]  # type: ignore[misc]


def _let_apis_lapse(cluster: Cluster) -> None:
    """As if nothing had been heard of any API for long."""
    client = cluster.redis.client
    for name in client.zrange("rkgrade:apis", 0, -1):  # type: ignore[union-attr]
        client.zadd("rkgrade:apis", {name: 1})


def test_what_an_api_that_died_had_queued_is_dropped_once_it_is_missed(
    own_cluster: Cluster, sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    with own_cluster.host("--workers", "1") as host:
        with own_cluster.api() as server, concurrent.futures.ThreadPoolExecutor(3) as pool:
            lost = [pool.submit(httpx.post, f"{server.url}/grade", json=sleeper, timeout=60) for _ in range(3)]
            poll(lambda: metric(server.url, "rkgrade_queue_length") == 2, 20, "one runs and two wait")
            server.process.kill()
            assert all(isinstance(one.exception(), httpx.TransportError) for one in lost)
        assert _runs_a_program(host)
        _let_apis_lapse(own_cluster)
        started = time.monotonic()
        with own_cluster.api() as server:
            assert httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=60).json()["verdict"] == "accepted"
        # All three would have slept for 60 s.
        assert time.monotonic() - started < 40


def test_an_api_that_was_missed_and_lives_has_its_work_done_all_the_same(
    own_cluster: Cluster, sleeper: dict[str, Any]
) -> None:
    with own_cluster.host("--workers", "1"), own_cluster.api() as server, posting(server, sleeper) as [waiting]:
        poll(lambda: running(server) == 1, 10, "the sleeper runs")
        client = own_cluster.redis.client
        before = client.xlen("rkgrade:ended")

        def was_dropped() -> bool:
            _let_apis_lapse(own_cluster)
            return client.xlen("rkgrade:ended") > before

        poll(was_dropped, 20, "its host takes the API for gone")
        dropped = client.xlen("rkgrade:ended")
        assert not waiting.done()
        assert waiting.result().json()["verdict"] == "idle"
        assert client.xlen("rkgrade:ended") > dropped
