"""What keeps and watches the service: health, metrics, logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox import cgroups
from tests.conftest import Serve
from tests.serving import metric, poll

pytestmark = pytest.mark.jail

C_HITS = 'rkgrade_compiles_total{cache="hit",language="c"}'


def test_live_and_ready(grader_url: str) -> None:
    assert httpx.get(f"{grader_url}/health/live").json() == {"status": "live"}
    ready = httpx.get(f"{grader_url}/health/ready")
    assert (ready.status_code, ready.json()) == (200, {"ready": True, "reasons": []})


def test_not_ready_without_workers(serve: Serve) -> None:
    with serve("--workers", "1") as server:
        for worker in server.workers():
            worker.kill()
        poll(lambda: httpx.get(f"{server.url}/health/ready").status_code == 503, 5, "not ready")
        poll(lambda: httpx.get(f"{server.url}/health/ready").status_code == 200, 20, "ready again")


def test_readiness_rests_on_a_grade_in_every_language(serve: Serve) -> None:
    with serve("--languages", "default") as server:
        exposition = httpx.get(f"{server.url}/metrics").text
        for language in httpx.get(f"{server.url}/languages").json():
            labels = f'category="correct",language="{language["id"]}",verdict="accepted"'
            assert f"rkgrade_grades_total{{{labels}}} 1.0" in exposition


def test_what_has_not_happened_yet_is_counted_as_none(serve: Serve) -> None:
    with serve("--languages", "python", "--workers", "1") as server:
        exposition = httpx.get(f"{server.url}/metrics").text.splitlines()
    for series in (
        *(f'rkgrade_faults_total{{cause="{cause}"}}' for cause in ("checker_error", "internal_error", "worker_died")),
        *(f'rkgrade_refused_total{{type="{kind}"}}' for kind in ("invalid-request", "queue-full", "unavailable")),
        'rkgrade_tests_total{verdict="wrong_answer"}',
        'rkgrade_grades_total{category="none",language="python",verdict="internal_error"}',
        'rkgrade_grades_total{category="optimization_failure",language="python",verdict="time_limit"}',
        'rkgrade_compiles_total{cache="hit",language="python"}',
    ):
        assert f"{series} 0.0" in exposition


def test_metrics_count_what_was_graded(serve: Serve, a_plus_b: dict[str, Any]) -> None:
    with serve() as server:
        names = (
            "rkgrade_grades_total",
            "rkgrade_tests_total",
            "rkgrade_compiles_total",
            "rkgrade_cells_started_total",
            "rkgrade_queue_seconds_count",
            "rkgrade_run_seconds_count",
            C_HITS,
        )
        before = {name: metric(server.url, name) for name in names}
        a_plus_b["problem"]["tests"] *= 3
        c = a_plus_b | {"language": "c", "source": "int main() { return 1; }"}
        for request, verdict in ((a_plus_b, "accepted"), (c, "runtime_error"), (c, "runtime_error")):
            assert httpx.post(f"{server.url}/grade", json=request).json()["verdict"] == verdict
        grown = {name: metric(server.url, name) - before[name] for name in names}
        assert grown["rkgrade_grades_total"] == 3
        assert grown["rkgrade_tests_total"] == 9
        assert grown["rkgrade_compiles_total"] == 3
        assert grown["rkgrade_queue_seconds_count"] == 3
        assert grown["rkgrade_run_seconds_count"] == 3
        assert grown["rkgrade_cells_started_total"] >= 3
        exposition = httpx.get(f"{server.url}/metrics").text
        # Never seen by this data directory before, and then seen.
        assert grown[C_HITS] == 1
        assert 'rkgrade_tests_total{verdict="runtime_error"} 6.0' in exposition


def test_logs_name_requests_and_tell_nothing_of_programs(serve: Serve, a_plus_b: dict[str, Any]) -> None:
    a_plus_b["source"] += "# secret-of-the-program\n"
    a_plus_b["problem"]["tests"][0]["output"] = "secret-of-the-test"
    with serve("--log-format", "json", "--access-log", "--log-level", "debug") as server:
        httpx.post(f"{server.url}/grade", json=a_plus_b, headers={"X-Request-ID": "trace-1"})
        httpx.post(f"{server.url}/grade", content=b'{"problem": "secret-of-the-test"}')
        poll(lambda: "trace-1" in server.log.read_text(), 5, "the request is logged")
        log = server.log.read_text()
    assert "secret" not in log
    [line] = [line for line in log.splitlines() if "trace-1" in line]
    event = json.loads(line)
    assert (event["event"], event["method"], event["path"]) == ("request", "POST", "/grade")
    assert (event["status"], event["request_id"], event["level"]) == (200, "trace-1", "info")


def test_what_a_dead_grader_left_is_swept_and_told_at_the_start(serve: Serve) -> None:
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    # A process id past the kernel's own maximum: nobody's.
    left = [base / f"rkgrade-{namespace}-{2**22 + 1}-1" for base in set(cgroups.here().directories.values())]
    for directory in left:
        directory.mkdir()
    with serve("--workers", "1", "--languages", "python") as server:
        assert "swept what dead graders had left" in server.log.read_text()
    assert [directory for directory in left if directory.exists()] == []


def test_a_grader_without_cgroups_says_so_everywhere(serve: Serve, a_plus_b: dict[str, Any]) -> None:
    with serve("--workers", "1", "--insecure-no-cgroup") as server:
        assert "insecure" in server.log.read_text()
        result = httpx.post(f"{server.url}/grade", json=a_plus_b).json()
        assert (result["verdict"], result["grader"]["secure"]) == ("accepted", False)
        unrun = a_plus_b | {"source": None, "completion": "no idea"}
        assert httpx.post(f"{server.url}/grade", json=unrun).json()["grader"]["secure"] is False
