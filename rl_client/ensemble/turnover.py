"""Which problems which checkpoints solve, and how much of the difference is chance. Pure; needs numpy.

Two samplings of one and the same checkpoint do not solve the same problems either. So beside each figure stands what is
to be expected if all checkpoints were one: the samples of a problem, with its correct ones, dealt out at random to the
checkpoints (hypergeometric, given how many there are in all).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rl_client.ensemble.coverage import Integers
from rl_client.evaluate.statistics import Floats

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Turnover:
    solved: Flags
    """[checkpoints, problems]: by one sample at least."""
    jaccard: Floats
    """[checkpoints, checkpoints]: problems that both solve, of those that either does; NaN where none does."""
    jaccard_by_chance: Floats
    """The same, if each two were one checkpoint: expected share of both, by the expected ones of either."""
    not_by: Integers
    """[checkpoints, checkpoints]: problems that the first solves, and the second does not."""

    @staticmethod
    def of(samples: Integers, correct: Integers) -> Turnover:
        """[checkpoints, problems] each."""
        solved = correct > 0
        both = solved.astype(np.int64) @ solved.T
        sizes = np.diagonal(both)
        either = sizes[:, None] + sizes[None, :] - both
        chance = np.diag(np.where(sizes > 0, 1.0, np.nan))
        for one, other in itertools.combinations(range(len(solved)), 2):
            chance[one, other] = chance[other, one] = _both(samples[[one, other]], correct[[one, other]])
        with np.errstate(invalid="ignore"):
            return Turnover(solved, both / either, chance, sizes[:, None] - both)


def only(samples: Integers, correct: Integers, some: Sequence[bool]) -> tuple[Flags, float]:
    """[problems]: those that some of the checkpoints solve, and none of the others; and how many of them are to be
    expected if all were one.
    """
    inside = np.array(some, dtype=np.bool_)
    found = correct.sum(axis=0)
    flags = (correct[inside].sum(axis=0) > 0) & (correct[~inside].sum(axis=0) == 0)
    chances = _none(samples.sum(axis=0), found, samples[~inside].sum(axis=0))
    return flags, float(chances[found > 0].sum())


def _both(samples: Integers, correct: Integers) -> float:
    """Of the problems that two checkpoints solve between them, the share that both are expected to."""
    total, found = samples.sum(axis=0), correct.sum(axis=0)
    solved = found > 0
    if not solved.any():
        return float("nan")
    return float((1 - _none(total, found, samples[0]) - _none(total, found, samples[1]))[solved].mean())


def _none(total: Integers, correct: Integers, taken: Integers) -> Floats:
    """C(total - correct, taken) / C(total, taken): the chance that no taken one is correct. [problems] each."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, total.max() + 1)))])
    rest = np.maximum(total - correct - taken, 0)
    chances = np.exp(logs[total - correct] - logs[rest] + logs[total - taken] - logs[total])
    return np.where(total - correct >= taken, chances, 0.0)
