"""Sessions, end to end: real shells in real cells, whose they are and when they end."""

from __future__ import annotations

import base64
import concurrent.futures
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from service.contract import ExecResult, SessionInfo
from service.contract.sessions import MAX_COMMAND_BYTES
from tests.conftest import Serve
from tests.serving import assert_nothing_left, metric, poll

pytestmark = pytest.mark.jail

SMALL = {"memory_mb": 160, "disk_mb": 32}


@pytest.fixture
def client(grader_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=grader_url, timeout=60) as client:
        yield client


Open = Callable[..., str]


@pytest.fixture
def opened(client: httpx.Client) -> Iterator[Open]:
    """Opens a session; at the end all of them are closed."""
    paths: list[str] = []

    def open_session(**request: Any) -> str:
        answer = client.post("/sessions", json={"limits": SMALL, **request})
        assert answer.status_code == 201, answer.text
        info = SessionInfo.model_validate_json(answer.content)
        assert answer.headers["location"] == f"/sessions/{info.id}"
        paths.append(f"/sessions/{info.id}")
        return paths[-1]

    yield open_session
    for path in paths:
        client.delete(path)


@pytest.fixture
def session(opened: Open) -> str:
    return opened()


def run(client: httpx.Client, session: str, command: str, **fields: Any) -> dict[str, Any]:
    answer = client.post(f"{session}/exec", json={"command": command, **fields})
    assert answer.status_code == 200, answer.text
    ExecResult.model_validate_json(answer.content)
    result: dict[str, Any] = answer.json()
    return result


def test_commands_share_a_workspace(client: httpx.Client, session: str) -> None:
    first = run(client, session, "pwd; read x; echo $x > kept; echo aside >&2; exit 3", stdin="a line\n")
    assert {name: first[name] for name in ("stdout", "stderr", "truncated", "exit_code", "signal", "timed_out")} == {
        "stdout": "/box\n",
        "stderr": "aside\n",
        "truncated": False,
        "exit_code": 3,
        "signal": None,
        "timed_out": False,
    }
    assert 0 <= first["cpu_s"] < 5
    assert 0 < first["wall_s"] < 10
    assert (0 < first["memory_bytes"] < SMALL["memory_mb"] * 2**20, first["oom_kills"]) == (True, 0)
    assert run(client, session, "cat kept; kill -9 $$")["stdout"] == "a line\n"
    assert run(client, session, "kill -9 $$")["signal"] == 9


def test_a_command_is_told_what_memory_it_took(client: httpx.Client, session: str) -> None:
    limit = SMALL["memory_mb"] * 2**20
    before = run(client, session, "true")["memory_bytes"]
    held = run(client, session, "python3 -c 'x = b\"x\" * 60_000_000'")
    assert before < 60_000_000 < held["memory_bytes"] <= limit
    assert (held["oom_kills"], held["exit_code"]) == (0, 0)
    past = run(client, session, "python3 -c 'x = [b\"x\" * 10**6 for _ in range(10**4)]'; echo still here")
    assert (past["oom_kills"], past["stdout"]) == (1, "still here\n")
    assert past["memory_bytes"] > 0.9 * limit
    assert run(client, session, "true")["oom_kills"] == 0


