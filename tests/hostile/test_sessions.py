"""Commands that attack the session that they run in: its warden, its files while these are read and written, and its
bounds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sandbox import cgroups, prebuilt
from sandbox.cgroups import Cgroups, open_cgroups
from sandbox.config import SandboxConfig
from sandbox.judge import UIDS_PER_SLOT
from sandbox.run import Output
from sandbox.session import NICENESS, Answer, Done, Ended, Refused, Session, SessionLimits
from sandbox.stdin import Stdin
from service.errors import InternalError
from service.sessions import live
from service.sessions.base import Owner
from service.sessions.live import LiveSession
from tests.hostile.case import MB
from tests.slowness import SLOWNESS

pytestmark = pytest.mark.jail

SLOT = 4
LIMITS = SessionLimits(memory_bytes=256 * MB, disk_bytes=64 * MB, inodes=1024, processes=32)
WITHIN_S = 30.0 * SLOWNESS


@pytest.fixture(scope="module")
def groups() -> Iterator[Cgroups]:
    cgroups.prepare(cgroups.here())
    groups = open_cgroups(insecure_no_cgroup=False)
    yield groups
    groups.close()


class Shell:
    """A session, asked one thing at a time."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def answer(self, number: int) -> Answer:
        until = time.monotonic() + WITHIN_S
        while time.monotonic() < until:
            answer = self.session.take()
            if answer.number == number:
                return answer
        raise AssertionError("no answer")

    def run(self, command: str, stdin: bytes = b"") -> tuple[Ended, bytes, bytes]:
        stdout, stderr = Output.new("stdout"), Output.new("stderr")
        stdin_fd = Stdin(stdin).open()
        try:
            ended = self.answer(self.session.start(["/bin/sh", "-c", command], stdin_fd, stdout.fd, stderr.fd))
            assert isinstance(ended, Ended)
            return ended, stdout.tail(MB), stderr.tail(MB)
        finally:
            os.close(stdin_fd)
            stdout.close()
            stderr.close()

    def python(self, source: str) -> bytes:
        ended, stdout, stderr = self.run("python3 -", source.encode())
        assert ended.exit_code == 0, stderr
        return stdout

    def write(self, path: str, data: bytes) -> Done | Refused:
        fd = Stdin(data).open()
        try:
            answer = self.answer(self.session.write(path, fd))
        finally:
            os.close(fd)
        assert not isinstance(answer, Ended)
        return answer

    def read(self, path: str) -> bytes | str:
        """What it holds, or why it cannot be had."""
        answer = self.answer(self.session.read(path))
        if isinstance(answer, Refused):
            return answer.why
        assert isinstance(answer, Done)
        assert answer.fd is not None
        try:
            return os.pread(answer.fd, MB, 0)
        finally:
            os.close(answer.fd)


@pytest.fixture
def shell(config: SandboxConfig, groups: Cgroups) -> Iterator[Shell]:
    uid = config.uid_base + SLOT * UIDS_PER_SLOT
    before = leftovers(uid)
    session = Session(groups.cell("session"), host_uid=uid, mounts=prebuilt.mounts(config), limits=LIMITS)
    try:
        yield Shell(session)
    finally:
        session.close()
    assert leftovers(uid) == before


def leftovers(uid: int) -> set[str]:
    found = {f"descriptor {entry.name}" for entry in Path("/proc/self/fd").iterdir()}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid in (uid, uid + 1):
                found.add(f"process {entry.name}")
    for owner in cgroups.owned_directories(cgroups.here()):
        if f"-{os.getpid()}-" in owner.name:
            found |= {f"group {path}" for path in owner.iterdir() if path.name.startswith("session")}
    return found


