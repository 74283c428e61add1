"""APIs, Redis and hosts as real processes: what the in-process engine promises, across all of them."""

from __future__ import annotations

import concurrent.futures
import contextlib
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.owned_jobs import TOKENS, assert_only_the_owner_finds_a_job, named_tokens
from tests.redis_server import PASSWORD, RedisServer
from tests.service.cluster.conftest import Cluster
from tests.serving import READY_WITHIN_S, Host, Server, assert_nothing_left, metric, poll, serving

pytestmark = pytest.mark.jail


@contextlib.contextmanager
def posting(server: Server, *requests: dict[str, Any]) -> Iterator[list[concurrent.futures.Future[httpx.Response]]]:
    """Grades under way, each on a connection of its own."""
    with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
        yield [pool.submit(httpx.post, f"{server.url}/grade", json=request, timeout=90) for request in requests]


def running(server: Server) -> int:
    return int(metric(server.url, "rkgrade_workers_busy"))


def told_at(host: Host) -> str:
    """Where a host tells of itself."""
    poll(lambda: "tells of itself" in host.log.read_text(), 60, "the host's address")
    [url] = set(re.findall(r"http://127\.0\.0\.1:\d+", host.log.read_text()))
    return str(url)


def test_a_full_queue_says_when_to_come_back(own_cluster: Cluster, sleeper: dict[str, Any]) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 4.0
    with (
        own_cluster.host("--workers", "1"),
        own_cluster.api("--queue-size", "1") as server,
        posting(server, sleeper, sleeper) as waiting,
    ):
        poll(lambda: metric(server.url, "rkgrade_queue_length") == 1, 10, "one runs and one waits")
        refused = httpx.post(f"{server.url}/grade", json=sleeper)
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert [one.result().json()["verdict"] for one in waiting] == ["idle", "idle"]


def test_a_client_that_leaves_frees_its_worker(
    own_cluster: Cluster, sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    with own_cluster.host("--workers", "1"), own_cluster.api() as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/grade", json=sleeper, timeout=httpx.Timeout(5, read=1.0))
        started = time.monotonic()
        assert httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=30).json()["verdict"] == "accepted"
        # Far from the 20 s that the abandoned program would have slept.
        assert time.monotonic() - started < 6
        assert metric(server.url, "rkgrade_cancelled_total") == 1


def test_a_client_that_leaves_the_queue_is_dropped_from_it(
    own_cluster: Cluster, sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 4.0
    with own_cluster.host("--workers", "1"), own_cluster.api() as server:
        before = metric(server.url, "rkgrade_grades_total")
        with posting(server, sleeper) as [first]:
            poll(lambda: running(server) == 1, 10, "the sleeper runs")
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=httpx.Timeout(5, read=0.5))
            poll(lambda: own_cluster.redis.client.llen("rq:queue:rkgrade-grade") == 0, 10, "nobody waits")
            assert first.result().json()["verdict"] == "idle"
        assert metric(server.url, "rkgrade_grades_total") == before + 1


def test_two_apis_and_two_hosts_share_the_work(own_cluster: Cluster, a_plus_b: dict[str, Any]) -> None:
    with (
        own_cluster.host("--workers", "1"),
        own_cluster.host("--workers", "1"),
        own_cluster.api() as one,
        own_cluster.api() as other,
    ):
        poll(lambda: metric(one.url, "rkgrade_workers_alive") == 2, READY_WITHIN_S, "both hosts are there")
        with posting(one, *[a_plus_b] * 6) as first, posting(other, *[a_plus_b] * 6) as second:
            assert {answer.result().json()["verdict"] for answer in (*first, *second)} == {"accepted"}


def test_a_host_that_is_told_to_end_lets_its_work_end(own_cluster: Cluster, sleeper: dict[str, Any]) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 3.0
    with own_cluster.host("--workers", "1") as host, own_cluster.api() as server:
        with posting(server, sleeper) as [first]:
            poll(lambda: running(server) == 1, 10, "the sleeper runs")
            family = host.family()
            assert host.end() == 0, host.log.read_text()
            assert first.result().json()["verdict"] == "idle"
        assert_nothing_left(family)
        poll(lambda: httpx.get(f"{server.url}/health/ready").status_code == 503, 5, "no worker is left")


@pytest.mark.parametrize("gone", ["ended", "silent"])
def test_a_host_whose_redis_is_gone_and_that_has_nothing_to_end_ends_at_once(own_cluster: Cluster, gone: str) -> None:
    if gone == "ended":
        own_cluster.redis.end()
    else:
        own_cluster.redis.signal(signal.SIGSTOP)
    with own_cluster.host("--workers", "1") as host:
        poll(lambda: "takes grades" in host.log.read_text() and len(host.workers()) == 1, 60, "the host is up")
        poll(lambda: "cannot be reached" in host.log.read_text(), 15, "it says what it lacks")
        told_s = time.monotonic()
        assert host.end() == 0, host.log.read_text()
        assert time.monotonic() - told_s < 4


