"""Programs that attack by the terminal that they have: whoever types there, other terminals, the kernel's terminals."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import cgroups, prebuilt
from sandbox.cgroups import Cgroups, open_cgroups
from sandbox.config import SandboxConfig
from sandbox.judge import UIDS_PER_SLOT
from sandbox.session import Answer, Ended, Session, SessionLimits
from sandbox.terminal import Terminal
from tests.hostile.case import MB
from tests.slowness import SLOWNESS

pytestmark = pytest.mark.jail

SLOT = 5
LIMITS = SessionLimits(memory_bytes=256 * MB, disk_bytes=64 * MB, inodes=1024, processes=32)
WITHIN_S = 30.0 * SLOWNESS

#: What programs here begin with: `tried(name, function)` says what came of it.
PRELUDE = """
import ctypes, errno, fcntl, os, signal, struct, sys, termios
def tried(name, act):
    try:
        print(name, "ok", act(), flush=True)
    except OSError as error:
        print(name, errno.errorcode[error.errno], flush=True)
"""


@pytest.fixture(scope="module")
def groups() -> Iterator[Cgroups]:
    cgroups.prepare(cgroups.here())
    groups = open_cgroups(insecure_no_cgroup=False)
    yield groups
    groups.close()


@pytest.fixture
def session(config: SandboxConfig, groups: Cgroups) -> Iterator[Session]:
    uid = config.uid_base + SLOT * UIDS_PER_SLOT
    before = descriptors()
    session = Session(groups.cell("session"), host_uid=uid, mounts=prebuilt.mounts(config), limits=LIMITS)
    try:
        yield session
    finally:
        session.close()
    assert descriptors() == before


def descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def python(session: Session, source: str, *typed: bytes) -> tuple[Ended, list[str]]:
    """Run it on a terminal; how it ended, and the lines that it printed."""
    number, terminal = session.start_on_terminal(["/usr/bin/python3", "-c", PRELUDE + source], 24, 80)
    try:
        for one in typed:
            terminal.write(one)
        return answer(session, number), lines(terminal)
    finally:
        terminal.close()


def answer(session: Session, number: int) -> Ended:
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        said: Answer = session.take()
        if said.number == number:
            assert isinstance(said, Ended)
            return said
    raise AssertionError("no answer")


def lines(terminal: Terminal) -> list[str]:
    """All that was printed, up to where nobody holds the terminal any more."""
    printed = b""
    while select.select([terminal], [], [], WITHIN_S)[0]:
        data = terminal.read()
        if not data:
            return printed.decode().replace("\r", "").splitlines()
        printed += data
    raise AssertionError(f"the terminal is held: {printed!r}")


def test_nothing_is_typed_in_its_users_place(session: Session) -> None:
    """Nor by a number with more bits than the kernel looks at."""
    ended, said = python(
        session,
        """
call = ctypes.CDLL(None, use_errno=True).syscall
def inject(request):
    if call(16 if os.uname().machine == "x86_64" else 29, 0, ctypes.c_ulong(request), b"x"):
        raise OSError(ctypes.get_errno(), "")
for request in (termios.TIOCSTI, termios.TIOCSTI | 1 << 32, termios.TIOCSTI | 0xABCD << 48):
    tried("inject", lambda: inject(request))
tried("console", lambda: fcntl.ioctl(0, termios.TIOCCONS))
tried("select", lambda: fcntl.ioctl(0, 0x541C, b"\\2" + bytes(12)))
""",
    )
    assert (ended.exit_code, said) == (0, ["inject EPERM"] * 3 + ["console EPERM", "select EPERM"])


def test_no_module_of_the_kernel_is_loaded_by_a_line_discipline(session: Session) -> None:
    ended, said = python(
        session,
        "for number in range(31):\n tried(number, lambda: fcntl.ioctl(0, termios.TIOCSETD, struct.pack('i', number)))",
    )
    assert (ended.exit_code, said) == (0, [f"{number} EPERM" for number in range(31)])


def test_there_is_no_way_to_another_terminal(session: Session) -> None:
    other, outside = session.start_on_terminal(["/bin/sh", "-c", "read line; echo $line"], 24, 80)
    host, host_slave = os.openpty()
    try:
        ended, said = python(
            session,
            """
for path in ("/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/pts/ptmx", "/dev/pts/0", "/dev/console", "/dev/tty0",
             "/proc/1/fd/0", "/proc/self/fd/0/../ptmx", "/proc/self/fd/0/.", "/proc/self/root/dev/pts"):
    tried(path, lambda: os.open(path, os.O_RDWR | os.O_NOCTTY))
