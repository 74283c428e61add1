"""Cells as the judge sees them: what a run's record says, how limits end it, and that nothing is left of either."""

from __future__ import annotations

import errno
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from sandbox.cell import Cell
from sandbox.cgroups import Cgroups, NoCgroups
from sandbox.compiling import as_file
from sandbox.config import SandboxConfig
from sandbox.errors import Cancelled, GraderFault
from sandbox.problem import Limits
from sandbox.run import Action, RunRecord, RunRequest
from sandbox.verdicts import Evidence
from tests.sandbox.cells import MB, ROOMY, UID_BASE, footprint, open_cell, wait_until, while_running

pytestmark = pytest.mark.jail

NewCell = Callable[[], Cell]
Run = Callable[..., RunRecord]

SPIN = "while True: pass"
SLEEP = "import time; time.sleep(1000)"


@pytest.fixture
def cell(sandbox_config: SandboxConfig, groups: Cgroups) -> Iterator[Cell]:
    before = footprint()
    cell = open_cell(sandbox_config, groups)
    yield cell
    cell.close()
    assert footprint() - before == set()


@pytest.fixture(scope="module")
def shared_cell(sandbox_config: SandboxConfig, groups: Cgroups) -> Iterator[Cell]:
    """For runs that end well: each finds the cell as if it were the first."""
    cell = open_cell(sandbox_config, groups)
    yield cell
    cell.close()


@pytest.fixture
def run() -> Iterator[Run]:
    """Run a program in a cell: Python code, or a command; records are closed with the test."""
    records: list[RunRecord] = []

    def run(
        cell: Cell,
        program: str | Sequence[str],
        stdin: bytes = b"",
        limits: Limits = ROOMY,
        collect: tuple[str, ...] = (),
        cancel_fd: int | None = None,
    ) -> RunRecord:
        argv = ("/usr/bin/python3", "-S", "-c", program) if isinstance(program, str) else tuple(program)
        with as_file(stdin) as stdin_fd:
            record = cell.run(RunRequest(Action.EXEC, stdin_fd, limits, argv, collect), cancel_fd)
        records.append(record)
        return record

    yield run
    for record in records:
        record.close()


def ended(exit_code: int | None = 0, signal: int | None = None, *, over: str | None = None) -> Evidence:
    """Evidence of a run that ended so, and was over this one limit, or none."""
    limits = {f"over_{name}": name == over for name in ("memory", "cpu", "wall", "output")}
    return Evidence(**limits, exit_code=exit_code, signal=signal)


KILLED = {"exit_code": None, "signal": signal.SIGKILL.value}


# ---------------------------------------------------------------------------------------------------------------
# What a record says


@pytest.mark.parametrize("status", [0, 1, 2, 126, 127, 255])
def test_exit_status(shared_cell: Cell, run: Run, status: int) -> None:
    assert run(shared_cell, ("/bin/sh", "-c", f"exit {status}")).evidence == ended(status)


@pytest.mark.parametrize("name", ["SEGV", "ABRT", "TERM", "KILL", "FPE"])
def test_death_by_signal(shared_cell: Cell, run: Run, name: str) -> None:
    record = run(shared_cell, ("/bin/sh", "-c", f"kill -{name} $$"))
    assert record.evidence == ended(None, signal.Signals[f"SIG{name}"].value)


def test_the_streams_are_the_programs(shared_cell: Cell, run: Run) -> None:
    record = run(shared_cell, ("/bin/sh", "-c", "cat; echo oops >&2"), stdin=b"\x00given\xff\n")
    assert (record.evidence, record.stdout.head(100), record.stderr.head(100)) == (
        ended(),
        b"\x00given\xff\n",
        b"oops\n",
    )


def test_heads_tails_and_views_of_an_output(shared_cell: Cell, run: Run) -> None:
    record = run(shared_cell, ("/bin/sh", "-c", "printf 0123456789"))
    with record.stdout.view() as whole, record.stderr.view() as nothing:
        assert (bytes(whole), bytes(nothing)) == (b"0123456789", b"")
    assert (len(record.stdout), record.stdout.head(3), record.stdout.tail(3)) == (10, b"012", b"789")
    assert record.stdout.tail(100) == record.stdout.head(100) == b"0123456789"


def test_cpu_time_is_counted_and_wall_time_holds_it(shared_cell: Cell, run: Run) -> None:
    record = run(shared_cell, "import time\nwhile time.process_time() < 0.3: pass")
    assert 0.3 <= record.cpu_s < 0.6
    assert record.wall_s >= 0.3