def test_a_host_that_may_not_wait_puts_its_work_back(own_cluster: Cluster, sleeper: dict[str, Any]) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 6.0
    with (
        own_cluster.host("--workers", "1", "--drain-timeout-s", "0.5") as host,
        own_cluster.api() as server,
        posting(server, sleeper) as [first],
    ):
        poll(lambda: running(server) == 1, 10, "the sleeper runs")
        assert host.end() == 0, host.log.read_text()
        assert not first.done()
        with own_cluster.host("--workers", "1"):
            assert first.result().json()["verdict"] == "idle"


def test_an_api_without_hosts_is_not_ready_and_says_what_it_lacks(
    own_cluster: Cluster, a_plus_b: dict[str, Any]
) -> None:
    with own_cluster.host("--workers", "1") as host, own_cluster.api() as server:
        assert host.end() == 0
        poll(lambda: httpx.get(f"{server.url}/health/ready").status_code == 503, 15, "not ready")
        assert "no worker is alive" in httpx.get(f"{server.url}/health/ready").json()["reasons"]
        # It takes work all the same: a host may come.
        with posting(server, a_plus_b) as [waiting], own_cluster.host("--workers", "1"):
            assert waiting.result().json()["verdict"] == "accepted"


def test_what_is_no_answer_costs_its_own_job_alone(
    own_cluster: Cluster, sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 2.0
    redis = own_cluster.redis.client
    with own_cluster.host("--workers", "1"), own_cluster.api() as server:
        with posting(server, sleeper) as [waiting]:
            poll(lambda: redis.zcard("rq:wip:rkgrade-grade") == 1, 10, "it runs")
            [lease] = redis.zrange("rq:wip:rkgrade-grade", 0, -1)  # type: ignore[misc]
            id = lease.partition(b":")[0].decode()
            redis.set(f"rkgrade:answer:{id}", b"\xff" * 64)
            redis.hset(f"rq:job:{id}", "status", "finished")
            for entry in ({"nothing": "of ours"}, {"id": id}):
                redis.xadd("rkgrade:ended", entry)
            assert waiting.result().json()["type"] == "urn:rkgrade:error:internal-error"
        assert httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=20).json()["verdict"] == "accepted"
        assert "Traceback" not in server.log.read_text()


def test_an_api_that_never_reached_its_redis_says_so(redis: RedisServer, grader_data_dir: Path, tmp_path: Path) -> None:
    url = redis.url.replace(PASSWORD, "another")
    with serving(grader_data_dir, tmp_path / "api.log", redis_url=url, until_ready=False) as server:
        poll(lambda: "cannot be reached" in server.log.read_text(), 15, "the log tells")
        assert httpx.get(f"{server.url}/health/ready").json()["reasons"] == ["the queue cannot be reached"]


def test_logs_do_not_tell_the_password(own_cluster: Cluster, a_plus_b: dict[str, Any]) -> None:
    with own_cluster.host("--workers", "1") as host, own_cluster.api("--log-level", "debug") as server:
        own_cluster.redis.end()
        refused = httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=30)
        assert refused.status_code == 503
        assert PASSWORD not in refused.text
        poll(lambda: "cannot be reached" in host.log.read_text(), 10, "the host notices")
        for log in (host.log, server.log):
            assert PASSWORD not in log.read_text()


def test_a_host_with_tokens_tells_its_metrics_to_those_who_hold_one(own_cluster: Cluster, tmp_path: Path) -> None:
    tokens = named_tokens(tmp_path)
    with own_cluster.host("--workers", "1", "--metrics-port", "0", "--tokens-file", str(tokens)) as host:
        url = told_at(host)
        refused = httpx.get(f"{url}/metrics")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Bearer realm="rkgrade"')
        assert "rkgrade_" not in refused.text
        assert httpx.get(f"{url}/health/live").status_code == 200
        for token, status in (("z" * 32, 401), (TOKENS["lab"], 200)):
            answer = httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == status


def test_a_host_tells_nothing_to_other_machines_without_a_word_on_who_may_ask(own_cluster: Cluster) -> None:
    flags = ("--workers", "1", "--metrics-host", "0.0.0.0", "--metrics-port", "0")
    with own_cluster.host(*flags) as host:
        assert host.process.wait(60) == 2
        assert "--metrics-host / RKGRADE_METRICS_HOST: other machines can reach 0.0.0.0" in host.log.read_text()
    with own_cluster.host(*flags, "--metrics-without-token") as host:
        poll(lambda: "tells of itself" in host.log.read_text(), 60, "it is on its way up")


