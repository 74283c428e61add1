"""`POST /run_code` as SandboxFusion answers it, on both engines: shapes, statuses, limits, files, refusals."""

from __future__ import annotations

import base64
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from service.errors import AskAgain, InvalidRequest
from service.routes.sandbox_fusion import asked_again
from tests.conftest import Serve

pytestmark = pytest.mark.jail

CPP = '#include <cstdio>\nint main() { int a; scanf("%d", &a); printf("%d\\n", 2 * a); return a == 7; }\n'


def ask(url: str, change: dict[str, Any], **headers: str) -> httpx.Response:
    body = {"language": "python", "code": ""} | change
    return httpx.post(f"{url}/run_code", json=body, timeout=60, headers=headers)


def told(url: str, change: dict[str, Any]) -> dict[str, Any]:
    answer = ask(url, change)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json"), answer.text
    result: dict[str, Any] = answer.json()
    return result


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_run_is_told_in_sandbox_fusions_words(grader_url: str) -> None:
    code = "import sys\nprint(input()[::-1])\nprint('aside', file=sys.stderr)"
    result = told(grader_url, {"code": code, "stdin": "abc"})
    assert 0 < result["run_result"].pop("execution_time") < 5
    assert 0 < result["run_result"].pop("cpu_time") < 5
    assert result == {
        "status": "Success",
        "message": "",
        "compile_result": None,
        "run_result": {"status": "Finished", "return_code": 0, "stdout": "cba\n", "stderr": "aside\n"},
        "executor_pod_name": None,
        "files": {},
    }


def test_a_compiled_language_has_two_results(grader_url: str) -> None:
    for stdin, status, code in (("21", "Success", 0), ("7", "Failed", 1)):
        result = told(grader_url, {"language": "cpp", "code": CPP, "stdin": stdin})
        compiled, ran = result["compile_result"], result["run_result"]
        assert (result["status"], ran["status"], ran["return_code"]) == (status, "Finished", code)
        assert (compiled["status"], compiled["return_code"], ran["stdout"]) == ("Finished", 0, f"{2 * int(stdin)}\n")


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"code": "raise SystemExit(3)"}, "Finished", 3),
        ({"code": "import os; os.kill(os.getpid(), 11)"}, "Finished", -11),
        ({"code": "print(1"}, "Finished", 1),
        ({"code": "while True: pass", "run_timeout": 0.2}, "TimeLimitExceeded", None),
        ({"code": "import time; time.sleep(30)", "run_timeout": 0.2}, "TimeLimitExceeded", None),
        ({"code": "x = bytearray(1 << 29)", "memory_limit_MB": 64}, "Finished", -9),
    ],
)
def test_each_way_to_fail(grader_url: str, change: dict[str, Any], status: str, code: int | None) -> None:
    begun = time.monotonic()
    result = told(grader_url, change)
    assert time.monotonic() - begun < 20
    ran = result["run_result"]
    assert (result["status"], result["compile_result"]) == ("Failed", None)
    assert (ran["status"], ran["return_code"]) == (status, code)
    assert result["message"]


def test_what_was_said_before_a_limit_is_there(grader_url: str) -> None:
    code = "print('said', flush=True)\nwhile True: pass"
    assert told(grader_url, {"code": code, "run_timeout": 0.2})["run_result"]["stdout"] == "said\n"


def test_a_program_that_takes_a_limit_for_nothing_has_not_succeeded(grader_url: str) -> None:
    code = """
import os, signal, sys
if os.fork() == 0:
    x = bytearray(1 << 29)
os.wait()
"""
    result = told(grader_url, {"code": code, "memory_limit_MB": 64})
    assert (result["status"], result["run_result"]["return_code"]) == ("Failed", -9)


def test_what_does_not_compile_did_not_run(grader_url: str) -> None:
    result = told(grader_url, {"language": "cpp", "code": "int main() { return x; }"})
    assert (result["status"], result["run_result"]) == ("Failed", None)
    assert (result["compile_result"]["status"], result["compile_result"]["return_code"]) == ("Finished", 1)
    assert "was not declared in this scope" in result["compile_result"]["stderr"]


