"""pass@K of a pool of checkpoints at a matched budget, estimated without bias. Pure; needs numpy.

Of checkpoint j a problem has n_j samples, c_j of them correct. That none of k_j of them is correct has the chance
C(n_j - c_j, k_j) / C(n_j, k_j) (Chen et al. 2021, arXiv 2107.03374); samples of different checkpoints are independent,
so that K = sum of k_j samples of the pool hold a correct one with the chance 1 - product over j of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rl_client.evaluate.statistics import Floats

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pool:
    """Checkpoints on the same problems."""

    log_misses: Floats
    """[budget + 1, checkpoints, problems]: of so many samples of a checkpoint the log chance that none is correct."""

    @staticmethod
    def of(samples: Integers, correct: Integers, budget: int) -> Pool:
        """`samples`, `correct`: [checkpoints, problems]. `budget`: the most samples of one checkpoint.

        In logs, as sums of log1p(-c / (n - i)), since products of many chances near 1, or near 0, lose digits. Raises
        ValueError for numbers that are none of samples, and where the budget is more than there are of a problem.
        """
        if samples.shape != correct.shape or samples.ndim != 2 or not samples.size:
            raise ValueError(f"[checkpoints, problems] are {list(samples.shape)} and {list(correct.shape)}")
        if (correct < 0).any() or (correct > samples).any():
            raise ValueError("correct samples are between none and all")
        if not 1 <= budget <= samples.min():
            raise ValueError(f"the budget is {budget}: with {samples.min()} samples it lies between 1 and that")
        left = samples - np.arange(budget)[:, None, None]
        # Once no more samples are left than are correct ones, the next is correct at the latest.
        with np.errstate(divide="ignore"):
            steps = np.log1p(-np.minimum(correct / left, 1.0))
        return Pool(np.concatenate([np.zeros((1, *samples.shape)), np.cumsum(steps, axis=0)]))

    @property
    def budget(self) -> int:
        return len(self.log_misses) - 1

    @property
    def checkpoints(self) -> int:
        return int(self.log_misses.shape[1])

    @property
    def problems(self) -> int:
        return int(self.log_misses.shape[2])

    def covered(self, allocation: Sequence[int]) -> Floats:
        """[problems]: the chance that so many samples of each checkpoint hold a correct one.

        Raises ValueError where one gives more samples than the budget, or the allocation is not of the checkpoints.
        """
        if len(allocation) != self.checkpoints or not all(0 <= k <= self.budget for k in allocation):
            raise ValueError(f"{list(allocation)} is no allocation of {self.budget} to {self.checkpoints} checkpoints")
        logs = self.log_misses[np.array(allocation, dtype=np.int64), np.arange(self.checkpoints)]
        return np.asarray(-np.expm1(logs.sum(axis=0)))

    def singles(self) -> Floats:
        """[problems, checkpoints]: pass@budget of each checkpoint alone."""
        return np.asarray(-np.expm1(self.log_misses[-1]).T)
