"""Control groups: the kernel's word on CPU time, memory and processes, on cgroup v1 and v2 behind one interface.

A worker process owns one directory, named for the process, in each hierarchy; every cell has in it a group for its
warden and one for its program, so that an out-of-memory kill can only hit the program, and CPU time and peak memory
are the program's alone. A process enters a group by writing "0" to a descriptor that this module opened: the kernel
checks the rights of the opener, so nothing in the jail needs any.

Knows nothing of jails, wardens or verdicts.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sandbox.errors import HostError

#: Directory names of ours: PID namespace, process and its start time, so that the owner's death can be proved.
OWNER = re.compile(r"rkgrade-(\d+)-(\d+)-(\d+)")

#: cgroup v2 allows processes only in leaves: the grader's own move here.
MAIN_LEAF = "rkgrade-main"

WARDEN_BYTES = 256 * 2**20
"""What the warden may hold beyond the program's own limit (compiled code of the submission, its files)."""


LEFT_BYTES = 2 * 2**20
"""What earlier runs may leave charged to a group before it is emptied by force."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The kernel's account of one run."""

    cpu_s: float
    peak_bytes: int
    file_cache_bytes: int
    """Clean pages of files that the group was first to read; part of the peak, but never the program's need."""
    oom_kills: int


class CellGroup(Protocol):
    """The groups of one cell."""

    def warden_entries(self) -> list[int]:
        """Descriptors through which the warden enters its own group; the caller closes them."""

    def begin(self, memory_bytes: int, processes: int) -> list[int]:
        """Make the program's group ready for a run; descriptors through which it is entered stay owned here."""

    def cpu_s(self) -> float | None:
        """CPU seconds of the run so far, dead processes included; None where nobody counts."""

    def waited_s(self) -> float:
        """How long the live thread of the run that waited longest for a core has done so; 0 where nobody counts."""

    def end(self) -> Usage | None:
        """The account of the run, once its processes are gone; None where nobody counts."""

    def kill(self) -> None:
        """Kill every process of the cell, from outside."""

    def close(self) -> None:
        """Remove the groups. Processes must be gone; waits for the kernel to agree."""


class Cgroups(Protocol):
    version: str

    def cell(self, name: str) -> CellGroup:
        """New groups for a cell."""

    def close(self) -> None:
        """Remove the owner's directory."""


# ---------------------------------------------------------------------------------------------------------------
# Which hierarchies there are


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Directories under which this process may make groups."""

    version: str
    """"v1" or "v2"."""
    directories: dict[str, Path]
    """By controller: memory, cpuacct, pids. On v2 all are the same."""


CONTROLLERS = ("memory", "cpuacct", "pids")


def detect(mountinfo: str, own_groups: str) -> Hierarchies:
    """Find the hierarchies from the texts of /proc/self/mountinfo and /proc/self/cgroup.

    Raises HostError where neither version offers what the sandbox needs.
    """
    own: dict[str, str] = {}
    for line in own_groups.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(",") if controllers else ["unified"]:
            own[controller] = path
    directories: dict[str, Path] = {}
    unified: Path | None = None
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        root, mount_point = fields.split()[3:5]
        kind, _, options = rest.split()[:3]
        if kind == "cgroup":
            for controller in CONTROLLERS:
                if controller in options.split(",") and controller in own:
                    directories[controller] = _own_directory(mount_point, root, own[controller])
        elif kind == "cgroup2" and "unified" in own:
            unified = _own_directory(mount_point, root, own["unified"])
    if set(directories) == set(CONTROLLERS):
        return Hierarchies("v1", directories)
    if unified is not None:
        base = unified.parent if unified.name == MAIN_LEAF else unified
        return Hierarchies("v2", dict.fromkeys(CONTROLLERS, base))
    raise HostError("no cgroup hierarchy with the controllers memory, cpuacct (v2: cpu) and pids is mounted")


def _own_directory(mount_point: str, root: str, path: str) -> Path:
    """Where a group lies in a mount that may show only part of its hierarchy (as in a container)."""
    relative = os.path.relpath(path, root)
    return Path(mount_point) if relative.startswith("..") else Path(mount_point, relative)


def here() -> Hierarchies:
    """The hierarchies of this host. Raises HostError."""
    return detect(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())


def prepare(hierarchies: Hierarchies) -> None:
    """Make sure that groups can be made and limited; on v2 moves the processes of our own group into a leaf.

    Raises HostError that says what is refused.
    """
    try:
        if hierarchies.version == "v2":
            _prepare_v2(hierarchies.directories["memory"])
        for directory in set(hierarchies.directories.values()):
            probe = directory / f"{_owner_name()}-probe"
            probe.mkdir()
            probe.rmdir()
    except OSError as error:
        raise HostError(
            f"cannot make control groups: {error}. Run as root (in a container: with a writable, delegated cgroup), "
            "or accept weak limits with --insecure-no-cgroup"
        ) from error


def _prepare_v2(base: Path) -> None:
    available = (base / "cgroup.controllers").read_text().split()
    missing = {"cpu", "memory", "pids"} - set(available)
    if missing:
        raise HostError(f"cgroup v2 controllers not delegated to {base}: {', '.join(sorted(missing))}")
    if (base / "cgroup.procs").read_text().strip() and base.stat().st_ino != 1:
        leaf = base / MAIN_LEAF
        leaf.mkdir(exist_ok=True)
        for pid in (base / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (leaf / "cgroup.procs").write_text(pid)
    (base / "cgroup.subtree_control").write_text("+cpu +memory +pids")


# ---------------------------------------------------------------------------------------------------------------
# Owners, and what dead ones left


def _state_and_start_time(pid: int | str) -> tuple[str, str]:
    """Fields 3 and 22 of /proc/PID/stat; the second, with the PID, names a process for good.

    Raises FileNotFoundError or ProcessLookupError where there is no such process.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], fields[19]


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def _owner_name() -> str:
    _, start_time = _state_and_start_time("self")
    return f"rkgrade-{_pid_namespace()}-{os.getpid()}-{start_time}"