def test_sleeping_is_wall_time_alone(shared_cell: Cell, run: Run) -> None:
    record = run(shared_cell, "import time; time.sleep(0.3)")
    assert record.cpu_s < 0.2
    assert record.wall_s >= 0.3


def test_cpu_time_of_children_is_the_programs(shared_cell: Cell, run: Run) -> None:
    spin = "while time.process_time() < 0.2: pass"
    record = run(shared_cell, f"import os, time\nif os.fork():\n    os.wait()\nelse:\n    {spin}")
    assert 0.2 <= record.cpu_s < 0.6


def test_memory_is_the_peak_of_this_run(shared_cell: Cell, run: Run) -> None:
    much = run(shared_cell, "x = b'x' * (64 * 2**20); del x").memory_bytes
    little = run(shared_cell, "pass").memory_bytes
    assert 64 * MB <= much < 90 * MB
    assert 0 < little < 20 * MB


def test_output_is_not_counted_as_memory(shared_cell: Cell, run: Run) -> None:
    limits = replace(ROOMY, memory_bytes=64 * MB, output_bytes=128 * MB)
    record = run(shared_cell, ("/usr/bin/head", "-c", str(70 * MB), "/dev/zero"), limits=limits)
    assert (record.evidence, len(record.stdout)) == (ended(), 70 * MB)
    assert record.memory_bytes < 16 * MB


HOARD = """
import mmap, os, sys
hoard = mmap.mmap(-1, {hoard})
hoard.write(b"x" * {hoard})
hoard.close()
{disguise}
"""


@pytest.mark.parametrize(
    "disguise",
    [
        "os.write(2, bytes({hidden}))",
        "os.truncate('/proc/self/fd/2', {hidden})",
        "for top, _, names in os.walk('/usr/lib'):\n for name in names: open(f'{{top}}/{{name}}', 'rb').read(1 << 20)",
    ],
    ids=["printed afterwards", "a hole in stderr", "files read afterwards"],
)
def test_memory_cannot_be_disguised_as_output_or_files(shared_cell: Cell, run: Run, disguise: str) -> None:
    limits = replace(ROOMY, memory_bytes=128 * MB, output_bytes=128 * MB)
    code = HOARD.format(hoard=200 * MB, disguise=disguise.format(hidden=100 * MB))
    assert run(shared_cell, code, limits=limits).evidence.over_memory


def test_files_on_the_scratch_disk_are_memory(shared_cell: Cell, run: Run) -> None:
    limits = replace(ROOMY, output_bytes=64 * MB)
    record = run(shared_cell, ("/usr/bin/dd", "if=/dev/zero", "of=/box/file", "bs=1M", "count=40"), limits=limits)
    assert record.evidence == ended()
    assert 40 * MB <= record.memory_bytes < 60 * MB


# ---------------------------------------------------------------------------------------------------------------
# Limits


def test_cpu_limit(shared_cell: Cell, run: Run) -> None:
    record = run(shared_cell, SPIN, limits=replace(ROOMY, cpu_s=0.3))
    assert record.evidence == ended(**KILLED, over="cpu")
    assert 0.3 < record.cpu_s < 0.8


def test_cpu_limit_of_many_processes_together(shared_cell: Cell, run: Run) -> None:
    record = run(shared_cell, f"import os\nos.fork(); os.fork()\n{SPIN}", limits=replace(ROOMY, cpu_s=0.4))
    assert record.evidence == ended(**KILLED, over="cpu")
    assert 0.4 < record.cpu_s < 1.2


def test_wall_limit(shared_cell: Cell, run: Run) -> None:
    record = run(shared_cell, SLEEP, limits=replace(ROOMY, wall_s=0.4))
    assert record.evidence == ended(**KILLED, over="wall")
    assert 0.4 <= record.wall_s < 2


def test_wall_limit_follows_from_the_cpu_limit() -> None:
    assert Limits(cpu_s=3.0).effective_wall_s == 7.0
    assert Limits(cpu_s=3.0, wall_s=4.0).effective_wall_s == 4.0


def test_memory_limit_by_one_allocation(shared_cell: Cell, run: Run) -> None:
    record = run(shared_cell, "x = b'x' * (200 * 2**20)", limits=replace(ROOMY, memory_bytes=64 * MB))
    assert record.evidence == ended(**KILLED, over="memory")


