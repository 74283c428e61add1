"""Whether this host was too busy for a limit failure to count, and how to have it to oneself for another try.

A program that is pinned to a core alone reaches its CPU limit in about as much wall time. Where it was kept waiting
for the core, or for memory, that shows in the kernel's pressure files and in wall time far above CPU time; then, and
only then, the failure may be the host's.
"""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Share of a run's wall time for which something on the host was stalled, from which the host counts as short.
SHORT_SHARE = 0.2

#: Wall time beyond CPU time that a program alone on its core may show, as a factor and in seconds.
WAITING_FACTOR, WAITING_S = 1.25, 0.1


@dataclass(frozen=True, slots=True)
class Stall:
    """Seconds since boot for which something waited, by resource; and when that was read."""

    cpu_s: float
    memory_s: float
    stolen_s: float
    """CPU time that a hypervisor gave to others."""
    at_s: float


def _pressure_s(resource: str) -> float:
    try:
        text = Path(f"/proc/pressure/{resource}").read_text()
    except (FileNotFoundError, OSError):
        return 0.0  # A kernel without pressure files (CONFIG_PSI): stolen time is all there is to go by.
    return int(text.splitlines()[0].rpartition("total=")[2]) / 1e6


def stall() -> Stall:
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    stolen_s = int(fields[8]) / 100
    return Stall(_pressure_s("cpu"), _pressure_s("memory"), stolen_s, time.monotonic())


def cpu_was_short(before: Stall, after: Stall, *, cpu_s: float, wall_s: float, idle: bool) -> bool:
    """Whether a run in between was kept from the CPU: it waited, and the host says that things were made to wait.

    A run that ended idle slept or waited, which its own times cannot tell apart: the host's word decides alone.
    """
    span_s = max(after.at_s - before.at_s, 1e-3)
    stalled_s = after.cpu_s - before.cpu_s + after.stolen_s - before.stolen_s
    waited = idle or wall_s > WAITING_FACTOR * cpu_s + WAITING_S
    return waited and stalled_s > SHORT_SHARE * span_s


def memory_was_short(before: Stall, after: Stall) -> bool:
    span_s = max(after.at_s - before.at_s, 1e-3)
    return after.memory_s - before.memory_s > SHORT_SHARE * span_s


class Turn:
    """Who may run on this host: many tests side by side, or one of them alone.

    Two lock files. A test alone holds both exclusively; any other passes the gate, holding it no longer than it takes
    to get the floor, and then shares the floor. So the one that wants to be alone is not starved by a stream of others.
    """

    def __init__(self, locks_dir: Path) -> None:
        locks_dir.mkdir(parents=True, exist_ok=True)
        self._gate = (locks_dir / "gate").open("w")
        self._floor = (locks_dir / "floor").open("w")

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        fcntl.flock(self._gate, fcntl.LOCK_SH)
        fcntl.flock(self._floor, fcntl.LOCK_SH)
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._floor, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._floor, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(self._floor, fcntl.LOCK_UN)
            fcntl.flock(self._gate, fcntl.LOCK_UN)

    def close(self) -> None:
        self._gate.close()
        self._floor.close()
