"""POST /run, end to end on both engines: a program by itself, and what is told of it."""

from __future__ import annotations

import base64
import concurrent.futures
import time
from typing import Any

import httpx
import pytest

from service.contract import RunResult
from tests.conftest import Serve
from tests.serving import Server, metric, poll

pytestmark = pytest.mark.jail


def run(url: str, request: dict[str, Any], **headers: str) -> dict[str, Any]:
    answer = httpx.post(f"{url}/run", json={"language": "python"} | request, timeout=60, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    RunResult.model_validate_json(answer.content)
    result: dict[str, Any] = answer.json()
    return result


def refused(url: str, request: object, status: int = 422, **headers: str) -> dict[str, Any]:
    answer = httpx.post(f"{url}/run", json=request, timeout=60, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    return problem


def test_a_run_tells_all_there_is(grader_url: str) -> None:
    result = run(grader_url, {"source": "print(input()[::-1])", "stdin": "abc\n"})
    assert {name: result[name] for name in ("status", "message", "stdout", "stderr", "truncated")} == {
        "status": "ok",
        "message": "",
        "stdout": "cba\n",
        "stderr": "",
        "truncated": False,
    }
    assert (result["exit_code"], result["signal"], result["files"], result["files_left_out"]) == (0, None, {}, 0)
    assert 0 < result["cpu_s"] < 5
    assert 0 < result["wall_s"] < 5
    assert 0 < result["memory_bytes"] < 2**27
    assert result["language"] == "python"
    assert result["grader"]["secure"] is True
    timing = result["timing"]
    assert 0 < timing["run_s"] < timing["total_s"]


def test_files_travel_as_text_or_base64_both_ways(grader_url: str) -> None:
    source = """
data = open("in/data.bin", "rb").read()
open("out.bin", "wb").write(data[::-1])
open("in/notes.txt", "a").write("\u00fc")
"""
    files = {
        "in/data.bin": {"base64": base64.b64encode(b"\x00\xffx").decode()},
        "in/notes.txt": {"text": "n\u00f6tes "},
        "untouched": {"text": ""},
    }
    result = run(grader_url, {"source": source, "files": files})
    assert result["status"] == "ok", result["stderr"]
    assert result["files"] == {
        "in/notes.txt": {"text": "n\u00f6tes \u00fc", "base64": None},
        "out.bin": {"text": None, "base64": base64.b64encode(b"x\xff\x00").decode()},
    }


def test_a_compiled_language_is_named_by_its_alias_and_compiled_once(grader_url: str) -> None:
    source = '#include <cstdio>\nint main() { int a, b; scanf("%d%d", &a, &b); printf("%d\\n", a + b); }\n// run\n'
    first = run(grader_url, {"language": "C++17", "source": source, "stdin": "1 2"})
    second = run(grader_url, {"language": "cpp", "source": source, "stdin": "30 12"})
    assert (first["stdout"], second["stdout"], second["language"]) == ("3\n", "42\n", "cpp")
    assert second["compile"]["cached"] is True


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"source": "print(1"}, "compile_error"),
        ({"source": "1 / 0"}, "runtime_error"),
        ({"source": "while True: pass", "limits": {"cpu_s": 0.1}}, "time_limit"),
        ({"source": "import time; time.sleep(9)", "limits": {"wall_s": 0.2}}, "idle"),
        ({"source": "x = bytearray(1 << 29)", "limits": {"memory_mb": 64}}, "memory_limit"),
        ({"source": "while True: print('x' * 999)", "limits": {"output_mb": 1}}, "output_limit"),
    ],
)
def test_each_way_to_end_has_its_status(grader_url: str, change: dict[str, Any], status: str) -> None:
    result = run(grader_url, change)
    assert result["status"] == status
    assert result["message"]
    if status == "compile_error":
        assert result["compile"]["ok"] is False
        assert "SyntaxError" in result["compile"]["message"]
        assert (result["exit_code"], result["cpu_s"], result["files"]) == (None, None, {})


def test_output_is_shown_as_text_and_cut_to_its_end(grader_url: str) -> None:
    source = "import os\nos.write(1, b'x' * (1 << 20))\nos.write(1, b'\\xff\\x00ok')\n"
    result = run(grader_url, {"source": source})
    assert result["stdout"].endswith("x\ufffd\0ok")
    assert len(result["stdout"]) == 2**20
    assert result["truncated"] is True


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"source": None}, "source"),
        ({"stdin": 7}, "stdin"),
        ({"stdin": "x" * (16 * 2**20 + 1)}, "stdin"),
        ({"limits": {"cpu_s": 0}}, "limits.cpu_s"),
        ({"limits": {"memory_gb": 1}}, "limits.memory_gb"),
        ({"language": "cobol"}, "language"),
        ({"timeout": 3}, "timeout"),
        ({"files": []}, "files"),
        ({"files": {"a": "text"}}, "files.a"),
        ({"files": {"a": {}}}, "files.a.text"),
        ({"files": {"a": {"text": "", "base64": ""}}}, "files.a.text"),
        ({"files": {"a": {"base64": "no base64!"}}}, "files.a.base64"),
        ({"files": {"a": {"text": "", "mode": 7}}}, "files.a.mode"),
        ({"files": {f"{n}": {"text": ""} for n in range(129)}}, "files"),
        ({"files": {"a": {"text": "x" * 2**23}, "b": {"text": "x" * (2**23 + 1)}}}, "files"),
        ({"files": {"a": {"text": ""}, "a/b": {"text": ""}}}, "files"),
    ],
)
def test_what_is_at_fault_is_named(grader_url: str, change: dict[str, Any], field: str) -> None:
    assert refused(grader_url, {"language": "python", "source": ""} | change)["field"] == field


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../x",
        "a/../b",
        "a/..",
        ".",
        "./a",
        "a//b",
        "a/",
        "a\0b",
        "x" * 256,
        16 * "a/" + "b",
    ],
)
def test_no_path_leads_out_of_the_working_directory(grader_url: str, path: str) -> None:
    problem = refused(grader_url, {"language": "python", "source": "", "files": {path: {"text": ""}}})
    assert problem["field"] == f"files.{path}"


