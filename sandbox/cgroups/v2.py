"""Version 2: one hierarchy, and a group for each run."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from sandbox.cgroups.base import WARDEN_BYTES, CellGroup, Usage, file_cache, longest_wait_s
from sandbox.cgroups.hierarchies import Hierarchies
from sandbox.cgroups.owners import kill_tree, owner_name, remove_tree


class V2Cell:
    """Groups of one cell. Each run has its own, since memory.peak cannot be reset before Linux 6.12."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name
        self._warden = directory / f"{name}-warden"
        self._warden.mkdir()
        self._run: Path | None = None
        self._entry: int | None = None
        self._runs = 0

    def warden_entries(self) -> list[int]:
        return [os.open(self._warden / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)]

    def begin(self, memory_bytes: int, processes: int) -> list[int]:
        self._end_run()
        self._runs += 1
        run = self._directory / f"{self._name}-run{self._runs}"
        run.mkdir()
        self._run = run
        (run / "memory.max").write_text(str(memory_bytes))
        (self._warden / "memory.max").write_text(str(memory_bytes + WARDEN_BYTES))
        for group in (run, self._warden):
            with contextlib.suppress(FileNotFoundError):  # No such file where the kernel was built without swap.
                (group / "memory.swap.max").write_text("0")
        (run / "pids.max").write_text(str(processes))
        self._entry = os.open(run / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        return [self._entry]

    def cpu_s(self) -> float:
        assert self._run is not None
        return int(_value((self._run / "cpu.stat").read_text(), "usage_usec")) / 1e6

    def waited_s(self) -> float:
        assert self._run is not None
        return longest_wait_s(self._run / "cgroup.threads")

    def end(self) -> Usage:
        assert self._run is not None
        events = (self._run / "memory.events").read_text()
        usage = Usage(
            self.cpu_s(),
            int((self._run / "memory.peak").read_text()),
            file_cache((self._run / "memory.stat").read_text()),
            int(_value(events, "oom_kill")),
        )
        self._end_run()
        return usage

    def _end_run(self) -> None:
        if self._run is not None and self._entry is not None:
            os.close(self._entry)
            remove_tree(self._run)
            self._run = self._entry = None

    def kill(self) -> None:
        for group in (self._run, self._warden):
            if group is not None:
                (group / "cgroup.kill").write_text("1")
                kill_tree(group)

    def close(self) -> None:
        self._end_run()
        remove_tree(self._warden)


def _value(text: str, key: str) -> str:
    return dict(line.split() for line in text.splitlines())[key]


class V2:
    version = "cgroup v2"

    def __init__(self, hierarchies: Hierarchies) -> None:
        self._directory = hierarchies.directories["memory"] / owner_name()
        self._directory.mkdir(exist_ok=True)
        (self._directory / "cgroup.subtree_control").write_text("+cpu +memory +pids")

    def cell(self, name: str) -> CellGroup:
        return V2Cell(self._directory, name)

    def close(self) -> None:
        kill_tree(self._directory)
        remove_tree(self._directory)
