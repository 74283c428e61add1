"""Directories of control groups and their owners: naming one for a process, and ending all that is in one."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from sandbox.errors import HostError

#: Directory names of ours: PID namespace, process and its start time, so that the owner's death can be proved.
OWNER = re.compile(r"rkgrade-(\d+)-(\d+)-(\d+)")


def _state_and_start_time(pid: int | str) -> tuple[str, str]:
    """Fields 3 and 22 of /proc/PID/stat; the second, with the PID, names a process for good.

    Raises FileNotFoundError or ProcessLookupError where there is no such process.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], fields[19]


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def owner_name() -> str:
    _, start_time = _state_and_start_time("self")
    return f"rkgrade-{_pid_namespace()}-{os.getpid()}-{start_time}"


def is_alive(namespace: str, pid: str, start_time: str) -> bool:
    if namespace != _pid_namespace():
        return True  # Another container's: not ours to judge.
    try:
        state, found = _state_and_start_time(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    # A zombie is dead: in a container whose process 1 reaps nobody, it stays one for good.
    return found == start_time and state not in "ZX"


def _groups_of(directory: Path) -> Iterator[Path]:
    """The directory's groups, leaves first."""
    for path, _, _ in os.walk(directory, topdown=False):
        yield Path(path)


def kill_tree(directory: Path, deadline_s: float = 5.0) -> None:
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


def remove_tree(directory: Path, deadline_s: float = 5.0) -> None:
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
