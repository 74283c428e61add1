"""What a judge meets beside verdicts: for whoever watches the grader, never for a result."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sandbox.errors import GraderFault
from sandbox.run import RunRecord


@dataclass(slots=True)
class Tally:
    cells_started: int = 0
    """Warm ones included."""
    oom_kills: int = 0
    """Programs' processes that the kernel killed at the program's own memory limit."""
    host_oom_kills: int = 0
    """Those it killed below that limit: the host, or the container around the grader, was out of memory."""
    faults: Counter[str] = field(default_factory=Counter)
    """Faults of the grader by cause, those that a second attempt mended included."""

    def ran(self, record: RunRecord) -> None:
        if record.killed_by_host:
            self.host_oom_kills += record.oom_kills
        else:
            self.oom_kills += record.oom_kills

    def failed(self, error: GraderFault | OSError) -> None:
        self.faults[error.cause if isinstance(error, GraderFault) else "host"] += 1
