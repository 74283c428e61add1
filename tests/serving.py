"""A real `rkgrade serve` for tests: starting it, waiting for it, and proving that nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

#: What is asked twice is run twice, unless a test's own flags say otherwise: most tests are about what is run.
ENVIRONMENT = {"RKGRADE_VERDICT_CACHE": "off"}

READY_WITHIN_S = 180.0
GONE_WITHIN_S = 15.0

#: Offered unless a test's own flags say otherwise: readiness rests on a grade in each, and there may be thirty here.
LANGUAGES = ("--languages", "python,python-exec,c,cpp,cpp20")

RKGRADE = Path(sys.executable).with_name("rkgrade")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A command of the grader's that has been started, and goes on."""

    process: subprocess.Popen[bytes]
    log: Path

    def workers(self) -> list[psutil.Process]:
        found = []
        for child in psutil.Process(self.process.pid).children():
            # Others come and go, such as compilers that are asked for their versions.
            with contextlib.suppress(psutil.NoSuchProcess):
                if "service.engines.worker" in child.cmdline():
                    found.append(child)
        return found

    def family(self) -> list[psutil.Process]:
        """Every process it has, itself first."""
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]

    def end(self) -> int:
        """SIGTERM, and what the exit status is."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server(Running):
    """A running `rkgrade serve`."""

    url: str
    data_dir: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Host(Running):
    """A running `rkgrade worker`."""


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
def working(
    redis_url: str, data_dir: Path, log: Path, *flags: str, environment: Mapping[str, str] | None = None
) -> Iterator[Host]:
    """A `rkgrade worker`, on its way up; killed at the end where the test has not ended it. `environment`: variables
    that it has beside this process's."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(RKGRADE), "worker", "--data-dir", str(data_dir), *LANGUAGES, *flags],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **ENVIRONMENT, **(environment or {}), "RKGRADE_REDIS_URL": redis_url},
        )
    try:
        yield Host(process=process, log=log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)


@contextlib.contextmanager
def serving(
    data_dir: Path,
    log: Path,
    *flags: str,
    descriptors: int | None = None,
    redis_url: str | None = None,
    environment: Mapping[str, str] | None = None,
    until_ready: bool = True,
) -> Iterator[Server]:
    """A server on a free port, ready unless told otherwise; killed at the end where the test has not ended it.

    `descriptors`: how many files it may open at most. `redis_url`: where its work goes, else it does that itself.
    `environment`: variables that it has beside this process's.
    """
    queue = {} if redis_url is None else {"RKGRADE_REDIS_URL": redis_url}
    limited = () if descriptors is None else ("prlimit", f"--nofile={descriptors}:{descriptors}")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*limited, str(RKGRADE), "serve", "--port", "0", "--data-dir", str(data_dir), *LANGUAGES, *flags],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **ENVIRONMENT, **(environment or {}), **queue},
        )
    try:
        server = Server(url=_url(process, log), process=process, data_dir=data_dir, log=log)
        if until_ready:
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


def metric(url: str, name: str) -> float:
    """One metric, summed over its labels where `name` gives none."""
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if re.match(rf"{re.escape(name)}[ {{]", line))
