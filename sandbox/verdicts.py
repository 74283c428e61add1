"""What a test came to, and the one function that decides it.

Knows the kernel's words about a finished run (`Evidence`) and nothing of how they were gathered, of checkers'
insides, rewards or HTTP.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Verdict(enum.StrEnum):
    """The closed list of what one test can come to."""

    ACCEPTED = "accepted"
    WRONG_ANSWER = "wrong_answer"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    IDLE = "idle"
    RUNTIME_ERROR = "runtime_error"
    CHECKER_ERROR = "checker_error"
    INTERNAL_ERROR = "internal_error"
    SKIPPED = "skipped"


#: Limit failures: the program did too much, which says nothing of whether its answer was right.
LIMIT_VERDICTS = frozenset({Verdict.TIME_LIMIT, Verdict.MEMORY_LIMIT, Verdict.OUTPUT_LIMIT, Verdict.IDLE})

#: Faults of the grader: never the program's, never a reward.
FAULT_VERDICTS = frozenset({Verdict.CHECKER_ERROR, Verdict.INTERNAL_ERROR})


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the kernel says of one finished run; every field comes from outside the program's reach."""

    over_memory: bool
    over_cpu: bool
    over_wall: bool
    over_output: bool
    exit_code: int | None
    """Exit status, or None where a signal ended the program."""
    signal: int | None
    """The signal that ended the program, or None."""

    @property
    def over_a_limit(self) -> bool:
        return self.over_memory or self.over_cpu or self.over_wall or self.over_output


def decide(evidence: Evidence, *, ignore_exit_code: bool) -> Verdict | None:
    """Name the run's failure, in the order of the design: memory, time, idle, output, exit status.

    Returns None where the run itself was clean, so that the checker has the last word.
    """
    if evidence.over_memory:
        return Verdict.MEMORY_LIMIT
    if evidence.over_cpu:
        return Verdict.TIME_LIMIT
    if evidence.over_wall:
        return Verdict.IDLE
    if evidence.over_output:
        return Verdict.OUTPUT_LIMIT
    if evidence.signal is not None:
        return Verdict.RUNTIME_ERROR
    if evidence.exit_code != 0 and not ignore_exit_code:
        return Verdict.RUNTIME_ERROR
    return None