def test_the_longest_and_oddest_paths_are_taken(grader_url: str) -> None:
    paths = ["x" * 255, "/".join("a" * 16), "new\nline", "...", "-rf", "\u00fc" * 127, " ", 'qu"ote\\']
    source = "import os\nprint(sum(len(files) for _, _, files in os.walk('.')))\n"
    result = run(grader_url, {"source": source, "files": {path: {"text": ""} for path in paths}})
    assert (result["stdout"], result["files"]) == (f"{len(paths)}\n", {})


def test_a_key_is_refused_and_a_deadline_is_kept(grader_url: str) -> None:
    request = {"language": "python", "source": "import time; time.sleep(20)"}
    assert refused(grader_url, request, **{"Idempotency-Key": "again"})["field"] == "Idempotency-Key"
    begun = time.monotonic()
    assert refused(grader_url, request, 504, **{"X-Deadline-S": "0.5"})["status"] == 504
    assert time.monotonic() - begun < 10


def test_runs_are_counted_and_a_client_that_leaves_ends_its_own(serve: Serve) -> None:
    with serve("--workers", "1", "--languages", "python") as server:
        run(server.url, {"source": "print(1)"})
        run(server.url, {"source": "raise SystemExit(1)"})
        series = 'rkgrade_runs_total{language="python",status="%s"}'
        text = httpx.get(f"{server.url}/metrics").text
        for status, count in (("ok", 1), ("runtime_error", 1), ("internal_error", 0)):
            assert f"{series % status} {count}.0" in text
        with pytest.raises(httpx.ReadTimeout):
            body = {"language": "python", "source": "import time; time.sleep(20)"}
            httpx.post(f"{server.url}/run", json=body, timeout=httpx.Timeout(5, read=0.5))
        begun = time.monotonic()
        assert run(server.url, {"source": "print(2)"})["stdout"] == "2\n"
        assert time.monotonic() - begun < 5
        assert metric(server.url, "rkgrade_cancelled_total") == 1


def _kill_workers_over_it(server: Server) -> None:
    for _ in range(3):
        poll(lambda: metric(server.url, "rkgrade_workers_busy") == 1, 20, "it runs")
        [worker] = server.workers()
        worker.kill()
        worker.wait(10)
        poll(lambda: metric(server.url, "rkgrade_workers_busy") == 0, 10, "the death is noticed")


def test_a_run_that_no_worker_survives_is_an_internal_error_and_to_be_asked_for_again(serve: Serve) -> None:
    with serve("--workers", "1", "--languages", "python") as server, concurrent.futures.ThreadPoolExecutor() as pool:
        sleeping = "import time; time.sleep(15)"
        running = pool.submit(run, server.url, {"source": sleeping})
        _kill_workers_over_it(server)
        result = running.result()
        assert (result["status"], result["exit_code"], result["files"]) == ("internal_error", None, {})
        assert "died 3 times over this run" in result["message"]
        text = httpx.get(f"{server.url}/metrics").text
        assert 'rkgrade_runs_total{language="python",status="internal_error"} 1.0' in text
        assert "the grader failed at a run" in server.log.read_text()

        sent = {"language": "python", "code": sleeping}
        told = pool.submit(httpx.post, f"{server.url}/run_code", json=sent, timeout=60)
        _kill_workers_over_it(server)
        problem = told.result().json()
        assert (told.result().status_code, problem["type"]) == (504, "urn:rkgrade:error:ask-again")
        assert "died 3 times over this run" in problem["detail"]
        assert run(server.url, {"source": "print(3)"})["stdout"] == "3\n"


def test_no_secret_of_the_grader_is_shown(grader_url: str) -> None:
    source = """
import os
print(sorted(os.environ))
for path in ("/prog", "/box", "/tmp", "/root", "/home", "/var"):
    print(path, sorted(os.listdir(path)) if os.path.isdir(path) else None)
"""
    result = run(grader_url, {"source": source, "files": {"given": {"text": "x"}}})
    assert "RKGRADE" not in result["stdout"]
    assert result["stdout"].splitlines()[1:] == [
        "/prog ['main.py']", "/box ['given']", "/tmp []", "/root None", "/home None", "/var None",
    ]  # fmt: skip
