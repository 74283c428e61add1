"""Sessions of a cluster, whatever of it is killed, cut off or full; what any engine promises is in `test_sessions`."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from service.engines.frames import Frame
from tests.service.cluster.conftest import Cluster
from tests.service.terminals import PROMPT, terminal
from tests.serving import Host, Server, assert_nothing_left, poll
from tests.slowness import SLOWNESS

pytestmark = pytest.mark.jail

SMALL = {"memory_mb": 160, "disk_mb": 32}
WITHIN_S = 20 * SLOWNESS

#: By then it is noticed that a host is gone: its lease, a look, and a second thought.
LOST_WITHIN_S = 20 * SLOWNESS


def opened(server: Server, **request: Any) -> str:
    """The address of a new session."""
    answer = httpx.post(f"{server.url}/sessions", json={"limits": SMALL, **request}, timeout=60)
    assert answer.status_code == 201, answer.text
    return f"{server.url}/sessions/{answer.json()['id']}"


def run(url: str, command: str, **fields: Any) -> httpx.Response:
    return httpx.post(f"{url}/exec", json={"command": command, **fields}, timeout=90)


def said(answer: httpx.Response) -> tuple[int, str]:
    """Its status, and why the session has ended, or else the type of the error."""
    told = answer.json()
    return answer.status_code, told.get("ended") or told.get("type", "").removeprefix("urn:rkgrade:error:")


@contextlib.contextmanager
def running(url: str, command: str) -> Iterator[concurrent.futures.Future[httpx.Response]]:
    """A command that has begun, and says so in the file `begun`."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run, url, f"touch begun; {command}", timeout_s=60)
        poll(lambda: httpx.get(f"{url}/files", params={"path": "begun"}).status_code == 200, WITHIN_S, "it runs")
        yield waiting


def programs(host: Host, name: str) -> list[psutil.Process]:
    found = []
    for one in host.family():
        with contextlib.suppress(psutil.NoSuchProcess):
            if one.name() == name:
                found.append(one)
    return found


def test_any_api_has_it(own_cluster: Cluster) -> None:
    with own_cluster.host("--workers", "1"), own_cluster.api() as one, own_cluster.api() as other:
        url = opened(one, files={"file": {"text": "kept"}})
        elsewhere = url.replace(one.url, other.url)
        assert run(elsewhere, "cat file").json()["stdout"] == "kept"
        assert httpx.delete(elsewhere).status_code == 204
        assert said(run(url, "true")) == (404, "closed")


