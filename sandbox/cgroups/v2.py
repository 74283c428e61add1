"""Version 2: one hierarchy, and a group for each run."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from sandbox.cgroups.base import (
    WARDEN_BYTES,
    CellGroup,
    Usage,
    all_sleep,
    file_cache,
    longest_wait_s,
    look_for_unreachable,
)
from sandbox.cgroups.hierarchies import V2_CONTROLLERS, Hierarchies
from sandbox.cgroups.owners import kill_tree, owner_name, remove_tree

#: Where the kernel keeps the most that a group held; from Linux 5.19 on.
PEAK = "memory.peak"


class V2Cell:
    """Groups of one cell. Each run has its own, since memory.peak cannot be reset before Linux 6.12.

    All runs' groups have the same name: programs see it in /proc, and it shall not tell them how many there were.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._warden = directory / f"{name}-warden"
        self._program = directory / f"{name}-program"
        self._warden.mkdir()
        _forbid_swap(self._warden)
        self._has_peak = (self._warden / PEAK).exists()
        self._limit_bytes = 0
        self._entry: int | None = None
        self._seen_bytes = 0

    def warden_entries(self) -> list[int]:
        return [os.open(self._warden / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)]

    def begin(self, memory_bytes: int, processes: int) -> list[int]:
        self._end_run()
        self._program.mkdir()
        # memory.oom.group stays 0: the kernel then ends one process, as it does on v1, and verdicts are the same.
        (self._program / "memory.max").write_text(str(memory_bytes))
        _forbid_swap(self._program)
        (self._program / "pids.max").write_text(str(processes))
        if memory_bytes != self._limit_bytes:
            (self._warden / "memory.max").write_text(str(memory_bytes + WARDEN_BYTES))
            self._limit_bytes = memory_bytes
        self._seen_bytes = 0
        self._entry = os.open(self._program / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        return [self._entry]

    def cpu_s(self) -> float:
        if not self._has_peak:
            self._seen_bytes = max(self._seen_bytes, int((self._program / "memory.current").read_text()))
        return _values(self._program / "cpu.stat")["usage_usec"] / 1e6

    def waited_s(self) -> float:
        return longest_wait_s(self._program / "cgroup.threads")

    def sleeps(self) -> bool:
        return all_sleep(self._program / "cgroup.threads")

    def usage(self) -> Usage:
        events = _values(self._program / "memory.events")
        return Usage(
            self.cpu_s(),
            self._peak_bytes(events["max"]),
            file_cache((self._program / "memory.stat").read_text()),
            events["oom_kill"],
        )

    def end(self) -> Usage:
        usage = self.usage()
        self._end_run()
        # What it left there counts as nobody's from here on, and would pile up from run to run.
        look_for_unreachable()
        return usage

    def _peak_bytes(self, times_at_limit: int) -> int:
        if self._has_peak:
            return int((self._program / PEAK).read_text())
        # Exact only where it came to the limit, and else the most that was there whenever somebody looked.
        return self._limit_bytes if times_at_limit else self._seen_bytes

    def _end_run(self) -> None:
        self._close_entry()
        remove_tree(self._program)

    def _close_entry(self) -> None:
        if self._entry is not None:
            os.close(self._entry)
            self._entry = None

    def kill(self) -> None:
        self._close_entry()
        for group in (self._program, self._warden):
            kill_tree(group)

    def close(self) -> None:
        self._end_run()
        remove_tree(self._warden)


def _forbid_swap(group: Path) -> None:
    with contextlib.suppress(FileNotFoundError):  # No such file where the kernel counts no swap.
        (group / "memory.swap.max").write_text("0")


def _values(path: Path) -> dict[str, int]:
    """A flat keyed file, as cgroup-v2.rst calls it."""
    return {key: int(value) for key, value in (line.split() for line in path.read_text().splitlines())}


class V2:
    version = "cgroup v2"

    def __init__(self, hierarchies: Hierarchies) -> None:
        self._directory = hierarchies.directories["memory"] / owner_name()
        self._directory.mkdir(exist_ok=True)
        handed_down = " ".join(f"+{controller}" for controller in V2_CONTROLLERS)
        (self._directory / "cgroup.subtree_control").write_text(handed_down)

    def cell(self, name: str) -> CellGroup:
        return V2Cell(self._directory, name)

    def close(self) -> None:
        kill_tree(self._directory)
        remove_tree(self._directory)
