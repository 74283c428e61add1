"""Terminals of sessions, end to end: a real bash on a real pty, by a real WebSocket."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from service.routes.terminal import MOST_MESSAGE_BYTES
from tests.conftest import Serve
from tests.service.terminals import PROMPT, WITHIN_S, Screen, at, terminal
from tests.serving import Server, metric, poll
from tests.slowness import SLOWNESS

pytestmark = pytest.mark.jail

LIMITS = {"memory_mb": 160, "disk_mb": 32}


@pytest.fixture
def client(grader_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=grader_url, timeout=60) as client:
        yield client


@pytest.fixture
def session(client: httpx.Client) -> Iterator[str]:
    """The path of one."""
    answer = client.post("/sessions", json={"limits": LIMITS})
    assert answer.status_code == 201, answer.text
    path = f"/sessions/{answer.json()['id']}"
    yield path
    client.delete(path)


@pytest.fixture
def screen(grader_url: str, session: str) -> Iterator[Screen]:
    """A shell, at its prompt."""
    with terminal(grader_url, session) as screen:
        screen.until(PROMPT)
        yield screen


def commands(client: httpx.Client, session: str) -> list[str]:
    answer = client.post(f"{session}/exec", json={"command": "cat /proc/[0-9]*/comm"})
    assert answer.status_code == 200, answer.text
    return [name for name in answer.json()["stdout"].split() if name not in ("python3", "sh", "cat")]


def test_bash_is_at_a_terminal_of_its_own(screen: Screen) -> None:
    assert screen.run("test -t 0 && test -t 1 && test -t 2 && echo yes") == "yes"
    assert screen.run("echo $TERM; tput cols") == "xterm-256color\r\n80"
    assert screen.run("case $- in *i*m*) echo jobs;; esac") == "jobs"
    assert screen.run("pwd; id -u") == "/box\r\n1000"
    # Scripts open it anew by these names.
    assert screen.run("echo told > /dev/stderr; head -1 < /dev/stdin <<< line") == "told\r\nline"


def test_lines_are_edited_and_echoed(screen: Screen) -> None:
    screen.type("echo onx\x7fe")
    screen.until("e")
    assert screen.run("") == "one"
    # Only what it prints tells that the terminal is no longer the shell's own editor's.
    screen.type("echo $((1 + 41)); cat\r")
    screen.until("42\r\n")
    screen.type("aä\x7fb\r")
    screen.until("ab\r\n")
    screen.type("\x04")
    screen.until(PROMPT)


def test_files_are_those_of_the_session(client: httpx.Client, session: str, screen: Screen) -> None:
    screen.run("echo here > file")
    assert client.get(f"{session}/files", params={"path": "file"}).json()["text"] == "here\n"


def test_the_window_has_a_size_and_may_change(screen: Screen) -> None:
    assert screen.run("stty size") == "24 80"
    screen.run("trap 'echo changed' WINCH")
    screen.resize(50, 132)
    assert screen.run("stty size").endswith("50 132")
    told = "signal.signal(28, lambda *_: (os.write(1, repr(os.get_terminal_size()).encode()), os._exit(0)))"
    screen.type(f"python3 -c 'import os, signal; {told}; print(1 + 41)\nwhile True: signal.pause()'\r")
    screen.until("42\r\n")
    screen.resize(10, 20)
    screen.until("columns=20, lines=10")


def test_it_begins_as_its_address_says(grader_url: str, session: str) -> None:
    with terminal(grader_url, session, rows=7, columns=9, term="vt100", command="stty size; echo $TERM") as screen:
        assert screen.end() == ({"exit_code": 0, "signal": None}, 1000)
        assert screen.printed == b"7 9\r\nvt100\r\n"


def test_ctrl_c_reaches_the_foreground_job_alone(screen: Screen) -> None:
    screen.run("sleep 1000 &")
    # Only what it prints tells that it has the terminal, and not the shell any more.
    screen.type("bash -c 'echo $((1 + 41)); exec sleep 2000'\r")
    screen.until("42\r\n")
    screen.type("\x03")
    screen.until(PROMPT)
    assert screen.run("echo $?") == "130"
    assert "Running" in screen.run("jobs")
    # Python is not woken by what comes right before it sleeps.
    screen.type(
        'python3 -c \'import time\ntry:\n print("asleep")\n while True: time.sleep(0.1)\n'
        'except KeyboardInterrupt: print("woken")\'\r'
    )
    screen.until("asleep\r\n")
    screen.type("\x03")
    screen.until("woken\r\n")


def test_ctrl_z_and_jobs(screen: Screen) -> None:
    screen.type("bash -c 'echo $((1 + 41)); exec sleep 1000'\r")
    screen.until("42\r\n")
    screen.type("\x1a")
    screen.until("Stopped")
    screen.until(PROMPT)
    assert "sleep 1000" in screen.run("bg")


@pytest.mark.parametrize(
    ("typed", "end"),
    [
        ("exit 7\r", {"exit_code": 7, "signal": None}),
        ("\x04", {"exit_code": 0, "signal": None}),
        ("kill -9 $$\r", {"exit_code": None, "signal": 9}),
    ],
)
def test_its_end_is_told(screen: Screen, typed: str, end: dict[str, Any]) -> None:
    screen.type(typed)
    assert screen.end() == (end, 1000)


def test_all_that_was_printed_comes_before_the_end(grader_url: str, session: str) -> None:
    for _ in range(5):
        with terminal(grader_url, session, command="seq 20000") as screen:
            assert screen.end() == ({"exit_code": 0, "signal": None}, 1000)
            assert screen.printed.split() == [b"%d" % n for n in range(1, 20001)]


def test_what_is_left_in_the_background_does_not_hold_up_the_end(grader_url: str, session: str) -> None:
    """Neither where it keeps the terminal, nor where its shell has given that up and it floods it."""
    with terminal(grader_url, session, command="sleep 1000 & echo on") as screen:
        assert screen.end() == ({"exit_code": 0, "signal": None}, 1000)
        assert screen.printed == b"on\r\n"
    flood = (
        "import fcntl, os, signal, termios; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "fcntl.ioctl(0, termios.TIOCNOTTY)\nif not os.fork():\n while True: os.write(1, b'x' * 999)"
    )
    with terminal(grader_url, session, command=f'exec python3 -c "{flood}"') as screen:
        assert screen.end() == ({"exit_code": 0, "signal": None}, 1000)


def test_a_program_that_lets_go_of_its_terminal_is_waited_for(grader_url: str, session: str) -> None:
    with terminal(grader_url, session, command="exec > /dev/null 2>&1 < /dev/null; sleep 1; exit 5") as screen:
        assert screen.end() == ({"exit_code": 5, "signal": None}, 1000)


def test_a_client_that_leaves_ends_the_shell_and_its_jobs(client: httpx.Client, grader_url: str, session: str) -> None:
    with terminal(grader_url, session) as screen:
        screen.until(PROMPT)
        screen.run("sleep 1000 &")
        screen.type("sleep 2000\r")
        screen.until("\n")
        poll(lambda: sorted(commands(client, session)) == ["bash", "sleep", "sleep"], WITHIN_S, "they run")
    poll(lambda: commands(client, session) == [], WITHIN_S, "they have ended")


def test_a_program_that_ignores_the_hangup_is_ended(client: httpx.Client, grader_url: str, session: str) -> None:
    stubborn = "trap '' HUP INT TERM; echo on; while :; do sleep 1; done"
    with terminal(grader_url, session, command=f'exec bash -c "{stubborn}"') as screen:
        screen.until("on")
    poll(lambda: "bash" not in commands(client, session), WITHIN_S, "it has ended")


def test_a_connection_that_breaks_ends_the_shell(client: httpx.Client, grader_url: str, session: str) -> None:
    with terminal(grader_url, session) as screen:
        screen.until(PROMPT)
        screen.connection.socket.shutdown(socket.SHUT_RDWR)
        poll(lambda: commands(client, session) == [], WITHIN_S, "it has ended")


def test_deleting_the_session_is_told(client: httpx.Client, session: str, screen: Screen) -> None:
    assert client.delete(session).status_code == 204
    last, code = screen.end()
    assert (last["type"], last["detail"], code) == (
        "urn:rkgrade:error:session-ended",
        "the session has ended: closed",
        1008,
    )


def test_typing_is_use_and_printing_is_none(client: httpx.Client, grader_url: str) -> None:
    def opened() -> str:
        return f"/sessions/{client.post('/sessions', json={'limits': LIMITS, 'ttl_s': 2.0}).json()['id']}"

    with terminal(grader_url, opened(), command="while sleep 0.1; do echo on; done") as screen:
        begun = time.monotonic()
        last, code = screen.end()
        assert (last["detail"], code) == ("the session has ended: idle", 1008)
        assert time.monotonic() - begun < WITHIN_S
    path = opened()
    with terminal(grader_url, path) as screen:
        screen.until(PROMPT)
        until = time.monotonic() + 4
        while time.monotonic() < until:
            screen.run("true")
            time.sleep(0.1)
        assert client.delete(path).status_code == 204


def test_a_slow_reader_holds_up_the_program_and_nobody_else(
    request: pytest.FixtureRequest, client: httpx.Client, grader_url: str, session: str
) -> None:
    servers: list[Server] = [request.getfixturevalue(name) for name in ("grader", "cluster")]
    api = psutil.Process(next(server.process.pid for server in servers if server.url == grader_url))
    progress = "n = 0\nwhile True:\n print('x' * 1023); n += 1\n if n % 64 == 0: open('n', 'w').write(str(n))"
    client.put(f"{session}/files", json={"files": {"flood.py": {"text": progress}}})

    def written() -> int:
        answer = client.get(f"{session}/files", params={"path": "n"})
        return int(answer.json()["text"] or 0) if answer.status_code == 200 else 0

    with contextlib.closing(socket.create_connection(httpx.URL(grader_url).netloc.decode().split(":"))) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        address = at(grader_url, session, command="exec python3 flood.py").split("/", 3)
        sock.sendall(
            f"GET /{address[3]} HTTP/1.1\r\nHost: {address[2]}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        poll(lambda: written() > 0, WITHIN_S, "it prints")
        before = api.memory_info().rss

        def stands_still() -> bool:
            seen = written()
            time.sleep(1)
            return written() == seen

        poll(stands_still, WITHIN_S, "it waits for its reader")
        # What the sockets of this machine hold between the two is theirs.
        assert api.memory_info().rss - before < 16 * 2**20
        assert client.post(f"{session}/exec", json={"command": "true"}).json()["exit_code"] == 0
        # Who reads nothing for long loses the connection, and the program its terminal.
        poll(lambda: "python3" not in processes(client, session), 90 * SLOWNESS, "it has ended")


def processes(client: httpx.Client, session: str) -> str:
    command = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; done | grep flood.py | grep -v tr"
    text: str = client.post(f"{session}/exec", json={"command": command}).json()["stdout"]
    return text


def test_what_is_typed_and_never_read_is_bounded(grader_url: str, session: str) -> None:
    with terminal(grader_url, session, command="stty raw -echo; echo on; exec sleep 1000") as screen:
        screen.until("on")
        begun = time.monotonic()
        with contextlib.suppress(ConnectionClosed):
            for _ in range(1000):
                screen.connection.send(b"x" * MOST_MESSAGE_BYTES)
        assert time.monotonic() - begun < 30 * SLOWNESS
        last, code = screen.end()
        assert (last["type"], code) == ("urn:rkgrade:error:conflict", 1008)


def test_much_may_be_typed_where_it_is_read(client: httpx.Client, grader_url: str, session: str) -> None:
    sent = bytes(range(256)) * 4096
    with terminal(grader_url, session, command=f"stty raw -echo; echo on; head -c {len(sent)} > got") as screen:
        screen.until("on")
        for start in range(0, len(sent), 1 << 14):
            screen.connection.send(sent[start : start + (1 << 14)])
        assert screen.end() == ({"exit_code": 0, "signal": None}, 1000)
    digest = client.post(f"{session}/exec", json={"command": "sha256sum got"}).json()["stdout"].split()[0]
    assert digest == hashlib.sha256(sent).hexdigest()


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("", None),
        ("[]", None),
        ("{}", "rows"),
        ('{"rows": "24", "columns": 80}', "rows"),
        ('{"rows": 24, "columns": 0}', "columns"),
        ('{"rows": 24, "columns": 80, "pixels": 1}', "pixels"),
    ],
)
def test_a_text_that_is_no_size_is_refused(screen: Screen, message: str, field: str | None) -> None:
    screen.connection.send(message)
    last, code = screen.end()
    assert (last["type"], last.get("field"), code) == ("urn:rkgrade:error:invalid-request", field, 1008)


def test_a_message_that_is_too_long_ends_it(client: httpx.Client, session: str, screen: Screen) -> None:
    screen.connection.send(b"x" * (MOST_MESSAGE_BYTES + 1))
    with pytest.raises(ConnectionClosed) as closed:
        screen.until("never")
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009
    poll(lambda: commands(client, session) == [], WITHIN_S, "its shell has ended")


def refusal(url: str, headers: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    with pytest.raises(InvalidStatus) as refused:
        connect(url, additional_headers=headers, proxy=None)
    response = refused.value.response
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.body is not None
    return response.status_code, json.loads(response.body)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"rows": 0}, "rows"),
        ({"rows": "x"}, "rows"),
        ({"columns": 5000}, "columns"),
        ({"command": ""}, "command"),
        ({"command": "a\0b"}, "command"),
        ({"term": "x/../y"}, "term"),
        ({"term": "x\n"}, "term"),
        ({"shell": "zsh"}, "shell"),
    ],
)
def test_a_bad_address_names_the_field(grader_url: str, session: str, query: dict[str, Any], field: str) -> None:
    status, told = refusal(at(grader_url, session, **query))
    assert (status, told["field"]) == (422, field)


def test_sessions_that_are_not_there_have_no_terminal(grader_url: str) -> None:
    status, told = refusal(at(grader_url, "/sessions/nothing"))
    assert (status, told["type"]) == (404, "urn:rkgrade:error:no-session")


def test_plain_http_is_told_what_it_takes(client: httpx.Client, session: str) -> None:
    answer = client.get(f"{session}/tty")
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")
    assert answer.json()["type"] == "urn:rkgrade:error:upgrade-required"


def test_pages_of_other_sites_get_none(grader_url: str, session: str) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        status, told = refusal(at(grader_url, session), headers)
        assert (status, told["type"]) == (403, "urn:rkgrade:error:cross-site")
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    upgrade["Sec-WebSocket-Key"] = "AAAAAAAAAAAAAAAAAAAAAA=="
    answer = httpx.get(f"{grader_url}{session}/tty", headers={"Host": "evil.example", **upgrade})
    assert (answer.status_code, answer.json()["type"]) == (421, "urn:rkgrade:error:misdirected")
    with terminal(grader_url, session, {"Origin": grader_url}) as screen:
        screen.until(PROMPT)


def test_terminals_count_as_commands(grader_url: str, client: httpx.Client, session: str) -> None:
    before = metric(grader_url, "rkgrade_session_commands_total")
    with contextlib.ExitStack() as stack:
        for _ in range(16):
            stack.enter_context(terminal(grader_url, session, command="exec cat"))
        assert metric(grader_url, "rkgrade_session_commands_total") - before == 16
        status, told = refusal(at(grader_url, session))
        assert (status, told["type"]) == (429, "urn:rkgrade:error:sessions-full")
    poll(lambda: client.post(f"{session}/exec", json={"command": "true"}).status_code == 200, WITHIN_S, "room again")


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_tokens_hold_for_terminals(serve: Serve, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    mine, others = "mine-0123456789abcdef0123", "other-0123456789abcdef012"
    tokens.write_text(f"mine {mine}\nother {others}\n")
    with serve("--workers", "1", "--languages", "python", "--tokens-file", str(tokens)) as server:
        answer = httpx.post(f"{server.url}/sessions", json={"limits": LIMITS}, headers=bearer(mine))
        path = f"/sessions/{answer.json()['id']}"
        assert refusal(at(server.url, path))[0] == 401
        assert refusal(at(server.url, path), bearer(mine + "x"))[0] == 401
        assert refusal(at(server.url, path), bearer(others))[0] == 404
        assert "[error" not in server.log.read_text()
        with terminal(server.url, path, bearer(mine)) as screen:
            screen.until(PROMPT)
            # With its token goes the session, and the terminal with that.
            tokens.write_text(f"other {others}\n")
            assert screen.end()[0]["detail"] == "the session has ended: token"


def test_shutting_down_ends_terminals(serve: Serve) -> None:
    with serve("--workers", "1", "--languages", "python") as server:
        answer = httpx.post(f"{server.url}/sessions", json={"limits": LIMITS})
        with terminal(server.url, f"/sessions/{answer.json()['id']}") as screen:
            screen.until(PROMPT)
            begun = time.monotonic()
            family = server.family()
            assert server.end() == 0
            assert time.monotonic() - begun < 20 * SLOWNESS
            with pytest.raises(ConnectionClosed):
                screen.until("never")
        psutil.wait_procs(family, timeout=10)
        assert not [one for one in family if one.is_running()]
