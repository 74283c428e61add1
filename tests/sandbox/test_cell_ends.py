"""Cells that end, by a fault, by order or in peace: somebody is told, and nothing is left."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from sandbox.cell import Cell
from sandbox.cgroups import Cgroups, NoCgroups
from sandbox.compiling import as_file
from sandbox.config import SandboxConfig
from sandbox.errors import Cancelled, GraderFault
from sandbox.problem import Limits
from sandbox.run import Action, RunRequest
from tests.sandbox.cells import (
    KILLED,
    MB,
    ROOMY,
    SLEEP,
    SPIN,
    UID_BASE,
    Run,
    ended,
    footprint,
    open_cell,
    wait_until,
    while_running,
)
from tests.slowness import SLOWNESS

pytestmark = pytest.mark.jail


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
    monkeypatch.setattr("sandbox.watching.KILL_GRACE_S", 0.5)
    started = time.monotonic()
    with while_running(lambda warden: os.kill(warden, signal.SIGSTOP)) as stopped:
        record = run(cell, code, limits=limits)
    assert len(stopped) == 1
    assert record.evidence == ended(**KILLED, over=over)
    assert time.monotonic() - started < 5 * SLOWNESS
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
    with as_file(b"") as stdin, pytest.raises(GraderFault, match="Failed to mount mandatory point"):
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