def test_those_of_a_killed_host_are_lost_and_said_to_be(own_cluster: Cluster) -> None:
    with own_cluster.host("--workers", "1") as host, own_cluster.api() as server:
        url = opened(server)
        family = host.family()
        with running(url, "sleep 60") as waiting:
            begun = time.monotonic()
            host.process.kill()
            assert said(waiting.result()) == (404, "lost")
            assert time.monotonic() - begun < LOST_WITHIN_S
        for answer in (run(url, "true"), httpx.get(url), httpx.delete(url), httpx.get(f"{url}/files")):
            assert said(answer) == (404, "lost")
        # Its control groups are cleared by whoever starts next.
        _, alive = psutil.wait_procs(family, timeout=20)
        assert [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []
        # Nobody else is told more of it than that there is none.
        own_cluster.redis.client.set("rkgrade:session:other", json.dumps({"host": "x", "client": "o", "token": None}))
        assert said(httpx.get(f"{server.url}/sessions/other")) == (404, "no-session")
        assert said(httpx.post(f"{server.url}/sessions", json={})) == (503, "unavailable")


def test_a_terminal_of_a_killed_host_ends_with_a_word(own_cluster: Cluster) -> None:
    with own_cluster.host("--workers", "1") as host, own_cluster.api() as server:
        path = opened(server).removeprefix(server.url)
        with terminal(server.url, path) as screen:
            screen.until(PROMPT)
            host.process.kill()
            last, code = screen.end()
            assert (last["ended"], code) == ("lost", 1008)


def test_a_host_that_is_told_to_go_ends_them_once_commands_have_ended(own_cluster: Cluster) -> None:
    with own_cluster.host("--workers", "1") as host, own_cluster.api() as server:
        url = opened(server)
        family = host.family()
        with running(url, "while ! test -e go; do sleep 0.05; done; echo went") as waiting:
            host.process.send_signal(signal.SIGTERM)
            poll(lambda: b"draining" in host.log.read_bytes(), WITHIN_S, "it drains")
            assert said(httpx.post(f"{server.url}/sessions", json={"limits": SMALL})) == (429, "sessions-full")
            httpx.put(f"{url}/files", json={"files": {"go": {"text": ""}}})
            assert waiting.result().json()["stdout"] == "went\n"
        assert host.process.wait(30) == 0
        assert said(run(url, "true")) == (404, "shutdown")
        assert_nothing_left(family)
        assert own_cluster.redis.client.keys("rkgrade:session-*") == []


def test_commands_that_do_not_end_are_ended_with_their_host(own_cluster: Cluster) -> None:
    with own_cluster.host("--workers", "1", "--drain-timeout-s", "1") as host, own_cluster.api() as server:
        url = opened(server)
        family = host.family()
        with running(url, "sleep 60") as waiting:
            assert host.end() == 0
            assert said(waiting.result()) == (404, "shutdown")
        assert_nothing_left(family)


def test_commands_and_terminals_of_a_killed_api_are_ended(own_cluster: Cluster) -> None:
    with own_cluster.host("--workers", "1") as host, own_cluster.api() as one, own_cluster.api() as other:
        url = opened(one)
        with running(url, "exec sleep 1000") as waiting, terminal(one.url, url.removeprefix(one.url)) as screen:
            screen.until(PROMPT)
            poll(lambda: [len(programs(host, name)) for name in ("sleep", "bash")] == [1, 1], WITHIN_S, "both run")
            one.process.kill()
            assert isinstance(waiting.exception(), httpx.TransportError)
            # What lapses by itself after two minutes and a half; the one that lives is heard of again in a second.
            own_cluster.redis.client.delete("rkgrade:apis")
            poll(lambda: not programs(host, "sleep") and not programs(host, "bash"), WITHIN_S, "they have ended")
        assert run(url.replace(one.url, other.url), "ls").json()["stdout"] == "begun\n"


def test_redis_may_go_and_come_back_empty(own_cluster: Cluster) -> None:
    with own_cluster.host("--workers", "1"), own_cluster.api() as server:
        url = opened(server)
        with running(url, "while ! test -e go; do sleep 0.05; done; echo went") as waiting:
            own_cluster.redis.client.flushall()
            poll(lambda: run(url, "touch go").status_code == 200, WITHIN_S, "it is known again")
            assert waiting.result().json()["stdout"] == "went\n"
        own_cluster.redis.end()
        poll(lambda: said(run(url, "true")) == (503, "unavailable"), WITHIN_S, "Redis is out of reach")
        own_cluster.redis.start()
        poll(lambda: run(url, "true").status_code == 200, WITHIN_S, "and in reach again")


def test_answers_wait_for_redis(own_cluster: Cluster) -> None:
    with own_cluster.host("--workers", "1"), own_cluster.api() as server:
        url = opened(server)
        with running(url, "sleep 2; echo slept") as waiting:
            own_cluster.redis.end()
            time.sleep(4)
            own_cluster.redis.start()
            assert waiting.result().json()["stdout"] == "slept\n"


def test_they_spread_over_hosts_as_far_as_these_have_room(own_cluster: Cluster) -> None:
    flags = ("--workers", "1", "--sessions", "1")
    with own_cluster.host(*flags) as one, own_cluster.host(*flags) as other, own_cluster.api() as server:
        poll(lambda: len(own_cluster.redis.client.hgetall("rkgrade:session-rooms")) == 2, 60, "both tell")  # type: ignore[arg-type]
        urls = [opened(server), opened(server)]
        for url in urls:
            run(url, "sleep 1000 > /dev/null 2>&1 &")
        # What a shell has in the background may still be the shell when that has ended.
        poll(lambda: [len(programs(host, "sleep")) for host in (one, other)] == [1, 1], WITHIN_S, "one on each")
        full = httpx.post(f"{server.url}/sessions", json={"limits": SMALL})
        assert said(full) == (429, "sessions-full")
        assert int(full.headers["retry-after"]) >= 1
        assert httpx.delete(urls[0]).status_code == 204
        opened(server)


def test_a_host_that_is_too_small_does_not_answer_for_one_that_is_full(own_cluster: Cluster) -> None:
    limits = {"memory_mb": 800, "disk_mb": 32}
    flags = ("--workers", "1", "--sessions", "1", "--memory-mb")
    with own_cluster.host(*flags, "1000"), own_cluster.host(*flags, "3000"), own_cluster.api() as server:
        poll(
            lambda: said(httpx.post(f"{server.url}/sessions", json={"limits": limits}))[0] == 201, WITHIN_S, "one opens"
        )
        assert said(httpx.post(f"{server.url}/sessions", json={"limits": limits})) == (429, "sessions-full")


def test_hosts_that_keep_none_say_so(own_cluster: Cluster) -> None:
    with own_cluster.host("--workers", "1", "--sessions", "0"), own_cluster.api() as server:
        assert said(httpx.post(f"{server.url}/sessions", json={})) == (501, "not-offered")


def test_no_more_memory_is_taken_jobs_for_than_sessions_leave(own_cluster: Cluster, a_plus_b: dict[str, Any]) -> None:
    """A grade that finds no room beside them is run alone, as one does that finds none at all."""
    a_plus_b["problem"]["limits"] = {"memory_mb": 600}
    with own_cluster.host("--workers", "1", "--memory-mb", "1000"), own_cluster.api() as server:
        opened(server, limits={"memory_mb": 500, "disk_mb": 32})
        refused = httpx.post(f"{server.url}/sessions", json={"limits": SMALL})
        assert said(refused) == (429, "sessions-full")
        large = httpx.post(f"{server.url}/sessions", json={"limits": {"memory_mb": 501, "disk_mb": 32}})
        assert (large.status_code, large.json()["field"]) == (422, "limits.memory_mb")
        graded = httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=60).json()
        assert graded["verdict"] == "accepted"


