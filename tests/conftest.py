"""Fixtures for all tests: one real server for the session, and further ones for tests that must break theirs."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

READY_WITHIN_S = 180.0
GONE_WITHIN_S = 15.0

RKGRADE = Path(sys.executable).with_name("rkgrade")


@dataclass(frozen=True, slots=True)
class Server:
    """A running `rkgrade serve`."""

    url: str
    process: subprocess.Popen[bytes]
    data_dir: Path
    log: Path

    def workers(self) -> list[psutil.Process]:
        return [
            child
            for child in psutil.Process(self.process.pid).children()
            if "service.engines.worker" in child.cmdline()
        ]

    def family(self) -> list[psutil.Process]:
        """Every process the server has, itself first."""
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]

    def end(self) -> int:
        """SIGTERM, and what the server's exit status is."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def poll(condition: Callable[[], object], within_s: float, what: str) -> None:
    """Wait until the condition holds; fail where it does not in time."""
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, f"not within {within_s} s: {what}"
        time.sleep(0.02)


def groups_of(pids: set[int]) -> list[str]:
    """Control groups that graders with these pids have made and not removed."""
    found = []
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        for name in names:
            match = re.match(r"rkgrade-\d+-(\d+)-\d+$", name)
            if match and int(match.group(1)) in pids:
                found.append(f"{directory}/{name}")
    return found


def assert_nothing_left(family: list[psutil.Process]) -> None:
    """No process of a server that has ended is alive, and none of its control groups exists."""
    _, alive = psutil.wait_procs(family, timeout=GONE_WITHIN_S)
    # A zombie in a container without an init is nobody's to reap; it runs nothing.
    running = [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    assert running == []
    assert groups_of({one.pid for one in family}) == []


@contextlib.contextmanager
def serving(data_dir: Path, log: Path, *flags: str) -> Iterator[Server]:
    """A server on a free port, ready; killed at the end where the test has not ended it."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(RKGRADE), "serve", "--port", "0", "--data-dir", str(data_dir), *flags],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        server = Server(_url(process, log), process, data_dir, log)
        poll(lambda: _ready(server), READY_WITHIN_S, "ready")
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)


def _url(process: subprocess.Popen[bytes], log: Path) -> str:
    found: list[str] = []

    def announced() -> bool:
        assert process.poll() is None, log.read_text()
        found.extend(re.findall(r"serves on (http://\S+)", log.read_text()))
        return bool(found)

    poll(announced, READY_WITHIN_S, "the server's address")
    return found[0]


def _ready(server: Server) -> bool:
    assert server.process.poll() is None, server.log.read_text()
    try:
        return httpx.get(f"{server.url}/health/ready").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="session")
def grader_data_dir() -> Iterator[Path]:
    """Shared by all servers of the session, so that headers are built once.

    Not below pytest's own directory, which is closed to the users that cells run as.
    """
    with tempfile.TemporaryDirectory(prefix="rkgrade-tests-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory


@pytest.fixture(scope="session")
def grader(grader_data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The session's server; at its end SIGTERM must leave nothing behind."""
    log = tmp_path_factory.mktemp("grader-log") / "log"
    with serving(grader_data_dir, log, "--workers", str(min(2, len(os.sched_getaffinity(0))))) as server:
        yield server
        family = server.family()
        assert server.end() == 0, log.read_text()
        assert_nothing_left(family)


@pytest.fixture(scope="session")
def grader_url(grader: Server) -> str:
    return grader.url


Serve = Callable[..., contextlib.AbstractContextManager[Server]]


@pytest.fixture
def serve(grader: Server, tmp_path: Path) -> Serve:
    """Further servers, for tests that end, kill or flood theirs: `with serve("--queue-size", "1") as server`."""

    def start(*flags: str) -> contextlib.AbstractContextManager[Server]:
        return serving(grader.data_dir, tmp_path / "log", *flags)

    return start