def test_a_compiler_has_the_time_that_the_request_gives_it(grader_url: str) -> None:
    slow = f"#include <bits/stdc++.h>\nint main() {{ return std::map<int, int>()[{time.time_ns()} % 9]; }}\n"
    result = told(grader_url, {"language": "cpp", "code": slow, "compile_timeout": 0.02})
    assert (result["status"], result["run_result"]) == ("Failed", None)
    assert (result["compile_result"]["status"], result["compile_result"]["return_code"]) == ("TimeLimitExceeded", None)
    # Such a failure is nobody else's.
    assert told(grader_url, {"language": "cpp", "code": slow})["status"] == "Success"


def test_files_go_in_and_those_asked_for_come_out(grader_url: str) -> None:
    code = """
import os
assert sorted(os.listdir()) == ["in", "same.txt"], os.listdir()
data = open("in/data.bin", "rb").read()
os.makedirs("out")
open("out/\u00fc.bin", "wb").write(data[::-1])
open("out/not asked for", "w").write("x")
os.symlink("same.txt", "link")
"""
    files = {"in/data.bin": encoded(b"\x00\xffx"), "same.txt": encoded(b"same"), "none": None}
    fetch = ["out/\u00fc.bin", "same.txt", "same.txt", "missing", "in", "link"]
    result = told(grader_url, {"code": code, "files": files, "fetch_files": fetch})
    assert result["status"] == "Success", result
    assert result["files"] == {"out/\u00fc.bin": encoded(b"x\xff\x00"), "same.txt": encoded(b"same")}


def test_files_too_large_to_come_out_are_told_of(grader_url: str) -> None:
    code = "for name in 'abc': open(name, 'wb').write(bytes(3 << 20))"
    result = told(grader_url, {"code": code, "fetch_files": ["a", "b", "c"]})
    assert (result["status"], sorted(result["files"])) == ("Success", ["a", "b"])
    assert result["message"] == "1 of fetch_files did not fit into 8 MiB"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"code": None}, "code"),
        ({"stdin": 7}, "stdin"),
        ({"language": "verilog"}, "language"),
        ({"run_timeout": 0}, "run_timeout"),
        ({"run_timeout": "10"}, "run_timeout"),
        ({"compile_timeout": 61}, "compile_timeout"),
        ({"memory_limit_MB": 15}, "memory_limit_MB"),
        ({"memory_limit_MB": -2}, "memory_limit_MB"),
        ({"files": {"a": "no base64!"}}, "files.a"),
        ({"files": {"../a": ""}}, "files.../a"),
        ({"files": {"/etc/passwd": ""}}, "files./etc/passwd"),
        ({"files": {"a": "", "a/b": ""}}, "files"),
        ({"fetch_files": ["../x"]}, "fetch_files[0]"),
        ({"fetch_files": ["x"] * 33}, "fetch_files"),
        ({"args": ["-q"]}, "args"),
        ({"timeout": 3}, "timeout"),
    ],
)
def test_what_is_at_fault_is_named(grader_url: str, change: dict[str, Any], field: str) -> None:
    answer = ask(grader_url, change)
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"] == field


def test_a_full_queue_is_waited_for(serve: Serve) -> None:
    with (
        serve("--workers", "1", "--queue-size", "1", "--languages", "python") as server,
        ThreadPoolExecutor(24) as pool,
    ):
        answers = list(pool.map(lambda number: told(server.url, {"code": f"print({number})"}), range(24)))
    assert [answer["run_result"]["stdout"] for answer in answers] == [f"{number}\n" for number in range(24)]


def test_who_would_leave_before_its_turn_is_told_to_come_again(serve: Serve) -> None:
    with serve("--workers", "1", "--languages", "python") as server, ThreadPoolExecutor(1) as pool:
        code = "import time; time.sleep(30)"
        first = pool.submit(ask, server.url, {"code": code, "run_timeout": 12.0})
        time.sleep(0.5)
        begun = time.monotonic()
        second = ask(server.url, {"code": "print(1)", "run_timeout": 0.5, "compile_timeout": 0.5})
        assert second.status_code == 504
        assert 8.5 < time.monotonic() - begun < 10.5
        third = ask(server.url, {"code": "print(1)"}, **{"X-Deadline-S": "0.5"})
        assert third.status_code == 504
        assert first.result().json()["run_result"]["status"] == "TimeLimitExceeded"


def test_a_fault_of_the_services_is_to_be_asked_again_and_a_mistake_is_not() -> None:
    with pytest.raises(AskAgain), asked_again():
        raise ZeroDivisionError
    with pytest.raises(InvalidRequest), asked_again():
        raise InvalidRequest.at("code", "wrong")
