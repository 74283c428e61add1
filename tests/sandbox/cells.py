"""What the sandbox's tests share: small problems, and a look from outside at the processes of this test's cells."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from sandbox import cgroups, prebuilt
from sandbox.cell import Cell
from sandbox.cgroups import Cgroups
from sandbox.checkers import Checker, Tokens
from sandbox.config import SandboxConfig
from sandbox.problem import Limits, Problem, Test
from sandbox.run import RunRecord
from sandbox.stdin import Stdin
from sandbox.verdicts import Evidence
from tests import host_uids
from tests.slowness import SLOWNESS

MB = 2**20

Run = Callable[..., RunRecord]
"""What the fixture `run` is: a program, run in a cell."""

SPIN = "while True: pass"
SLEEP = "import time; time.sleep(1000)"

KILLED = {"exit_code": None, "signal": signal.SIGKILL.value}

#: A range of its own, so that other graders at work on this host are not mistaken for cells of these tests.
UIDS = host_uids.claim("sandbox")
UID_BASE = UIDS.start

ROOMY = Limits(cpu_s=5.0 * SLOWNESS, wall_s=20.0 * SLOWNESS, memory_bytes=256 * MB, output_bytes=MB)
"""For programs that no limit shall stop, on a loaded host neither."""


def wait_until(condition: Callable[[], object], what: str, within_s: float = 20.0) -> None:
    """Poll until the condition holds; fail where it does not in time."""
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, f"not within {within_s} s: {what}"
        time.sleep(0.002)


def problem(*tests: tuple[bytes, bytes], checker: Checker | None = None, ignore_exit_code: bool = False) -> Problem:
    """A problem of (input, expected output) pairs, whose input lengths are those of the inputs."""
    return Problem(
        tuple(Test(index, None, len(given), Stdin(given), wanted) for index, (given, wanted) in enumerate(tests)),
        checker or Tokens(),
        ignore_exit_code,
    )


def ended(exit_code: int | None = 0, signal: int | None = None, *, over: str | None = None) -> Evidence:
    """Evidence of a run that ended so, and was over this one limit, or none."""
    limits = {f"over_{name}": name == over for name in ("memory", "cpu", "wall", "output")}
    return Evidence(**limits, exit_code=exit_code, signal=signal)


def processes_in(groups: str) -> list[int]:
    """Processes in groups of this process's cells whose names match, such as "*-warden" or "*-program"."""
    base = cgroups.here().directories["memory"]
    return [pid for path in base.glob(f"rkgrade-*-{os.getpid()}-*/{groups}") for pid in _members(path)]


def jailed() -> list[int]:
    """Processes on this host that run with a uid of these tests' cells."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if entry.stat().st_uid in UIDS:
                    found.append(int(entry.name))
    return found


def groups_left() -> list[Path]:
    """Control groups that this process has made and not removed, the owner's own directories aside."""
    return [
        path
        for owner in cgroups.owned_directories(cgroups.here())
        if f"-{os.getpid()}-" in owner.name
        for path in owner.iterdir()
        if path.is_dir()
    ]


def open_fds() -> list[str]:
    return sorted(entry.name for entry in Path("/proc/self/fd").iterdir())


def footprint() -> set[str]:
    """What cells of this process hold on this host."""
    return {
        *(f"process {pid}" for pid in jailed()),
        *(f"group {path}" for path in groups_left()),
        *(f"descriptor {fd}" for fd in open_fds()),
    }


def wardens_at_work() -> list[int]:
    """Wardens of this process's cells whose program is running."""
    found: list[int] = []
    base = cgroups.here().directories["memory"]
    for program in base.glob(f"rkgrade-*-{os.getpid()}-*/*-program"):
        if _members(program):
            found += _members(program.with_name(program.name.replace("-program", "-warden")))
    return found


def _members(group: Path) -> list[int]:
    # A group may be removed between being listed and being read.
    with contextlib.suppress(OSError):
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    return []


@contextlib.contextmanager
def while_running(act: Callable[[int], object], *, times: int = 1) -> Iterator[list[int]]:
    """Call `act` with the process id of each warden that is seen to run a program, once each, for so many wardens.

    Yields the wardens acted on so far.
    """
    met: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set() and len(met) < times:
            for warden in wardens_at_work():
                if warden not in met:
                    act(warden)
                    met.append(warden)
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield met
    finally:
        over.set()
        watcher.join()


CELL_NUMBERS = count(1)


def open_cell(config: SandboxConfig, groups: Cgroups) -> Cell:
    number = next(CELL_NUMBERS)
    return Cell(groups.cell(f"cell-{number}"), host_uid=UID_BASE + 2 * number, mounts=prebuilt.mounts(config))