def _is_alive(namespace: str, pid: str, start_time: str) -> bool:
    if namespace != _pid_namespace():
        return True  # Another container's: not ours to judge.
    try:
        state, found = _state_and_start_time(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    # A zombie is dead: in a container whose process 1 reaps nobody, it stays one for good.
    return found == start_time and state not in "ZX"


def sweep(hierarchies: Hierarchies) -> int:
    """Kill and remove what graders that died without cleaning up left behind; how many directories that were."""
    swept = 0
    for base in set(hierarchies.directories.values()):
        for path in [path for path in base.iterdir() if path.is_dir()]:
            owner = OWNER.match(path.name)
            if owner and not _is_alive(*owner.groups()):
                _kill_tree(path)
                _remove_tree(path)
                swept += 1
    return swept


def _groups_of(directory: Path) -> Iterator[Path]:
    """The directory's groups, leaves first."""
    for path, _, _ in os.walk(directory, topdown=False):
        yield Path(path)


def _kill_tree(directory: Path, deadline_s: float = 5.0) -> None:
    """Kill every process under a directory. Raises HostError where some would not die in time."""
    until = time.monotonic() + deadline_s
    while True:
        pids = [pid for group in _groups_of(directory) for pid in _pids(group)]
        if not pids:
            return
        if time.monotonic() > until:
            raise HostError(f"processes in {directory} do not die: {pids[:10]}")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def _pids(group: Path) -> list[int]:
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split() if pid != "0"]
    except FileNotFoundError:
        return []


def _remove_tree(directory: Path, deadline_s: float = 5.0) -> None:
    until = time.monotonic() + deadline_s
    for group in _groups_of(directory):
        while True:
            try:
                group.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:
                # Busy until the last exiting process has left the group.
                if time.monotonic() > until:
                    raise
                time.sleep(0.002)


def owned_directories(hierarchies: Hierarchies) -> list[Path]:
    """Every directory of any grader, alive or dead: for the doctor, and for tests that nothing is left."""
    return [
        path
        for base in set(hierarchies.directories.values())
        for path in base.iterdir()
        if path.is_dir() and OWNER.match(path.name)
    ]


