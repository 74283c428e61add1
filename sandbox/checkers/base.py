"""The seam between the judge and whatever compares a program's output with what was expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sandbox.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class CheckerOutcome:
    verdict: Verdict
    """`accepted`, `wrong_answer` or `checker_error`."""
    message: str = ""
    """For people; may quote the test's data, so it is shown only on request (`detail: outputs`)."""
    score: float | None = None


class Checker(Protocol):
    """Decides on the output of a run that ended cleanly. Holds no state between calls."""

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        """Compare one output, mapped into memory as written by the program, with the expected one."""
        ...