@pytest.mark.parametrize("letter", ["x", "é"])
def test_the_longest_commands_run(client: httpx.Client, session: str, letter: str) -> None:
    text = letter * ((MAX_COMMAND_BYTES - len("printf ''")) // len(letter.encode()))
    assert run(client, session, f"printf '{text}'")["stdout"] == text


def test_programs_are_compiled_and_run_in_it(client: httpx.Client, opened: Open) -> None:
    session = opened(
        limits={"memory_mb": 700, "disk_mb": 64}, files={"main.c": {"text": "int main() { return 42; }\n"}}
    )
    result = run(client, session, "gcc -o main main.c && ./main", timeout_s=60)
    assert (result["exit_code"], result["stderr"]) == (42, "")


def test_what_a_command_leaves_running_goes_on_until_the_end(client: httpx.Client, opened: Open) -> None:
    session = opened()
    run(client, session, "(while sleep 0.05; do date +%N > clock; done) > /dev/null 2>&1 &")
    seen = set()

    def ticks() -> bool:
        seen.add(run(client, session, "cat clock 2> /dev/null")["stdout"])
        return len(seen) > 2

    poll(ticks, 20, "it goes on")
    assert client.delete(session).status_code == 204
    assert client.post(f"{session}/exec", json={"command": "true"}).status_code == 404


def test_a_timeout_ends_the_command_and_what_it_started(client: httpx.Client, session: str) -> None:
    begun = time.monotonic()
    result = run(client, session, "echo begun; (sleep 60; touch late) & sleep 60", timeout_s=0.5)
    assert (result["timed_out"], result["exit_code"], result["signal"], result["stdout"]) == (True, None, 9, "begun\n")
    assert time.monotonic() - begun < 10
    assert run(client, session, "ls")["stdout"] == ""
    poll(lambda: "sleep" not in run(client, session, "cat /proc/[0-9]*/comm")["stdout"], 10, "nothing of it is left")


def test_a_client_that_leaves_ends_its_command(client: httpx.Client, session: str) -> None:
    with pytest.raises(httpx.ReadTimeout):
        client.post(f"{session}/exec", json={"command": "sleep 60"}, timeout=httpx.Timeout(10, read=0.5))
    poll(lambda: "sleep" not in run(client, session, "cat /proc/[0-9]*/comm")["stdout"], 10, "nothing of it is left")


def test_commands_run_side_by_side(client: httpx.Client, session: str) -> None:
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waits = pool.submit(run, client, session, "while ! test -e go; do sleep 0.02; done; echo went")
        run(client, session, "touch go")
        assert waits.result()["stdout"] == "went\n"


def test_output_is_cut_to_its_end(client: httpx.Client, session: str) -> None:
    result = run(client, session, "head -c 2000000 /dev/zero | tr '\\0' x; printf 'the \\377 end'")
    assert result["truncated"] is True
    assert len(result["stdout"]) == 2**20
    assert result["stdout"].endswith("xthe \ufffd end")


def test_files_are_written_read_and_listed(client: httpx.Client, session: str) -> None:
    data = bytes(range(256))
    files = {"a/b/c.bin": {"base64": base64.b64encode(data).decode()}, "n\u00f6tes": {"text": "\u00fc"}}
    assert client.put(f"{session}/files", json={"files": files}).status_code == 204
    read = client.get(f"{session}/files", params={"path": "a/b/c.bin"}).json()
    assert read == {"text": None, "base64": base64.b64encode(data).decode(), "size_bytes": 256, "truncated": False}
    part = client.get(f"{session}/files", params={"path": "n\u00f6tes"}).json()
    assert part == {"text": "\u00fc", "base64": None, "size_bytes": 2, "truncated": False}
    run(client, session, "ln -s /etc link; printf x >> n\u00f6tes; ls -l a/b/c.bin")
    assert client.get(f"{session}/files", params={"path": "n\u00f6tes", "offset": 2}).json()["text"] == "x"
    listed = client.get(f"{session}/files").json()
    assert [(one["name"], one["kind"]) for one in listed["entries"]] == [
        ("a", "folder"), ("link", "link"), ("n\u00f6tes", "file"),
    ]  # fmt: skip
    assert listed["more"] is False
    client.put(f"{session}/files", json={"files": {"n\u00f6tes": {"text": ""}}})
    assert run(client, session, "wc -c < n\u00f6tes")["stdout"] == "0\n"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("none", 404),
        ("link/passwd", 409),
        ("link", 409),
        ("file/below", 409),
        ("closed", 409),
        ("../x", 422),
        ("/x", 422),
    ],
)
def test_what_cannot_be_read_is_told(client: httpx.Client, session: str, path: str, status: int) -> None:
    run(client, session, "ln -s /etc link; touch file closed; chmod 0 closed")
    answer = client.get(f"{session}/files", params={"path": path})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    if status == 409:
        assert client.put(f"{session}/files", json={"files": {path: {"text": "x"}}}).status_code == 409