def test_nothing_of_the_warden_can_be_had(shell: Shell) -> None:
    said = shell.python("""
import ctypes, os, signal, socket
def unshare():
    if ctypes.CDLL(None).unshare(0x10000000):
        raise OSError
for name, act in {
    "kill": lambda: os.kill(1, signal.SIGKILL),
    "stop": lambda: os.kill(1, signal.SIGSTOP),
    "memory": lambda: open("/proc/1/mem", "rb"),
    "descriptors": lambda: os.listdir("/proc/1/fd"),
    "environment": lambda: open("/proc/1/environ", "rb").read(),
    "limits": lambda: __import__("resource").prlimit(1, 7, (3, 3)),
    "root": lambda: os.setuid(0),
    "niceness": lambda: os.setpriority(os.PRIO_PROCESS, 0, 0),
    "network": lambda: socket.socket(socket.AF_INET),
    "namespace": unshare,
    "terminal": lambda: __import__("fcntl").ioctl(os.open("/dev/tty", os.O_RDWR), 0),
    "program folder": lambda: open("/prog/x", "w"),
}.items():
    try:
        act()
        print(name)
    except (OSError, ValueError):
        pass
try:
    os.kill(-1, 0)
except OSError as error:
    print(error)
""")
    assert said in (b"", b"kill\nstop\n"), said
    # Process 1 takes no signal from inside its namespace, whoever may send one.
    assert shell.run("true")[0].exit_code == 0