def test_memory_within_the_headroom_for_output_is_still_over_the_limit(shared_cell: Cell, run: Run) -> None:
    limits = replace(ROOMY, memory_bytes=64 * MB, output_bytes=128 * MB)
    record = run(shared_cell, "x = b'x' * (66 * 2**20)", limits=limits)
    assert record.evidence == ended(over="memory")
    assert record.memory_bytes >= 66 * MB


def test_memory_killed_in_a_child_counts_though_the_parent_ends_well(shared_cell: Cell, run: Run) -> None:
    code = "import os\nif os.fork():\n    os.wait()\nelse:\n    x = b'x' * (200 * 2**20)"
    record = run(shared_cell, code, limits=replace(ROOMY, memory_bytes=64 * MB))
    assert record.evidence == ended(over="memory")


def test_processes_limit_is_an_error_to_the_program(shared_cell: Cell, run: Run) -> None:
    code = (
        "import os, time\nmade = 0\n"
        "try:\n    while True:\n        if os.fork() == 0: time.sleep(1000)\n        made += 1\n"
        "except BlockingIOError: print(made)"
    )
    record = run(shared_cell, code, limits=replace(ROOMY, processes=8))
    assert (record.evidence, record.stdout.head(10)) == (ended(), b"7\n")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize(
    ("written", "evidence", "kept"),
    [
        (1000, ended(), 1000),
        (1001, ended(over="output"), 1001),
        (5000, ended(None, signal.SIGXFSZ, over="output"), 1001),
    ],
)
def test_output_limit_is_exact(
    shared_cell: Cell, run: Run, stream: str, written: int, evidence: Evidence, kept: int
) -> None:
    redirection = ">&2" if stream == "stderr" else ""
    command = f"exec head -c {written} /dev/zero {redirection}"
    record = run(shared_cell, ("/bin/sh", "-c", command), limits=replace(ROOMY, output_bytes=1000))
    assert record.evidence == evidence
    assert len(getattr(record, stream)) == kept


def test_output_limit_is_each_streams_own(shared_cell: Cell, run: Run) -> None:
    command = "head -c 1000 /dev/zero; head -c 1000 /dev/zero >&2"
    record = run(shared_cell, ("/bin/sh", "-c", command), limits=replace(ROOMY, output_bytes=1000))
    assert (record.evidence, len(record.stdout), len(record.stderr)) == (ended(), 1000, 1000)


def test_the_program_can_raise_no_limit(shared_cell: Cell, run: Run) -> None:
    code = (
        "import resource\n"
        "for number in range(16):\n"
        "    soft, hard = resource.getrlimit(number)\n"
        "    if hard != -1:\n"
        "        try: resource.setrlimit(number, (hard, hard + 1)); print('raised', number)\n"
        "        except ValueError: pass\n"
        "print(resource.getrlimit(resource.RLIMIT_FSIZE), resource.getrlimit(resource.RLIMIT_STACK)[0])"
    )
    record = run(shared_cell, code)
    assert record.stdout.head(200).decode() == f"({MB + 1}, {MB + 1}) {256 * MB}\n"


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


# ---------------------------------------------------------------------------------------------------------------
# When things go wrong


def test_a_killed_warden_is_a_fault_and_the_end_of_the_cell(cell: Cell, run: Run) -> None:
    with while_running(lambda warden: os.kill(warden, signal.SIGKILL)), pytest.raises(GraderFault, match="gone"):
        run(cell, SLEEP)
    assert not cell.usable
    wait_until(cell.gone, "the end of the cell")
    with pytest.raises(GraderFault):
        run(cell, "pass")


def test_a_warden_killed_between_runs_is_a_fault(cell: Cell, run: Run) -> None:
    with while_running(lambda warden: wardens.append(warden)):
        wardens: list[int] = []
        run(cell, "import time; time.sleep(0.2)")
    os.kill(wardens[0], signal.SIGKILL)
    with pytest.raises(GraderFault):
        run(cell, "pass")
    assert not cell.usable


