"""How a server ends: work is drained, newcomers are told, nothing is left."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.conftest import Serve
from tests.serving import RKGRADE, assert_nothing_left, metric, poll

pytestmark = pytest.mark.jail


def test_sigterm_drains_what_runs_and_what_waits(
    serve: Serve, sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 2.0
    with serve("--workers", "1") as server, concurrent.futures.ThreadPoolExecutor(3) as pool:
        family = server.family()
        running = pool.submit(httpx.post, f"{server.url}/grade", json=sleeper, timeout=60)
        poll(lambda: metric(server.url, "rkgrade_workers_busy") == 1, 10, "the sleeper runs")
        waiting = pool.submit(httpx.post, f"{server.url}/grade", json=a_plus_b, timeout=60)
        items = {"items": [a_plus_b] * 5}
        batch = pool.submit(httpx.post, f"{server.url}/grade/batch", json=items, timeout=60)
        poll(lambda: metric(server.url, "rkgrade_queue_length") == 3, 10, "the others wait")
        server.process.send_signal(signal.SIGTERM)
        poll(lambda: httpx.get(f"{server.url}/health/ready").status_code == 503, 5, "draining")
        ready = httpx.get(f"{server.url}/health/ready").json()
        assert ready == {"ready": False, "reasons": ["the service is shutting down"]}
        assert httpx.get(f"{server.url}/health/live").status_code == 200
        requests = (("POST", "/grade", a_plus_b), ("POST", "/grade/batch", items), ("PUT", "/problems", {}))
        for method, path, body in requests:
            refused = httpx.request(method, f"{server.url}{path}", json=body)
            assert (refused.status_code, refused.json()["type"]) == (503, "urn:rkgrade:error:unavailable")
            assert "retry-after" in refused.headers
        # verl asks again after this, and after nothing else.
        refused = httpx.post(f"{server.url}/run_code", json={"language": "python", "code": ""})
        assert (refused.status_code, refused.json()["type"]) == (504, "urn:rkgrade:error:ask-again")
        assert "retry-after" in refused.headers
        assert running.result().json()["verdict"] == "idle"
        assert waiting.result().json()["verdict"] == "accepted"
        verdicts = [json.loads(line)["verdict"] for line in batch.result().text.splitlines()]
        assert verdicts == ["accepted"] * 5
        assert server.process.wait(10) == 0
        assert_nothing_left(family)


def test_what_is_not_drained_in_time_is_cancelled(serve: Serve, sleeper: dict[str, Any]) -> None:
    with (
        serve("--workers", "1", "--drain-timeout-s", "0.5") as server,
        concurrent.futures.ThreadPoolExecutor(2) as pool,
    ):
        family = server.family()
        single = pool.submit(httpx.post, f"{server.url}/grade", json=sleeper, timeout=60)
        poll(lambda: metric(server.url, "rkgrade_workers_busy") == 1, 10, "the sleeper runs")
        items = {"items": [sleeper] * 3}
        batch = pool.submit(httpx.post, f"{server.url}/grade/batch", json=items, timeout=60)
        poll(lambda: metric(server.url, "rkgrade_queue_length") == 2, 10, "the batch waits")
        family += server.family()
        began = time.monotonic()
        assert server.end() == 0
        assert time.monotonic() - began < 5
        assert single.result().status_code == 503
        # A batch has been answered 200 already: each item that got no grade says so itself.
        results = [json.loads(line) for line in batch.result().text.splitlines()]
        assert sorted(result["index"] for result in results) == [0, 1, 2]
        assert {(result["verdict"], result["rewards"]["R_inf"]) for result in results} == {("internal_error", None)}
        assert_nothing_left(family)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once(serve: Serve, sleeper: dict[str, Any], number: signal.Signals) -> None:
    with serve("--workers", "1") as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(httpx.post, f"{server.url}/grade", json=sleeper, timeout=60)
        poll(lambda: metric(server.url, "rkgrade_workers_busy") == 1, 10, "the sleeper runs")
        family = server.family()
        server.process.send_signal(number)
        poll(lambda: httpx.get(f"{server.url}/health/ready").status_code == 503, 5, "draining")
        began = time.monotonic()
        server.process.send_signal(number)
        assert server.process.wait(10) == 0
        assert time.monotonic() - began < 5
        assert running.result().status_code == 503
        assert_nothing_left(family)


def test_a_taken_port_and_bad_options_end_with_a_sentence(serve: Serve, grader: Any) -> None:
    port = grader.url.rpartition(":")[2]
    for flags, expected in (
        (("--port", port), f"cannot listen on 127.0.0.1:{port}"),
        (("--workers", "1000"), "1000 workers need as many cores"),
        (("--queue-size", "0"), "--queue-size / RKGRADE_QUEUE_SIZE"),
        (("--host", "nosuchhost.invalid"), "--host / RKGRADE_HOST: cannot listen on 'nosuchhost.invalid': "),
        (("--host", "x" * 70), "--host / RKGRADE_HOST: cannot listen on 'xxx"),
    ):
        with pytest.raises(AssertionError, match=expected), serve(*flags):
            pass


def names(processes: list[psutil.Process]) -> list[str]:
    """Names of those that still are there."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(process.name())
    return found


def test_sigterm_while_the_host_is_prepared_leaves_nothing(grader_data_dir: Path) -> None:
    """A new data directory means that headers are compiled first, which takes seconds."""
    data_dir = grader_data_dir / "another"
    command = [str(RKGRADE), "serve", "--port", "0", "--data-dir", str(data_dir)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        own = psutil.Process(process.pid)
        poll(lambda: "cc1plus" in names(own.children(recursive=True)), 20, "a compiler runs")
        family = [own, *own.children(recursive=True)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM
    assert_nothing_left(family)
    assert [path for path in data_dir.rglob("*") if "building" in path.name] == []
