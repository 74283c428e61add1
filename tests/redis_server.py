"""A real Redis for tests, on a port and in a directory of its own, that can be stopped, killed and started again."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import redis

from tests.serving import poll

PASSWORD = "not-to-be-told"


class RedisServer:
    def __init__(self, directory: Path, *options: str) -> None:
        program = shutil.which("redis-server")
        assert program is not None, "redis-server is not installed: scripts/test installs it as root"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._directory = directory
        self._command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--requirepass", PASSWORD]
        self._command += ["--dir", str(directory), "--save", "", "--maxmemory-policy", "noeviction", *options]
        self._process: subprocess.Popen[bytes] | None = None
        self.client = redis.Redis.from_url(self.url, socket_timeout=5)

    @property
    def url(self) -> str:
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        with (self._directory / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        poll(self._answers, 10, "Redis answers")

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def end(self) -> None:
        """Kill it, also where it is stopped."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None


@contextlib.contextmanager
def redis_server(directory: Path, *options: str) -> Iterator[RedisServer]:
    directory.mkdir(parents=True, exist_ok=True)
    server = RedisServer(directory, *options)
    try:
        server.start()
        yield server
    finally:
        server.client.close()
        server.end()
