"""Version 1: three hierarchies, and groups reused from run to run."""

from __future__ import annotations

import os
import time
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
from sandbox.cgroups.hierarchies import CONTROLLERS, Hierarchies
from sandbox.cgroups.owners import kill_tree, owner_name, remove_tree

LEFT_BYTES = 2 * 2**20
"""What earlier runs may leave charged to a group before it is emptied by force."""

LINGERING_BYTES = 8 * 2**20
LINGERING_S = 2.0
"""Beyond how much it is waited, and for how long at most, for what the kernel frees in its own time."""


class _Counter:
    """A kernel file kept open, read or written again and again."""

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self.fd = os.open(path, flags | os.O_CLOEXEC)

    def read(self) -> bytes:
        return os.pread(self.fd, 4096, 0)

    def write(self, value: bytes | int) -> None:
        os.pwrite(self.fd, value if isinstance(value, bytes) else str(value).encode(), 0)

    def close(self) -> None:
        os.close(self.fd)


class V1Cell:
    """Groups of one cell in three hierarchies. The program's are reused: making them costs more than resetting."""

    def __init__(self, directories: dict[str, Path], name: str) -> None:
        self._warden = directories["memory"] / f"{name}-warden"
        self._program = {controller: path / f"{name}-program" for controller, path in directories.items()}
        self._made: list[Path] = []
        for path in (self._warden, *self._program.values()):
            path.mkdir()
            self._made.append(path)
        memory, cpuacct, pids = (self._program[controller] for controller in CONTROLLERS)
        # Writing "0" to `tasks` moves just the writer, and spares the kernel the global lock that moving a whole
        # process by `cgroup.procs` takes.
        self._entries = [_Counter(path / "tasks", os.O_WRONLY) for path in (memory, cpuacct, pids)]
        self._cpu = _Counter(cpuacct / "cpuacct.usage")
        self._peak = _Counter(memory / "memory.max_usage_in_bytes", os.O_RDWR)
        self._oom = _Counter(memory / "memory.oom_control")
        self._counters = [*self._entries, self._cpu, self._peak, self._oom]
        (memory / "memory.swappiness").write_text("0")
        self._memory, self._pids = memory, pids
        self._limits: tuple[int, int] | None = None
        self._cpu_before = 0
        self._oom_before = 0

    def warden_entries(self) -> list[int]:
        return [os.open(self._warden / "tasks", os.O_WRONLY | os.O_CLOEXEC)]

    def begin(self, memory_bytes: int, processes: int) -> list[int]:
        if self._limits != (memory_bytes, processes):
            self._set_limits(memory_bytes, processes)
        self._peak.write(0)
        if int(self._peak.read()) > LEFT_BYTES:
            self._empty()
        self._cpu_before = int(self._cpu.read())
        self._oom_before = self._oom_kills()
        return [entry.fd for entry in self._entries]

    def _empty(self) -> None:
        """Free what earlier runs left, which is not the next one's: kernel objects and pages of files.

        What `look_for_unreachable` finds, a worker of the kernel's frees some milliseconds later.
        """
        (self._memory / "memory.force_empty").write_text("0")
        self._peak.write(0)
        if int(self._peak.read()) > LINGERING_BYTES:
            look_for_unreachable()
        until = time.monotonic() + LINGERING_S
        while int(self._peak.read()) > LINGERING_BYTES and time.monotonic() < until:
            time.sleep(0.001)
            self._peak.write(0)

    def _set_limits(self, memory_bytes: int, processes: int) -> None:
        warden_bytes = memory_bytes + WARDEN_BYTES
        for group, limit in ((self._memory, memory_bytes), (self._warden, warden_bytes)):
            # memsw must never be below the plain limit: raise it first, lower it last.
            swap = group / "memory.memsw.limit_in_bytes"
            if swap.exists():
                swap.write_text("-1")
            (group / "memory.limit_in_bytes").write_text(str(limit))
            if swap.exists():
                swap.write_text(str(limit))
        (self._pids / "pids.max").write_text(str(processes))
        self._limits = (memory_bytes, processes)

    def cpu_s(self) -> float:
        return (int(self._cpu.read()) - self._cpu_before) / 1e9

    def waited_s(self) -> float:
        return longest_wait_s(self._memory / "tasks")

    def sleeps(self) -> bool:
        return all_sleep(self._memory / "tasks")

    def usage(self) -> Usage:
        peak_bytes = int(self._peak.read())
        cache = 0
        if self._limits is not None and peak_bytes > self._limits[0] // 2:
            cache = file_cache((self._memory / "memory.stat").read_text())
        return Usage(self.cpu_s(), peak_bytes, cache, self._oom_kills() - self._oom_before)

    def end(self) -> Usage:
        return self.usage()

    def _oom_kills(self) -> int:
        return int(self._oom.read().rpartition(b"oom_kill ")[2])

    def kill(self) -> None:
        for path in self._made:
            kill_tree(path)

    def close(self) -> None:
        for counter in self._counters:
            counter.close()
        for path in self._made:
            remove_tree(path)


class V1:
    version = "cgroup v1"

    def __init__(self, hierarchies: Hierarchies) -> None:
        name = owner_name()
        self._directories = {key: path / name for key, path in hierarchies.directories.items()}
        for path in set(self._directories.values()):
            path.mkdir(exist_ok=True)

    def cell(self, name: str) -> CellGroup:
        return V1Cell(self._directories, name)

    def close(self) -> None:
        for path in set(self._directories.values()):
            kill_tree(path)
            remove_tree(path)