tried("beside", lambda: os.open("../ptmx", os.O_RDWR, dir_fd=0))
tried("peer", lambda: fcntl.ioctl(0, 0x5441, 0))
tried("number", lambda: fcntl.ioctl(0, 0x80045430, b"0000"))
tried("unlock", lambda: fcntl.ioctl(0, 0x40045431, b"0000"))
tried("packets", lambda: fcntl.ioctl(0, termios.TIOCPKT, struct.pack("i", 1)))
if not os.fork():
    tried("steal", lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 1)))
    os._exit(0)
# Once who has it is gone, the terminal is nobody's, and who asks may have it.
os.wait()
""",
        )
        assert "ok" not in " ".join(said), said
        assert len(said) >= 16 and "steal EPERM" in said
        # It is still there, for who has it.
        outside.write(b"mine\n")
        assert answer(session, other) == Ended(other, 0, None)
        assert lines(outside) == ["mine", "mine"]
        assert ended.number != other
    finally:
        outside.close()
        os.close(host)
        os.close(host_slave)


def test_a_program_has_three_descriptors_and_all_are_its_terminal(session: Session) -> None:
    _, said = python(
        session,
        """
own = os.listdir("/proc/self/fd")
print(sorted(own, key=int)[:4], os.isatty(0), len({os.fstat(fd).st_rdev for fd in (0, 1, 2)}))
print(os.tcgetpgrp(0) == os.getpgrp(), struct.unpack("i", fcntl.ioctl(0, 0x5429, bytes(4)))[0] == os.getpid())
""",
    )
    # The fourth is that of the folder that it lists.
    assert said == ["['0', '1', '2', '3'] True 1", "True True"]


def test_what_programs_do_to_their_terminal_ends_with_it(session: Session) -> None:
    ended, said = python(
        session,
        """
signal.signal(signal.SIGHUP, signal.SIG_IGN)
for name in ("TIOCEXCL", "TIOCNOTTY"):
    tried(name, lambda: fcntl.ioctl(0, getattr(termios, name)))
tried("locked", lambda: fcntl.ioctl(0, 0x5457, bytes(64)))
tried("size", lambda: fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 65535, 65535, 65535, 65535)))
settings = termios.tcgetattr(0)
settings[0] = settings[1] = settings[3] = 0
tried("raw", lambda: termios.tcsetattr(0, termios.TCSANOW, settings))
""",
    )
    assert (ended.exit_code, [line.split()[:2] for line in said]) == (
        0,
        [["TIOCEXCL", "ok"], ["TIOCNOTTY", "ok"], ["locked", "EPERM"], ["size", "ok"], ["raw", "ok"]],
    )
    assert python(session, "print(os.get_terminal_size(), termios.tcgetattr(0)[3] & termios.ECHO > 0)")[1] == [
        "os.terminal_size(columns=80, lines=24) True"
    ]


def test_a_flood_waits_for_its_reader_and_takes_no_memory(session: Session) -> None:
    source = "while True: os.write(1, b'x' * 65536)"
    number, terminal = session.start_on_terminal(["/usr/bin/python3", "-c", PRELUDE + source], 24, 80)
    try:
        assert select.select([terminal], [], [], WITHIN_S)[0]
        time.sleep(1)
        read, until = 0, time.monotonic() + WITHIN_S
        while read < MB and time.monotonic() < until:
            assert select.select([terminal], [], [], WITHIN_S)[0]
            read += len(terminal.read())
        assert read >= MB
        session.kill(number)
        assert answer(session, number).signal == 9
    finally:
        terminal.close()


def test_what_is_typed_into_a_deaf_program_waits_outside(session: Session) -> None:
    source = "import tty; tty.setraw(0); print('on'); signal.pause()"
    number, terminal = session.start_on_terminal(["/usr/bin/python3", "-c", PRELUDE + source], 24, 80)
    try:
        assert select.select([terminal], [], [], WITHIN_S)[0]
        taken = 0
        with pytest.raises(BlockingIOError):
            for _ in range(1000):
                taken += terminal.write(b"x" * 4096)
        assert taken < MB
        session.kill(number)
        answer(session, number)
    finally:
        terminal.close()


def test_hanging_up_ends_what_does_not_resist(session: Session) -> None:
    number, terminal = session.start_on_terminal(["/usr/bin/env", "bash"], 24, 80)
    assert select.select([terminal], [], [], WITHIN_S)[0]
    terminal.close()
    assert answer(session, number).signal in (1, None)