# ---------------------------------------------------------------------------------------------------------------
# Version 1: three hierarchies, groups reused from test to test


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
            # Kernel objects and file pages of earlier runs: not this run's.
            (self._memory / "memory.force_empty").write_text("0")
            self._peak.write(0)
        self._cpu_before = int(self._cpu.read())
        self._oom_before = self._oom_kills()
        return [entry.fd for entry in self._entries]

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
        return _longest_wait_s(self._memory / "tasks")

    def end(self) -> Usage:
        peak_bytes = int(self._peak.read())
        cache = 0
        if self._limits is not None and peak_bytes > self._limits[0] // 2:
            cache = _file_cache((self._memory / "memory.stat").read_text())
        return Usage(self.cpu_s(), peak_bytes, cache, self._oom_kills() - self._oom_before)

    def _oom_kills(self) -> int:
        return int(self._oom.read().rpartition(b"oom_kill ")[2])

    def kill(self) -> None:
        for path in self._made:
            _kill_tree(path)

    def close(self) -> None:
        for counter in self._counters:
            counter.close()
        for path in self._made:
            _remove_tree(path)


def _longest_wait_s(tasks: Path) -> float:
    """From the second field of /proc/TID/schedstat: nanoseconds spent runnable, waiting for a core."""
    longest = 0
    for thread in tasks.read_text().split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            longest = max(longest, int(Path(f"/proc/{thread}/schedstat").read_text().split()[1]))
    return longest / 1e9


def _file_cache(stat: str) -> int:
    """Bytes of file pages (not tmpfs, which counts as anonymous) in the text of memory.stat."""
    values = dict(line.split() for line in stat.splitlines())
    return int(values["active_file"]) + int(values["inactive_file"])


class V1:
    version = "cgroup v1"

    def __init__(self, hierarchies: Hierarchies) -> None:
        name = _owner_name()
        self._directories = {key: path / name for key, path in hierarchies.directories.items()}
        for path in set(self._directories.values()):
            path.mkdir(exist_ok=True)

    def cell(self, name: str) -> CellGroup:
        return V1Cell(self._directories, name)

    def close(self) -> None:
        for path in set(self._directories.values()):
            _kill_tree(path)
            _remove_tree(path)


# ---------------------------------------------------------------------------------------------------------------
# Version 2: one hierarchy, a group for each run


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
        return _longest_wait_s(self._run / "cgroup.threads")

    def end(self) -> Usage:
        assert self._run is not None
        events = (self._run / "memory.events").read_text()
        usage = Usage(
            self.cpu_s(),
            int((self._run / "memory.peak").read_text()),
            _file_cache((self._run / "memory.stat").read_text()),
            int(_value(events, "oom_kill")),
        )
        self._end_run()
        return usage

    def _end_run(self) -> None:
        if self._run is not None and self._entry is not None:
            os.close(self._entry)
            _remove_tree(self._run)
            self._run = self._entry = None

    def kill(self) -> None:
        for group in (self._run, self._warden):
            if group is not None:
                (group / "cgroup.kill").write_text("1")
                _kill_tree(group)

    def close(self) -> None:
        self._end_run()
        _remove_tree(self._warden)


def _value(text: str, key: str) -> str:
    return dict(line.split() for line in text.splitlines())[key]


class V2:
    version = "cgroup v2"

    def __init__(self, hierarchies: Hierarchies) -> None:
        self._directory = hierarchies.directories["memory"] / _owner_name()
        self._directory.mkdir(exist_ok=True)
        (self._directory / "cgroup.subtree_control").write_text("+cpu +memory +pids")

    def cell(self, name: str) -> CellGroup:
        return V2Cell(self._directory, name)

    def close(self) -> None:
        _kill_tree(self._directory)
        _remove_tree(self._directory)


# ---------------------------------------------------------------------------------------------------------------
# None at all, where the user insists


class NoCell:
    """Stands in where there are no control groups: nobody counts, and rlimits are all there is."""

    def warden_entries(self) -> list[int]:
        return []

    def begin(self, memory_bytes: int, processes: int) -> list[int]:
        return []

    def cpu_s(self) -> None:
        return None

    def waited_s(self) -> float:
        return 0.0

    def end(self) -> None:
        return None

    def kill(self) -> None:
        """Nothing to find processes by: the cell ends them through its own process 1."""

    def close(self) -> None:
        """Nothing was made."""


class NoCgroups:
    version = "no cgroups"

    def cell(self, name: str) -> CellGroup:
        return NoCell()

    def close(self) -> None:
        """Nothing was made."""


def open_cgroups(*, insecure_no_cgroup: bool) -> Cgroups:
    """The groups of this process. Raises HostError where there are none and that was not accepted."""
    if insecure_no_cgroup:
        return NoCgroups()
    hierarchies = here()
    return V1(hierarchies) if hierarchies.version == "v1" else V2(hierarchies)