def test_a_host_tells_of_itself_where_it_is_asked_to(own_cluster: Cluster, a_plus_b: dict[str, Any]) -> None:
    with own_cluster.host("--workers", "1", "--metrics-port", "0") as host:
        url = told_at(host)
        poll(lambda: httpx.get(f"{url}/health/ready").status_code == 200, 30, "the host takes work")
        with own_cluster.api() as server:
            before = metric(url, "rkgrade_grades_total")
            assert httpx.post(f"{server.url}/grade", json=a_plus_b).json()["verdict"] == "accepted"
            assert metric(url, "rkgrade_grades_total") - before == 1
        assert metric(url, "rkgrade_cells_alive") >= 1
        assert metric(url, "rkgrade_workers_alive") == 1

        for worker in host.workers():
            worker.kill()
        poll(lambda: metric(url, 'rkgrade_faults_total{cause="worker_died"}') == 1, 10, "the death is counted")
        poll(lambda: httpx.get(f"{url}/health/ready").status_code == 200, 30, "it has a new worker")

        own_cluster.redis.end()
        poll(lambda: httpx.get(f"{url}/health/ready").status_code == 503, 10, "Redis is missed")
        reasons = httpx.get(f"{url}/health/ready").json()
        assert reasons == {"ready": False, "reasons": ["the queue cannot be reached"]}
        assert httpx.get(f"{url}/health/live").status_code == 200
        own_cluster.redis.start()
        poll(lambda: httpx.get(f"{url}/health/ready").status_code == 200, 30, "Redis is found again")
        assert host.end() == 0


def test_work_is_counted_by_the_name_of_its_token(
    own_cluster: Cluster, sleeper: dict[str, Any], tmp_path: Path
) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 2.0
    tokens = {"lab": "lab-0123456789abcdef-0", "class": "class-0123456789abcdef"}
    file = tmp_path / "tokens"
    file.touch(0o600)
    file.write_text("".join(f"{name} {token}\n" for name, token in tokens.items()))
    redis = own_cluster.redis.client

    def clients() -> set[bytes]:
        return {redis.hget(job, "rk_client") for job in redis.scan_iter("rq:job:*")}

    def post(name: str, path: str, body: dict[str, Any]) -> int:
        headers = {"Authorization": f"Bearer {tokens[name]}"}
        return httpx.post(f"{server.url}{path}", json=body, headers=headers, timeout=60).status_code

    with (
        own_cluster.host("--workers", "1"),
        own_cluster.api("--tokens-file", str(file)) as server,
        concurrent.futures.ThreadPoolExecutor(2) as pool,
    ):
        sent = [
            pool.submit(post, "lab", "/grade", sleeper),
            pool.submit(post, "class", "/grade/batch", {"items": [sleeper]}),
        ]
        poll(lambda: clients() == {b"lab", b"class"}, 20, "both are queued, each by its name")
        assert [one.result() for one in sent] == [200, 200]


def test_a_job_is_read_and_stopped_by_the_client_whose_token_it_came_with_alone(
    own_cluster: Cluster, a_plus_b: dict[str, Any], tmp_path: Path
) -> None:
    tokens = named_tokens(tmp_path)
    with own_cluster.host("--workers", "1"), own_cluster.api("--tokens-file", str(tokens)) as server:
        assert_only_the_owner_finds_a_job(server.url, a_plus_b)


def test_a_key_means_the_same_job_whichever_api_is_asked(own_cluster: Cluster, a_plus_b: dict[str, Any]) -> None:
    headers = {"Idempotency-Key": "rollout-17"}
    with own_cluster.host("--workers", "1"), own_cluster.api() as one, own_cluster.api() as other:
        jobs = [httpx.post(f"{server.url}/jobs", json=a_plus_b, headers=headers) for server in (one, other)]
        assert [job.status_code for job in jobs] == [202, 202]
        assert jobs[0].json() == jobs[1].json()


def test_two_grades_of_2_gb_do_not_run_together_on_3_gb(own_cluster: Cluster, sleeper: dict[str, Any]) -> None:
    sleeper["problem"]["limits"] |= {"wall_s": 3.0, "memory_mb": 2048}
    with (
        own_cluster.host("--workers", "2", "--memory-mb", "3072"),
        own_cluster.api() as server,
        posting(server, sleeper, sleeper) as both,
    ):
        timings = sorted(one.result().json()["timing"]["queue_s"] for one in both)
        assert timings[0] < 2 < timings[1]


def test_a_client_with_little_does_not_wait_for_one_with_much(
    own_cluster: Cluster, sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 1.0
    with (
        own_cluster.host("--workers", "1"),
        own_cluster.api() as server,
        concurrent.futures.ThreadPoolExecutor(12) as pool,
    ):
        much = [
            pool.submit(httpx.post, f"{server.url}/grade", json=sleeper, headers={"X-Client-Id": "much"}, timeout=90)
            for _ in range(12)
        ]
        poll(lambda: metric(server.url, "rkgrade_queue_length") >= 10, 10, "much waits")
        little = httpx.post(f"{server.url}/grade", json=a_plus_b, headers={"X-Client-Id": "little"}, timeout=60)
        assert little.json()["verdict"] == "accepted"
        assert sum(one.done() for one in much) < 6
        assert {one.result().json()["verdict"] for one in much} == {"idle"}