@pytest.mark.parametrize(
    ("code", "limits", "over"),
    [(SPIN, replace(ROOMY, cpu_s=0.3), "cpu"), (SLEEP, replace(ROOMY, wall_s=0.3), "wall")],
)
def test_a_warden_that_does_not_answer_is_ended_and_the_run_still_judged(
    cell: Cell, run: Run, monkeypatch: pytest.MonkeyPatch, code: str, limits: Limits, over: str
) -> None:
    monkeypatch.setattr("sandbox.run.KILL_GRACE_S", 0.5)
    started = time.monotonic()
    with while_running(lambda warden: os.kill(warden, signal.SIGSTOP)) as stopped:
        record = run(cell, code, limits=limits)
    assert len(stopped) == 1
    assert record.evidence == ended(**KILLED, over=over)
    assert time.monotonic() - started < 5
    assert not cell.usable
    wait_until(cell.gone, "the end of the cell")


def test_cancelled_in_the_middle_of_a_run(cell: Cell, run: Run) -> None:
    reader, writer = os.pipe()
    with while_running(lambda _: os.write(writer, b"x")), pytest.raises(Cancelled):
        run(cell, SLEEP, cancel_fd=reader)
    os.close(reader)
    os.close(writer)
    assert not cell.usable
    wait_until(cell.gone, "the end of the cell")


def test_cancelled_by_whoever_hung_up(cell: Cell, run: Run) -> None:
    """The other end of the descriptor closing is a cancellation too: it makes it readable."""
    reader, writer = os.pipe()
    os.close(writer)
    with pytest.raises(Cancelled):
        run(cell, SLEEP, cancel_fd=reader)
    os.close(reader)


def test_nobody_cancels_a_run_by_saying_nothing(cell: Cell, run: Run) -> None:
    reader, writer = os.pipe()
    assert run(cell, "print(1)", cancel_fd=reader).stdout.head(10) == b"1\n"
    os.close(reader)
    os.close(writer)


# ---------------------------------------------------------------------------------------------------------------
# The end


def starts_nothing(cell: Cell) -> None:
    """Closed before its warden was even up."""


def runs_once(cell: Cell) -> None:
    with as_file(b"") as stdin:
        cell.run(RunRequest(Action.EXEC, stdin, ROOMY, ("/bin/true",))).close()


def leaves(cell: Cell) -> None:
    runs_once(cell)
    cell.leave()
    wait_until(cell.gone, "the cell's going")


def is_ended(cell: Cell) -> None:
    runs_once(cell)
    cell.end()


def is_cancelled(cell: Cell) -> None:
    reader, writer = os.pipe()
    os.close(writer)
    with as_file(b"") as stdin, pytest.raises(Cancelled):
        cell.run(RunRequest(Action.EXEC, stdin, ROOMY, ("/bin/sleep", "1000")), reader)
    os.close(reader)


def fails(cell: Cell) -> None:
    with as_file(b"") as stdin, pytest.raises(GraderFault):
        cell.run(RunRequest(Action.EXEC, stdin, ROOMY, ("/usr/bin/missing",)))


@pytest.mark.parametrize(
    "life",
    [starts_nothing, runs_once, leaves, is_ended, is_cancelled, fails],
)
@pytest.mark.parametrize("counted", [True, False], ids=["cgroups", "no-cgroups"])
def test_close_leaves_no_process_group_or_descriptor(
    sandbox_config: SandboxConfig, groups: Cgroups, counted: bool, life: Callable[[Cell], None]
) -> None:
    before = footprint()
    cell = open_cell(sandbox_config, groups if counted else NoCgroups())
    life(cell)
    cell.close()
    wait_until(lambda: footprint() <= before, "nothing left", within_s=3)


def test_a_cell_that_cannot_start_says_why(groups: Cgroups) -> None:
    before = footprint()
    cell = Cell(groups.cell("cell-broken"), host_uid=UID_BASE, mounts=("/nonexistent:/somewhere",))
    with as_file(b"") as stdin, pytest.raises(GraderFault, match="Launching child process failed"):
        cell.run(RunRequest(Action.EXEC, stdin, ROOMY, ("/bin/true",)))
    assert not cell.usable
    cell.close()
    assert footprint() - before == set()


def test_without_groups_the_programs_own_limits_hold(sandbox_config: SandboxConfig, run: Run) -> None:
    cell = open_cell(sandbox_config, NoCgroups())
    try:
        limits = replace(ROOMY, memory_bytes=64 * MB)
        assert (
            run(cell, f"import resource; print(resource.getrlimit({resource.RLIMIT_AS}))", limits=limits).stdout.head(
                100
            )
            == f"({128 * MB}, {128 * MB})\n".encode()
        )
        assert run(cell, SLEEP, limits=replace(ROOMY, wall_s=0.3)).evidence == ended(**KILLED, over="wall")
    finally:
        cell.close()
