"""Evaluations of several checkpoints as one array: which share of each problem's samples ended how. Pure; needs numpy.

Checkpoints of alpha 0 and 1 were trained, and so were those that have no alpha; all others are averages of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rl_client.ensemble.runs import Run
from rl_client.evaluate.report import CATEGORIES, ProblemCounts
from rl_client.evaluate.statistics import Floats


@dataclass(frozen=True, slots=True)
class Grid:
    """Checkpoints on the same problems."""

    runs: tuple[Run, ...]
    """By alpha, those without one last."""
    counts: tuple[tuple[ProblemCounts, ...], ...]
    """For each problem, of each run."""

    @staticmethod
    def of(runs: Sequence[Run]) -> Grid:
        """`runs`: as `rl_client.ensemble.runs.read_runs` has held them to each other."""
        ordered = sorted(runs, key=lambda run: (run.named.alpha is None, run.named.alpha or 0.0, run.named.name))
        return Grid(tuple(ordered), tuple(tuple(run.problems[id] for run in ordered) for id in ordered[0].problems))

    @property
    def shares(self) -> Floats:
        """[problems, runs, categories], in the order of CATEGORIES."""
        return np.array(
            [[[one.categories[name] / one.graded for name in CATEGORIES] for one in row] for row in self.counts]
        )

    @property
    def ends(self) -> list[int]:
        """Numbers of the runs at alpha 0 and 1."""
        return self._where(lambda alpha: alpha in (0, 1))

    @property
    def others(self) -> list[int]:
        """Numbers of the other runs that were trained."""
        return self._where(lambda alpha: alpha is None)

    @property
    def inside(self) -> list[int]:
        """Numbers of the runs between alpha 0 and 1."""
        return self._where(lambda alpha: alpha is not None and 0 < alpha < 1)

    @property
    def outside(self) -> list[int]:
        """Numbers of the runs below alpha 0 and above 1."""
        return self._where(lambda alpha: alpha is not None and not 0 <= alpha <= 1)

    @property
    def trained(self) -> list[int]:
        return self.ends + self.others

    def _where(self, is_there: Callable[[float | None], bool]) -> list[int]:
        return [number for number, run in enumerate(self.runs) if is_there(run.named.alpha)]
