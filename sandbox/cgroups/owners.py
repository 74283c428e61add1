"""Directories of control groups and their owners: naming one for a process, and ending all that is in one."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from sandbox.errors import HostError

#: Directory names of ours: PID namespace, process and its start time, so that the owner's death can be proved.
OWNER = re.compile(r"rkgrade-(\d+)-(\d+)-(\d+)")

#: A group's own way to end all that is in it; on v2, from Linux 5.14 on.
KILL = "cgroup.kill"


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


def is_own(namespace: str, pid: str, start_time: str) -> bool:
    """Whether that process is this one, or a child of it."""
    if not is_alive(namespace, pid, start_time):
        return False
    try:
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return namespace == _pid_namespace() and str(os.getpid()) in (pid, parent)


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
        _kill(directory, pids)
        time.sleep(0.002)


def _kill(directory: Path, pids: list[int]) -> None:
    try:
        # All at once, whoever forks included, and by the rights on the group alone. Nobody but root may read it.
        fd = os.open(directory / KILL, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"1")
        finally:
            os.close(fd)
    except FileNotFoundError:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    except OSError as error:
        if error.errno != errno.ENODEV:  # Removed meanwhile.
            raise


def _pids(group: Path) -> list[int]:
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split() if pid != "0"]
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENODEV):  # Removed before it was opened, or before it was read.
            return []
        raise


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
