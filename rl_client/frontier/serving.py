"""A model's server for as long as it is needed: started by a command, waited for, and stopped with its children.

The server runs in a session of its own, so that Ctrl-C in a terminal ends this program alone, which then stops it. All
of its process group is stopped; and on Linux whatever bears its mark in the environment, which children inherit, though
they left the group. Nothing is left but where this program itself is killed outright.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Awaitable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import httpx

from rl_client.evaluate.errors import BadOption, ServerError

T = TypeVar("T")

#: Of the server's environment: who started it.
MARK = "RKGRADE_SERVED"

#: Seconds between two looks at a server.
POLL_S = 0.2

#: Seconds that a server has to end by itself once it is told to.
GRACE_S = 20.0

_TOLD_LINES, _TOLD_CHARS = 5, 2000


class ServerDied(ServerError):
    """A server that was started has ended, or never answered."""


def argv_of(template: str, checkpoint: Path, port: int) -> list[str]:
    """`vllm serve {checkpoint} --port {port}`, split as a shell does, and filled in then. No shell runs it.

    Raises BadOption of a template without both, with others, or that cannot be split.
    """
    try:
        parts = shlex.split(template)
        filled = [part.format(checkpoint=checkpoint, port=port) for part in parts]
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        raise BadOption(f"--serve: {template!r} cannot be filled with {{checkpoint}} and {{port}}: {error}") from None
    for name in ("{checkpoint}", "{port}"):
        if not any(name in part for part in parts):
            raise BadOption(f"--serve: {template!r} has no {name}")
    return filled


class Served:
    """One that runs."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, log: Path, begins: int) -> None:
        """`begins`: where its output does in the log, in bytes; before that it is other servers'."""
        self._process = process
        self.url = url
        """Of its API, as `/v1` ends it."""
        self._log = log
        self._begins = begins

    async def healthy(self, within_s: float, key: str | None) -> None:
        """Wait until it lists its models. Raises ServerDied where it ends before, or takes longer.

        `key`: what it may ask for.
        """
        deadline = time.monotonic() + within_s
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=10) as client:
            while time.monotonic() < deadline:
                self.check()
                with suppress(httpx.HTTPError):
                    if (await client.get(f"{self.url}/models")).is_success:
                        # Another program may answer at the port.
                        self.check()
                        return
                await asyncio.sleep(POLL_S)
        raise ServerDied(f"the server did not answer at {self.url}/models within {within_s:g} s; {self._last_words()}")

    async def during(self, work: Awaitable[T]) -> T:
        """What comes of it while the server runs. Raises ServerDied as soon as it has ended, and ends the work."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait([task], timeout=POLL_S)
                if not task.done():
                    self.check()
            return task.result()
        except ServerError:
            # Its connections break a little before it is seen to have ended.
            self.check()
            raise
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task

    def check(self) -> None:
        """Raises ServerDied where it has ended."""
        status = self._process.poll()
        if status is not None:
            how = f"by signal {-status}" if status < 0 else f"with status {status}"
            raise ServerDied(f"the server has ended {how}; {self._last_words()}")

    def _last_words(self) -> str:
        try:
            text = self._log.read_bytes()[self._begins :][-_TOLD_CHARS:].decode(errors="replace")
        except OSError:
            text = ""
        lines = text.strip().splitlines()[-_TOLD_LINES:]
        return f"the end of {self._log}: {' | '.join(lines)}" if lines else f"it has written nothing to {self._log}"


@contextmanager
def served(template: str, checkpoint: Path, log: Path) -> Generator[Served, None, None]:
    """Start one, at a port of 127.0.0.1 that is free; its output goes to `log`. Raises BadOption, ServerDied."""
    port = _free_port()
    command = argv_of(template, checkpoint, port)
    mark = uuid.uuid4().hex
    try:
        with log.open("ab") as file:
            begins = file.tell()
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=os.environ | {MARK: mark},
            )
    except OSError as error:
        raise BadOption(f"--serve: {error.filename or log}: {error.strerror}") from None
    try:
        yield Served(process, f"http://127.0.0.1:{port}/v1", log, begins)
    finally:
        _stop(process, mark)


def _stop(process: subprocess.Popen[bytes], mark: str) -> None:
    """Ask, wait, and kill what is left, at once where somebody is impatient."""
    try:
        _signal(process.pid, mark, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline and (process.poll() is None or _left(process.pid, mark)):
            time.sleep(POLL_S / 4)
    finally:
        _signal(process.pid, mark, signal.SIGKILL)
        process.wait()


def _signal(group: int, mark: str, number: int) -> None:
    # Its number is no other group's for as long as anything is in it.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    for pid in _left(group, mark):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _left(group: int, mark: str) -> list[int]:
    """Processes in the group or with the mark that have not ended; none where there is no /proc."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # Behind the program's name, which may hold anything: state, parent, group.
            state, _, its_group = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:3]
            if state not in b"ZX" and (
                int(its_group) == group or wanted in (folder / "environ").read_bytes().split(b"\0")
            ):
                found.append(int(folder.name))
    return found


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