def test_a_file_is_graded_in_a_cell_of_its_own(client: httpx.Client, session: str, a_plus_b: dict[str, Any]) -> None:
    source = a_plus_b.pop("source")
    run(client, session, "mkdir deep; cat > deep/sum.py; touch other", stdin=source)
    answer = client.post(f"{session}/grade", json={**a_plus_b, "path": "deep/sum.py", "id": "from a session"})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["verdict"], answer.json()["id"]) == ("accepted", "from a session")
    run(client, session, "echo 'import os; print(os.listdir())' > deep/sum.py")
    shown = client.post(f"{session}/grade", json={**a_plus_b, "path": "deep/sum.py", "detail": "outputs"}).json()
    assert (shown["verdict"], shown["tests"][0]["stdout_tail"]) == ("wrong_answer", "[]\n")
    assert client.post(f"{session}/grade", json={**a_plus_b, "path": "none.py"}).status_code == 404
    run(client, session, "printf '\\377' > bad.py")
    assert client.post(f"{session}/grade", json={**a_plus_b, "path": "bad.py"}).status_code == 409


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"ttl_s": 0}, "ttl_s"),
        ({"limits": {"memory_mb": 64, "disk_mb": 32}}, "limits.memory_mb"),
        ({"limits": {"memory_mb": 65536, "disk_mb": 1}}, "limits.memory_mb"),
        ({"limits": {"gpu": 1}}, "limits.gpu"),
        ({"files": {"../x": {"text": ""}}}, "files.../x"),
        ({"language": "python"}, "language"),
    ],
)
def test_what_is_at_fault_is_named(client: httpx.Client, request_: dict[str, Any], field: str) -> None:
    answer = client.post("/sessions", json=request_)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({}, "command"),
        ({"command": ""}, "command"),
        ({"command": "a\0b"}, "command"),
        ({"command": "é" * (MAX_COMMAND_BYTES // 2) + "x"}, "command"),
        ({"command": "a", "tty": 1}, "tty"),
        ({"command": "a", "timeout_s": 0}, "timeout_s"),
    ],
)
def test_what_of_a_command_is_at_fault_is_named(
    client: httpx.Client, session: str, request_: dict[str, Any], field: str
) -> None:
    answer = client.post(f"{session}/exec", json=request_)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_sessions_end_by_themselves_and_leave_nothing(serve: Serve) -> None:
    flags = ("--workers", "1", "--languages", "python", "--sessions", "2", "--session-lifetime-s", "4")
    with serve(*flags) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        idle = client.post("/sessions", json={"ttl_s": 1, "limits": SMALL}).json()["id"]
        spins = client.post("/sessions", json={"limits": {**SMALL, "cpu_s": 0.5}}).json()["id"]
        full = client.post("/sessions", json={"limits": SMALL})
        assert (full.status_code, int(full.headers["retry-after"]) >= 1) == (429, True)
        family = server.family()
        run(client, f"/sessions/{spins}", "(while :; do :; done) > /dev/null 2>&1 &")
        for identifier in (idle, spins):
            poll(lambda one=identifier: client.get(f"/sessions/{one}").status_code == 404, 20, "it has ended")  # type: ignore[misc]
        told = [client.get(f"/sessions/{one}").json() for one in (idle, spins)]
        assert [(one["type"], one["ended"]) for one in told] == [
            ("urn:rkgrade:error:session-ended", "idle"),
            ("urn:rkgrade:error:session-ended", "cpu"),
        ]
        poll(lambda: metric(server.url, "rkgrade_sessions_open") == 0, 10, "none is open")
        lasts = client.post("/sessions", json={"limits": SMALL}).json()["id"]
        begun = time.monotonic()
        while client.post(f"/sessions/{lasts}/exec", json={"command": "true"}).status_code == 200:
            assert time.monotonic() - begun < 20
            time.sleep(0.2)
        text = client.get("/metrics").text
        for end in ("idle", "cpu", "lifetime"):
            assert f'rkgrade_sessions_total{{end="{end}"}} 1.0' in text
        assert_nothing_left([one for one in family if one.pid not in {p.pid for p in server.family()}])


def test_shutting_down_ends_them(serve: Serve) -> None:
    with serve("--workers", "1", "--languages", "python", "--drain-timeout-s", "1") as server:
        session = httpx.post(f"{server.url}/sessions", json={"limits": SMALL}).json()["id"]
        command = {"command": "sleep 60 & sleep 60"}
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waits = pool.submit(httpx.post, f"{server.url}/sessions/{session}/exec", json=command, timeout=60)
            poll(lambda: any("sleep" in one.name() for one in server.family()), 10, "it runs")
            family = server.family()
            assert server.end() == 0, server.log.read_text()
            assert waits.exception() is not None or waits.result().status_code == 404
        assert_nothing_left(family)


def test_a_killed_service_leaves_none(serve: Serve) -> None:
    with serve("--workers", "1", "--languages", "python") as server:
        session = httpx.post(f"{server.url}/sessions", json={"limits": SMALL}).json()["id"]
        httpx.post(f"{server.url}/sessions/{session}/exec", json={"command": "setsid sleep 60 > /dev/null &"})
        family = server.family()
        server.process.kill()
        server.process.wait(10)
        _, alive = psutil.wait_procs(family, timeout=20)
        assert [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []
    # What it had made of control groups is empty, and cleared by whoever starts next.
    with serve("--workers", "1", "--languages", "python"):
        assert_nothing_left(family)


def test_a_session_is_its_clients_alone_and_ends_with_its_token(serve: Serve, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    one, other = "one-0123456789abcdefghij", "other-0123456789abcdefghij"
    tokens.write_text(f"one {one}\nother {other}\n")

    def headers(token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    with serve("--workers", "1", "--languages", "python", "--tokens-file", str(tokens)) as server:
        answer = httpx.post(f"{server.url}/sessions", json={"limits": SMALL}, headers=headers(one))
        url = f"{server.url}/sessions/{answer.json()['id']}"
        for method, path, body in (
            ("GET", "", None), ("DELETE", "", None), ("POST", "/exec", {"command": "true"}),
            ("GET", "/files", None), ("PUT", "/files", {"files": {"a": {"text": ""}}}),
        ):  # fmt: skip
            assert httpx.request(method, url + path, json=body, headers=headers(other)).status_code == 404
            assert httpx.request(method, url + path, json=body).status_code == 401
        assert httpx.post(f"{url}/exec", json={"command": "true"}, headers=headers(one)).status_code == 200
        changed = "changed-0123456789abcdefghij"
        tokens.write_text(f"one {changed}\nother {other}\n")
        poll(lambda: httpx.get(url, headers=headers(changed)).status_code == 404, 20, "it has ended with its token")


def test_grades_go_on_beside_them(client: httpx.Client, session: str, a_plus_b: dict[str, Any]) -> None:
    spin = "for i in 1 2 3 4; do (while :; do :; done) & done"
    run(client, session, f"({spin}) > /dev/null 2>&1")
    results = [client.post("/grade", json=a_plus_b).json() for _ in range(5)]
    assert {result["verdict"] for result in results} == {"accepted"}


def test_none_are_offered_where_they_are_turned_off(serve: Serve) -> None:
    with serve("--workers", "1", "--languages", "python", "--sessions", "0") as server:
        answer = httpx.post(f"{server.url}/sessions", json={})
        assert (answer.status_code, answer.json()["type"]) == (501, "urn:rkgrade:error:not-offered")
        assert "RKGRADE_SESSIONS" in answer.json()["detail"]


def test_cores_are_those_that_no_judge_has(serve: Serve) -> None:
    cores = sorted(os.sched_getaffinity(0))
    with serve("--workers", "1", "--languages", "python") as server:
        url = f"{server.url}/sessions"
        url = f"{url}/{httpx.post(url, json={'limits': SMALL}).json()['id']}/exec"
        said = httpx.post(
            url, json={"command": "python3 -c 'import os; print(sorted(os.sched_getaffinity(0)), os.nice(0))'"}
        )
        assert said.json()["stdout"] == f"{cores[1:] or cores} 10\n"
