"""How far two numbers may be apart and count as one."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sandbox.errors import CheckerRefused


@dataclass(frozen=True, slots=True)
class Tolerance:
    """|s - a| <= absolute or |s - a| <= relative * |a|, for the output's s and the answer's a.

    The rule of the Kattis default validator. It is decided as if the decimal numbers had been compared exactly, so
    `1.000001` is within 1e-6 of `1`, and large integers that share a double are told apart. Both must be finite numbers
    in ASCII decimal notation (`-1`, `.5`, `1.`, `+2.5E-3`), each of at most 64 KiB and less than the largest double;
    below 1e-1000000 a number is 0. `sandbox.checkers.native` decides.
    """

    absolute: float
    relative: float

    def __post_init__(self) -> None:
        for tolerance in (self.absolute, self.relative):
            if not (math.isfinite(tolerance) and tolerance >= 0):
                raise CheckerRefused(f"a float tolerance must be finite and not negative, not {tolerance}")


def tolerance(absolute: float | None, relative: float | None) -> Tolerance | None:
    """None where neither is set; where one is, the other counts as 0. Raises CheckerRefused."""
    if absolute is None and relative is None:
        return None
    return Tolerance(absolute or 0.0, relative or 0.0)
