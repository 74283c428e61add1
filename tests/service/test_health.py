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


def test_metrics_count_what_programs_took_and_what_befell_them(serve: Serve, a_plus_b: dict[str, Any]) -> None:
    greedy = a_plus_b | {"source": "x = bytearray(200 * 2**20)\nfor at in range(0, len(x), 4096): x[at] = 1"}
    greedy["limits"] = {"memory_mb": 64}
    busy = a_plus_b | {"source": "for _ in range(3 * 10**6): pass\nprint(sum(map(int, input().split())))"}
    with serve("--workers", "1", "--languages", "python") as server:
        names = (
            'rkgrade_problem_loads_total{cache="miss"}',
            'rkgrade_problem_loads_total{cache="hit"}',
            'rkgrade_program_cpu_seconds_total{language="python"}',
            'rkgrade_program_wall_seconds_total{language="python"}',
            'rkgrade_oom_kills_total{by="limit"}',
            'rkgrade_oom_kills_total{by="host"}',
            'rkgrade_request_seconds_count{method="POST",route="/grade",status="200"}',
            'rkgrade_request_seconds_count{method="GET",route="none",status="404"}',
        )
        before = {name: series(server.url, name) for name in names}
        results = [httpx.post(f"{server.url}/grade", json=request).json() for request in (busy, greedy)]
        assert [result["verdict"] for result in results] == ["accepted", "memory_limit"]
        assert httpx.get(f"{server.url}/no/such/path").status_code == 404
        missed, hit, cpu_s, wall_s, killed, killed_by_host, grades, lost = (
            series(server.url, name) - before[name] for name in names
        )
        assert missed + hit == 2
        assert hit >= 1
        assert (killed, killed_by_host, grades, lost) == (1, 0, 2, 1)
        rows = [row for result in results for row in result["tests"]]
        assert cpu_s == pytest.approx(sum(row["cpu_s"] for row in rows))
        assert wall_s == pytest.approx(sum(row["wall_s"] for row in rows))
        assert 0 < cpu_s <= wall_s
        # One that is warm, beside those that are still going.
        assert 1 <= series(server.url, "rkgrade_cells_alive") <= 10


def test_what_a_killed_worker_left_is_swept_and_counted(serve: Serve) -> None:
    with serve("--workers", "1", "--languages", "python") as server:
        swept = series(server.url, "rkgrade_leftovers_swept_total")
        for worker in server.workers():
            worker.kill()
        poll(lambda: series(server.url, "rkgrade_leftovers_swept_total") > swept, 20, "swept")
        poll(lambda: series(server.url, "rkgrade_cells_alive") > 0, 20, "a new worker's cell")
        assert series(server.url, 'rkgrade_faults_total{cause="worker_died"}') == 1


def series(url: str, name: str) -> float:
    """The value of the one series of that name and those labels; 0 where there is none yet."""
    for line in httpx.get(f"{url}/metrics").text.splitlines():
        if line.startswith(f"{name} "):
            return float(line.split()[-1])
    return 0.0


def requests_with_secrets(a_plus_b: dict[str, Any]) -> list[bytes]:
    """Each road on which sources and test data come in, well and badly formed, graded and failing."""
    problem = a_plus_b["problem"] | {"tests": [{"input": "1 2\n", "output": "secret-expected", "name": "secret-name"}]}
    graded = a_plus_b | {"problem": problem, "detail": "outputs"}
    broken_checker = problem | {"checker": {"type": "python", "source": "secret-checker("}}
    requests = [
        graded | {"source": "# secret-source\nprint('secret-output')"},
        graded | {"source": "secret-source("},
        graded | {"source": "raise ValueError('secret-output')"},
        graded | {"source": "import os; os.write(2, b'secret-output'); os.abort()"},
        graded | {"language": "c", "source": "#error secret-source"},
        graded | {"source": None, "completion": "secret-completion\n```python\nsecret-source(\n```"},
        graded | {"problem": broken_checker},
        graded | {"source": "secret-source", "language": "secret-language"},
        graded | {"secret-field": "secret-value"},
    ]
    return [*(json.dumps(request).encode() for request in requests), b'{"problem": "secret-problem"', b"secret\xff"]


def test_logs_name_requests_and_tell_nothing_of_programs(serve: Serve, a_plus_b: dict[str, Any]) -> None:
    with serve("--log-format", "json", "--access-log", "--log-level", "debug", "--languages", "python,c") as server:
        httpx.post(f"{server.url}/grade", json=a_plus_b, headers={"X-Request-ID": "trace-1"})
        answers = [httpx.post(f"{server.url}/grade", content=body) for body in requests_with_secrets(a_plus_b)]
        assert [answer.status_code for answer in answers] == [200] * 6 + [422] * 5
        batch = b'{"items": [' + requests_with_secrets(a_plus_b)[0] + b"]}"
        assert httpx.post(f"{server.url}/grade/batch", content=batch).status_code == 200
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
