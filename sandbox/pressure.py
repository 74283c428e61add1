"""Whether others were at work where a program ran, so that its limit failure need not count; and how to be alone.

A program that has its core to itself reaches its CPU limit in about as much wall time. Where it took far longer, and
the core was meanwhile busy with something that was neither the program nor its judge, or its time was stolen by a
hypervisor, the failure may be the host's. The kernel's pressure files would not do: they cover the whole host, and a
program's own processes, waiting for each other on the one core they have, show there as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Share of a run's wall time for which others had the core, from which the failure may be theirs.
TAKEN_SHARE = 0.2

#: Wall time beyond CPU time that a program alone on its core may show, as a factor and in seconds.
WAITING_FACTOR, WAITING_S = 1.25, 0.1

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class CoreTime:
    """What the cores that this process may run on have done since boot, when that was read."""

    busy_s: float
    """For anybody, a hypervisor's other guests included; waiting and idling apart."""
    at_s: float


def core_time() -> CoreTime:
    cores = os.sched_getaffinity(0)
    ticks = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu" and int(name[3:]) in cores:
            user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
            ticks += user + nice + system + irq + softirq + steal
    return CoreTime(ticks / _TICKS_PER_S, time.monotonic())


def taken_by_others(
    before: CoreTime, after: CoreTime, *, own_s: float, cpu_s: float, wall_s: float, idle: bool
) -> bool:
    """Whether a run in between was kept from its core by others.

    `own_s`: what the run and all else of its judge's, interactors and checkers too, used of the core between the
    readings. A run that ended idle slept or waited, which its own times cannot tell apart: what others used decides
    alone.
    """
    span_s = max(after.at_s - before.at_s, 1e-3)
    waited = idle or wall_s > WAITING_FACTOR * cpu_s + WAITING_S
    return waited and after.busy_s - before.busy_s - own_s > TAKEN_SHARE * span_s


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
