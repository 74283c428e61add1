"""A real `rkgrade serve` on a free loopback port, with a data directory of its own, and a bare client for it.

The client is the standard library's over one kept connection, so that little of what is measured is its own.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

READY_WITHIN_S = 180.0
GONE_WITHIN_S = 60.0
ANSWER_WITHIN_S = 120.0

RKGRADE = Path(sys.executable).with_name("rkgrade")


class ServerFailed(Exception):
    """It did not start, or answered with an error."""


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int
    process: subprocess.Popen[bytes]
    data_dir: Path
    scratch_dir: Path
    """What it takes for /tmp."""
    redis_url: str | None = None
    """Where it queues, if not in itself."""
    host_pids: tuple[int, ...] = ()
    """Of each `rkgrade worker` that takes its work from there."""

    def api(self) -> psutil.Process:
        return psutil.Process(self.process.pid)

    def hosts(self) -> list[psutil.Process]:
        return [psutil.Process(pid) for pid in self.host_pids]

    def workers(self) -> list[psutil.Process]:
        children = [child for parent in (self.api(), *self.hosts()) for child in parent.children()]
        return [child for child in children if "service.engines.worker" in child.cmdline()]

    def family(self) -> list[psutil.Process]:
        """Every process it and its hosts have, cells included."""
        return [one for parent in (self.api(), *self.hosts()) for one in (parent, *parent.children(recursive=True))]

    def connect(self, answer_within_s: float = ANSWER_WITHIN_S) -> Connection:
        return Connection(self.host, self.port, answer_within_s)

    def metric(self, name: str) -> float:
        """One of its metrics, summed over its labels."""
        with self.connect() as client:
            lines = client.ask("GET", "/metrics")[1].decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.split(" ")[0].partition("{")[0] == name)


class Connection:
    """One client with one connection. Not for several threads."""

    def __init__(self, host: str, port: int, answer_within_s: float = ANSWER_WITHIN_S) -> None:
        self._http = http.client.HTTPConnection(host, port, timeout=answer_within_s)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        self._http.request(method, path, body, headers)
        answer = self._http.getresponse()
        return answer.status, answer.read()

    def grade_raw(self, request: bytes) -> bytes:
        """The result as it came: reading it is left to after the measurement. Raises ServerFailed."""
        status, answer = self.ask("POST", "/grade", request)
        if status != 200:
            raise ServerFailed(f"POST /grade: {status} {answer[:500]!r}")
        return answer

    def grade(self, request: bytes) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.grade_raw(request))
        return result

    def store(self, problem: dict[str, Any]) -> str:
        """The id of the problem. Raises ServerFailed."""
        status, answer = self.ask("PUT", "/problems", json.dumps(problem).encode())
        if status not in (200, 201):
            raise ServerFailed(f"PUT /problems: {status} {answer[:500]!r}")
        return str(json.loads(answer)["id"])


@contextlib.contextmanager
def serving(directory: Path, *flags: str, data_dir: Path | None = None) -> Iterator[Server]:
    """A server that is ready; ended by SIGTERM, by SIGKILL if need be. Raises ServerFailed.

    `data_dir`: not one of its own in `directory`.
    """
    data_dir, scratch_dir, log = data_dir or directory / "data", directory / "tmp", directory / "log"
    # Cells show directories of `data_dir`, and their users must get in.
    directory.chmod(0o755)
    scratch_dir.mkdir()
    with log.open("wb") as out:
        process = subprocess.Popen(
            # What is asked again and again is to be run again and again.
            [str(RKGRADE), "serve", "--port", "0", "--data-dir", str(data_dir), "--no-verdict-cache", *flags],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "TMPDIR": str(scratch_dir)},
        )
    try:
        host, port = _wait_ready(process, log)
        yield Server(host, port, process, data_dir, scratch_dir)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(GONE_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_ready(process: subprocess.Popen[bytes], log: Path) -> tuple[str, int]:
    until = time.monotonic() + READY_WITHIN_S
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
        if (found := re.search(r"serves on http://([\d.]+):(\d+)", log.read_text())) is None:
            continue
        host, port = found[1], int(found[2])
        with contextlib.suppress(OSError), Connection(host, port) as client:
            if client.ask("GET", "/health/ready")[0] == 200:
                return host, port
    raise ServerFailed(f"rkgrade serve is not ready:\n{log.read_text()[-4000:]}")
