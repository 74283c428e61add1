"""What every version of control groups offers, and the figures they share."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

WARDEN_BYTES = 256 * 2**20
"""What the warden may hold beyond the program's own limit (compiled code of the submission, its files)."""


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

    def sleeps(self) -> bool:
        """Whether the run has threads, and all of them sleep; true where nobody counts."""

    def usage(self) -> Usage | None:
        """The account of the run so far; None where nobody counts."""

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


def longest_wait_s(tasks: Path) -> float:
    """From the second field of /proc/TID/schedstat: nanoseconds spent runnable, waiting for a core."""
    longest = 0
    for thread in tasks.read_text().split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            longest = max(longest, int(Path(f"/proc/{thread}/schedstat").read_text().split()[1]))
    return longest / 1e9


def all_sleep(tasks: Path) -> bool:
    """From the third field of /proc/TID/stat: whether there are threads, and each is in an interruptible sleep."""
    states: set[str] = set()
    for thread in tasks.read_text().split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # The name before it may hold anything.
            states.add(Path(f"/proc/{thread}/stat").read_text(errors="replace").rpartition(")")[2].split()[0])
    return states == {"S"}


def look_for_unreachable() -> None:
    """Have the kernel free messages that nobody can receive any more, as their sockets lie in such messages themselves,
    and the files in them. It looks for them whenever a Unix socket is closed, which their own never are.
    """
    for end in socket.socketpair():
        end.close()


def file_cache(stat: str) -> int:
    """Bytes of file pages (not tmpfs, which counts as anonymous) in the text of memory.stat."""
    values = dict(line.split() for line in stat.splitlines())
    return int(values["active_file"]) + int(values["inactive_file"])
