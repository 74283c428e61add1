"""What a run finds in its cell and what it leaves there: nothing of the one before, nothing for the one after."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator

import pytest

from sandbox.cell import Cell
from sandbox.compiling import as_file
from sandbox.errors import GraderFault
from sandbox.run import Action, RunRequest
from tests.sandbox.cells import (
    ROOMY,
    Run,
    ended,
)

pytestmark = pytest.mark.jail


# ---------------------------------------------------------------------------------------------------------------
# One run after the other

LITTER = {
    "files": "[open(f'/{d}/{i}', 'w').write('x') for d in ('box', 'tmp') for i in range(500)]",
    "names": r"[open(b'/box/' + n, 'w') for n in (b'\n', b'\xff\xfe', b'-rf', b' ', b'.hidden', b'n' * 255)]",
    "nested": "[os.makedirs(f'/{d}/a/b/c{i}/d') for d in ('box', 'tmp') for i in range(50)]",
    "deep": "os.chdir('/tmp')\nfor i in range(3000): os.mkdir('d'); os.chdir('d')",
    "closed": "os.makedirs('/box/a/b/c'); open('/box/a/b/f', 'w')\n"
    "os.chmod('/box/a/b/f', 0); os.chmod('/box/a/b/c', 0); os.chmod('/box/a/b', 0); os.chmod('/box/a', 0)",
    "unwritable": "os.makedirs('/tmp/a/b'); open('/tmp/a/b/f', 'w'); os.chmod('/tmp/a/b', 0o555)",
    "links": "os.mkdir('/box/d'); os.symlink('/usr', '/box/usr'); os.symlink('/nowhere', '/box/d/x')\n"
    "os.symlink('loop', '/tmp/loop'); os.symlink('..', '/box/d/up'); os.link('/box/usr', '/box/hard')",
    "sockets": "import socket\nsocket.socket(socket.AF_UNIX).bind('/tmp/sock')",
    "deleted_but_open": "f = open('/box/f', 'w'); os.unlink('/box/f')\nif os.fork() == 0: os.setsid(); time.sleep(999)",
    "many": "try:\n    for i in range(10**6): open(f'/box/{i}', 'w').close()\nexcept OSError: pass",
}
LOOK = "import os; print([len(os.listdir(d)) for d in ('/box', '/tmp')])"


@pytest.mark.parametrize("litter", LITTER.values(), ids=LITTER)
def test_scratch_is_empty_for_the_next_run(shared_cell: Cell, run: Run, litter: str) -> None:
    first = run(shared_cell, f"import os, time\n{litter}")
    assert (first.evidence, first.stderr.head(500)) == (ended(), b"")
    assert shared_cell.usable
    assert run(shared_cell, LOOK).stdout.head(100) == b"[0, 0]\n"


def test_scratch_that_cannot_be_emptied_ends_the_cells_use(cell: Cell, run: Run) -> None:
    """Names that the sweep itself uses: what it cannot move there it leaves, and says so."""
    code = (
        "import os\nfor i in range(1, 200):\n"
        "    os.makedirs(f'/box/.rkgrade-sweep{i}/x/y'); open(f'/tmp/.rkgrade-sweep{i}', 'w')"
    )
    assert run(cell, code).evidence == ended()
    if cell.usable:
        assert run(cell, LOOK).stdout.head(100) == b"[0, 0]\n"
    else:
        with pytest.raises(GraderFault, match="could not be emptied"):
            run(cell, LOOK)


def test_what_a_run_leaves_running_ends_with_it(shared_cell: Cell, run: Run) -> None:
    daemons = "for _ in range(5):\n    if os.fork() == 0:\n        os.setsid(); os.closerange(0, 3); time.sleep(1000)"
    code = f"import os, time\n{daemons}"
    alone = "import os; print(len([name for name in os.listdir('/proc') if name.isdigit()]))"
    assert run(shared_cell, code).evidence == ended()
    assert run(shared_cell, alone).stdout.head(10) == b"2\n"


# ---------------------------------------------------------------------------------------------------------------
# What goes in, what comes out

OPEN_FDS = (
    "import os\nfor fd in range(1024):\n    try: os.fstat(fd); print(fd)\n    except OSError: pass\n"
    "try: open('/prog/main.py', 'a')\nexcept OSError as error: print(error.errno)\nprint(os.getuid(), os.getgid())\n"
)
SEEN = f"0\n1\n2\n{errno.EACCES}\n1000 1000\n".encode()


def test_an_execd_program_has_three_descriptors_and_its_uid(cell: Cell, run: Run) -> None:
    with as_file(OPEN_FDS.encode()) as source:
        cell.load({"main.py": source}, executable=False)
    record = run(cell, ("/usr/bin/python3", "/prog/main.py"))
    assert (record.stdout.head(1000), record.stderr.head(1000)) == (SEEN, b"")


def test_a_forked_program_has_three_descriptors_and_its_uid(cell: Cell) -> None:
    with as_file(OPEN_FDS.encode()) as source, as_file(b"") as stdin:
        cell.load({"main.py": source}, executable=False)
        checked = cell.run(RunRequest(Action.CHECK, stdin, ROOMY))
        record = cell.run(RunRequest(Action.PYTHON, stdin, ROOMY))
    outputs = (checked.evidence, record.stdout.head(1000), record.stderr.head(1000))
    checked.close()
    record.close()
    assert outputs == (ended(), SEEN, b"")


@pytest.fixture
def odd_starter() -> Iterator[None]:
    """This process as it might have been left by what started it: nohup, for one, ignores SIGHUP."""
    ignored = {
        number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGIO)
    }
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR1, signal.SIGALRM))
    umask = os.umask(0o077)
    os.setpriority(os.PRIO_PROCESS, 0, 10)
    yield
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    os.umask(umask)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    for number, handler in ignored.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("odd_starter")
def test_programs_inherit_no_signals_umask_or_priority_from_who_started_the_grader(cell: Cell, run: Run) -> None:
    record = run(cell, ("/bin/sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status && umask && nice"))
    blocked, ignored, umask, priority = record.stdout.head(1000).decode().splitlines()
    # Signals 32 and 33 are the C library's own, which it ignores in what it spawns.
    signals = int(blocked.split()[1], 16), int(ignored.split()[1], 16) & ~(3 << 31)
    assert (signals, umask, priority) == ((0, 0), "0022", "0")


def test_loaded_programs_can_be_run(cell: Cell, run: Run) -> None:
    with as_file(b"#!/bin/sh\necho loaded\n") as script:
        cell.load({"main": script}, executable=True)
    assert run(cell, ("/prog/main",)).stdout.head(100) == b"loaded\n"


def test_a_program_that_cannot_be_started_is_a_fault_of_the_graders(cell: Cell, run: Run) -> None:
    with pytest.raises(GraderFault, match="could not start the program"):
        run(cell, ("/usr/bin/missing-interpreter", "/prog/main"))


@pytest.mark.parametrize("binary", [b"", b"not an ELF", b"\x7fELF"])
def test_a_binary_of_the_programs_own_that_cannot_be_run_is_its_own_failure(
    cell: Cell, run: Run, binary: bytes
) -> None:
    """An ELF that asks for an interpreter which is not there, say: else whoever earns a 0 could have a null."""
    with as_file(binary) as fd:
        cell.load({"main": fd}, executable=True)
    assert run(cell, ("/prog/main",)).evidence == ended(127)


COLLECTED = {
    "file": ("open('/box/main', 'w').write('artefact')", b"artefact"),
    "empty": ("open('/box/main', 'w')", b""),
    "missing": ("pass", None),
    "symlink": ("os.symlink('/etc/passwd', '/box/main')", None),
    "symlink_to_own": ("open('/box/other', 'w'); os.symlink('other', '/box/main')", None),
    "directory": ("os.mkdir('/box/main')", None),
    "socket": ("import socket; socket.socket(socket.AF_UNIX).bind('/box/main')", None),
    "closed": ("open('/box/main', 'w').write('x'); os.chmod('/box/main', 0)", None),
}


@pytest.mark.parametrize(("code", "content"), COLLECTED.values(), ids=COLLECTED)
def test_only_plain_files_are_collected(shared_cell: Cell, run: Run, code: str, content: bytes | None) -> None:
    record = run(shared_cell, f"import os; {code}", collect=("main", "never"))
    assert record.evidence == ended()
    found = {name: output.head(100) for name, output in record.collected.items()}
    assert found == ({} if content is None else {"main": content})
    # Collected or not, it is swept like everything else.
    assert run(shared_cell, LOOK).stdout.head(100) == b"[0, 0]\n"
