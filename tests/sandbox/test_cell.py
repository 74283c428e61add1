"""Cells as the judge sees them: what the record of a run says, and how limits end it."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from sandbox.cell import Cell
from sandbox.problem import Limits
from sandbox.verdicts import Evidence
from tests.sandbox.cells import (
    KILLED,
    MB,
    ROOMY,
    SLEEP,
    SPIN,
    Run,
    ended,
)
from tests.slowness import SLOWNESS

pytestmark = pytest.mark.jail


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
    assert 0.3 < record.cpu_s < 0.3 + 0.5 * SLOWNESS


def test_cpu_limit_of_many_processes_together(shared_cell: Cell, run: Run) -> None:
    record = run(shared_cell, f"import os\nos.fork(); os.fork()\n{SPIN}", limits=replace(ROOMY, cpu_s=0.4))
    assert record.evidence == ended(**KILLED, over="cpu")
    assert 0.4 < record.cpu_s < 0.4 + 0.8 * SLOWNESS


def test_wall_limit(shared_cell: Cell, run: Run) -> None:
    record = run(shared_cell, SLEEP, limits=replace(ROOMY, wall_s=0.4))
    assert record.evidence == ended(**KILLED, over="wall")
    assert 0.4 <= record.wall_s < 2 * SLOWNESS


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