def test_it_yields_to_grades_and_has_no_privileges(shell: Shell) -> None:
    said = shell.python("import os; print(os.getuid(), os.nice(0), open('/proc/self/status').read())").decode()
    assert said.startswith(f"1000 {NICENESS} ")
    for line in ("CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in said


def test_links_lead_nowhere_whoever_reads_or_writes(shell: Shell) -> None:
    shell.run("""
        ln -s /rkgrade/warden.py file; ln -s /etc folder; ln -s /proc/1/environ environ; ln -s /proc/self/fd self
        ln -s /proc/self/mem memory; ln -s .. up; mkdir deep; ln -s /box deep/loop; mkdir closed; chmod 0 closed
    """)
    for path in ("file", "folder/ld.so.cache", "environ", "self/3", "memory", "up/etc/passwd", "deep/loop/file"):
        assert shell.read(path) in ("ELOOP", "ENOTDIR"), path
        refused = shell.write(path, b"x")
        assert isinstance(refused, Refused), path
        assert refused.why in ("ELOOP", "ENOTDIR"), path
    assert shell.read("closed/x") == "EACCES"
    assert shell.read("deep") == "EISDIR"
    assert isinstance(shell.write("deep", b"x"), Refused)


def test_paths_that_change_while_they_are_used_lead_nowhere_else(shell: Shell) -> None:
    shell.write("spot/file", b"own")
    swap = """
import os
os.makedirs("kept", exist_ok=True)
os.symlink("/rkgrade", "link")
if os.fork():
    os._exit(0)
os.setsid()
while True:
    for act in (lambda: os.rename("spot", "kept/spot"), lambda: os.rename("link", "spot"),
                lambda: os.rename("spot", "link"), lambda: os.rename("kept/spot", "spot")):
        try:
            act()
        except OSError:
            pass
"""
    shell.run("python3 - > /dev/null 2>&1", swap.encode())
    until = time.monotonic() + 2
    met = set()
    while time.monotonic() < until:
        read = shell.read("spot/file")
        met.add(read)
        assert read in (b"own", "ELOOP", "ENOENT", "ENOTDIR"), read
        assert shell.read("spot/warden.py") in ("ELOOP", "ENOENT", "ENOTDIR")
        shell.write("spot/file", b"own")
    assert b"own" in met


def test_what_is_no_plain_file_keeps_nobody_waiting(shell: Shell) -> None:
    shell.run("mkfifo fifo; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\"; mkdir folder")
    begun = time.monotonic()
    for name in ("fifo", "socket", "folder"):
        assert isinstance(shell.read(name), str) or name == "fifo"
        assert isinstance(shell.write(name, b"x"), (Refused, Done))
    assert time.monotonic() - begun < 10 * SLOWNESS


def test_a_fork_bomb_is_held_and_the_session_can_be_used_on(shell: Shell) -> None:
    shell.run("bomb() { bomb | bomb & }; bomb > /dev/null 2>&1")
    begun = time.monotonic()
    assert shell.write("still", b"here") == Done(1)
    assert shell.read("still") == b"here"
    # A shell of its own can always be started, and what it needs no process for works.
    # The bomb may have gone out by itself, its shells all refused another process: then there is nobody to kill.
    ended, stdout, _ = shell.run("echo alive; kill -9 -1 || :")
    assert (ended.exit_code, stdout) == (0, b"alive\n")
    until = time.monotonic() + WITHIN_S
    while shell.run("ls > /dev/null")[0].exit_code != 0:
        assert time.monotonic() < until
    assert time.monotonic() - begun < 60 * SLOWNESS


def test_memory_disk_and_inodes_are_bounded(shell: Shell) -> None:
    said = shell.python("""
import os
with open("big", "wb", 0) as file:
    try:
        while True:
            file.write(bytes(1 << 20))
    except OSError:
        print(os.stat("big").st_size)
os.remove("big")
try:
    for number in range(5000):
        open(f"f{number}", "w")
except OSError:
    print(number)
for name in os.listdir():
    os.remove(name)
""")
    size, count = map(int, said.split())
    assert 60 * MB < size <= 64 * MB
    assert 1000 < count <= 1024
    ended, _, _ = shell.run("python3 -c 'x = bytearray(1 << 29)'")
    assert ended.exit_code == 137 or ended.signal == 9
    assert isinstance(shell.write("full", bytes(65 * MB)), Refused)
    assert shell.run("rm full; echo on")[1] == b"on\n"


def test_commands_that_are_stopped_as_they_start_keep_nobody_waiting(shell: Shell) -> None:
    """Between taking the program's uid and its exec, `enter` is for a moment a process that others may stop."""
    source = """
import os, signal, time
command = os.getpid()
if os.fork():
    os._exit(0)
os.setsid()
while os.getppid() == command:
    time.sleep(0.01)
while True:
    try:
        os.kill(-1, signal.SIGSTOP)
    except ProcessLookupError:
        pass
"""
    shell.run("exec python3 - > /dev/null 2>&1", source.encode())
    null = os.open(os.devnull, os.O_RDWR)
    try:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            number = shell.session.start(["/bin/true"], null, null, null)
            shell.session.kill(number)
            assert isinstance(shell.answer(number), Ended)
    finally:
        os.close(null)
    assert isinstance(shell.write("still", b"here"), Done)


def test_a_session_that_ends_no_command_any_more_is_lost(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_ANSWER_S", 0.5)
    assert shell.session._cell is not None
    (warden,) = psutil.Process(shell.session._cell._process.pid).children()

    async def stalled() -> str | None:
        stays = LiveSession("it", Owner("", None), shell.session, ttl_s=60, ends_s=time.monotonic() + 60)
        warden.suspend()
        try:
            with pytest.raises(InternalError, match="does not answer"):
                await stays.run("true", b"", 0.1)
        finally:
            warden.resume()
        return stays.lost

    assert asyncio.run(stalled()) == "it did not answer"


def test_a_flood_of_output_is_bounded(shell: Shell) -> None:
    ended, stdout, _ = shell.run("yes")
    assert ended.exit_code is not None or ended.signal is not None
    assert len(stdout) == MB


def test_a_flood_of_orphans_is_reaped(shell: Shell) -> None:
    source = "import os\nfor _ in range(300):\n    if os.fork() == 0:\n        os.fork(); os._exit(0)\n    os.wait()\n"
    for _ in range(3):
        assert shell.python(source) == b""
    assert int(shell.run("ls -d /proc/[0-9]* | wc -l")[1]) < 8


def test_a_list_of_very_many_is_cut(shell: Shell) -> None:
    shell.python("for n in range(900): open('x' * 200 + f'{n:04}\\n', 'w')")
    fd = os.memfd_create("listed")
    try:
        done = shell.answer(shell.session.list("", fd))
        assert isinstance(done, Done)
        rows = os.pread(fd, MB, 0).split(b"\0")[:-1]
    finally:
        os.close(fd)
    assert rows == [b"file 0 " + b"x" * 200 + b"%04d\n" % n for n in range(900)]
