"""The seam to whoever turns grades into rewards: the service knows none, and answers trainers' questions by it.

It is found as an entry point of the group `rkgrade.rewarding`, so that nothing of the service points at it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from service.contract import GradeRequest, GradeResult


class Unrewardable(Exception):
    """There is no reward. `field`: of the label, "" for the label as a whole; `query` where the answer cannot be found;
    None where the grader is at fault.
    """

    def __init__(self, field: str | None, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Rewarded:
    reward: float
    score: float
    """From 0 to 1, whatever the reward's scale."""
    logs: Mapping[str, float]
    """Under the same names for every answer."""


@dataclass(frozen=True, slots=True)
class Rewardable:
    """An answer that can be graded."""

    request: GradeRequest
    rewarded: Callable[[GradeResult], Rewarded]
    """Raises Unrewardable."""


Rewarding = Callable[[str, str, object], Rewardable]
"""Of a query (prompt and answer as one text), its prompt, and its label. Raises Unrewardable."""


def rewarding() -> Rewarding | None:
    """What is installed here, if anything is."""
    for found in entry_points(group="rkgrade.rewarding"):
        loaded: Rewarding = found.load()
        return loaded
    return None