def test_it_is_its_clients_alone_and_ends_with_its_token(own_cluster: Cluster, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    one, other = "one-0123456789abcdefghij", "other-0123456789abcdefghij"
    tokens.write_text(f"one {one}\nother {other}\n")

    def headers(token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    with own_cluster.host("--workers", "1"), own_cluster.api("--tokens-file", str(tokens)) as server:
        answer = httpx.post(f"{server.url}/sessions", json={"limits": SMALL}, headers=headers(one))
        url = f"{server.url}/sessions/{answer.json()['id']}"
        for method, path, body in (
            ("GET", "", None), ("DELETE", "", None), ("POST", "/exec", {"command": "true"}),
            ("GET", "/files", None), ("PUT", "/files", {"files": {"a": {"text": ""}}}),
        ):  # fmt: skip
            assert httpx.request(method, url + path, json=body, headers=headers(other)).status_code == 404
        changed = "changed-0123456789abcdefghij"
        tokens.write_text(f"one {changed}\nother {other}\n")
        poll(lambda: httpx.get(url, headers=headers(changed)).status_code == 404, 20, "it has ended with its token")


def test_what_is_no_letter_harms_nobody(own_cluster: Cluster) -> None:
    with own_cluster.host("--workers", "1"), own_cluster.api() as server:
        url = opened(server)
        redis = own_cluster.redis.client
        place = json.loads(redis.get(f"rkgrade:session:{url.rpartition('/')[2]}"))  # type: ignore[arg-type]
        [api] = redis.zrange("rkgrade:apis", 0, -1)  # type: ignore[misc]
        envelope = {"api": api.decode(), "number": "none"}
        session = {"session": url.rpartition("/")[2], "client": "", "envelope": envelope}
        frames = [Frame(kind, session) for kind in ("exec", "nothing", "tty", "tty-read", "cancel", "done", "error")]
        misnumbered = Frame("done", {"envelope": {**envelope, "number": []}})
        letters = [frame.encode() for frame in (*frames, misnumbered, Frame("open", {"envelope": envelope}))]
        garbage = [b"", b"\0" * 8, b"\0\0\0\2\0\0\0\0[]", b"\0\0\0\2\0\0\0\0{}", b"\xff" * 64]
        for key in (f"rkgrade:session-asks:{place['host']}", f"rkgrade:session-answers:{api.decode()}"):
            for letter in (*garbage, *letters):
                redis.rpush(key, letter)
        assert run(url, "echo on").json()["stdout"] == "on\n"


def test_files_of_many_megabytes_come_and_go(own_cluster: Cluster) -> None:
    with own_cluster.host("--workers", "1"), own_cluster.api() as server:
        url = opened(server)
        text = "0123456789abcdef" * 2**19
        assert httpx.put(f"{url}/files", json={"files": {"large": {"text": text}}}, timeout=60).status_code == 204
        assert run(url, "wc -c < large").json()["stdout"] == f"{len(text)}\n"
        assert httpx.get(f"{url}/files", params={"path": "large"}, timeout=60).json()["text"] == text
