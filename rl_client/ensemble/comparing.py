"""Whether a pool of checkpoints covers more than its best checkpoint alone, at the same budget. Pure; needs numpy.

Which checkpoint is best, and how a budget is best shared out, are chosen by data, and what was chosen looks too good on
the data that it was chosen by. So problems lie in folds: on those of each fold counts what was chosen by the others. As
it is chance which lie together, there are several splits into folds, and their mean counts.

Intervals are those of a bootstrap over problems, all of it paired. The best checkpoint is chosen anew in each resample,
fold by fold (all copies of a problem lie in its fold), so that they hold how uncertain that choice is; allocations stay
as they were chosen by the data, since looking for them ten thousand times takes too long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rl_client.ensemble.allocating import Allocation, optimised, uniform
from rl_client.ensemble.coverage import Integers, Pool
from rl_client.evaluate.statistics import LEVEL, RESAMPLES, Estimate, Floats, resampled_means

Allocating = Literal["uniform", "optimised"]

#: Ways to put the problems into folds.
SPLITS = 4


@dataclass(frozen=True, slots=True)
class Comparison:
    """pass@budget of a pool, and of its checkpoints alone."""

    checkpoints: tuple[Estimate, ...]
    """Of each alone."""
    pool: Estimate
    best: Estimate
    """Of the best single checkpoint: for each fold the one that is best on the others."""
    chosen: tuple[int, ...]
    """Which that is for each fold of each split, by its number."""
    best_seen: Estimate
    """Of the checkpoint that looks best on all problems: too high."""
    gain: Estimate
    """`pool` less `best`."""
    gain_seen: Estimate
    """`pool` less `best_seen`: too low, if the allocation is uniform."""
    allocation: Allocation
    """The one to use: where it is optimised, by all problems."""
    fold_allocations: tuple[Allocation, ...] | None
    """Those that `pool` was estimated with, where they are optimised: for each fold of each split, by the others."""


def compare(
    samples: Integers,
    correct: Integers,
    budget: int,
    allocating: Allocating,
    folds: int,
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> Comparison:
    """`samples`, `correct`: [checkpoints, problems]. `budget`: samples in all.

    Raises ValueError unless 1 <= budget <= samples and 2 <= folds <= problems.
    """
    pool = Pool.of(samples, correct, budget)
    if not 2 <= folds <= pool.problems:
        raise ValueError(f"{pool.problems} problems cannot be in {folds} folds")
    draws = np.random.default_rng(seed)
    splits = np.stack([draws.permutation(pool.problems) % folds for _ in range(SPLITS)])
    # [splits * folds, problems]: who lies in each fold.
    inside = (splits[:, None, :] == np.arange(folds)[:, None]).reshape(-1, pool.problems)
    allocation: Allocation = uniform(pool.checkpoints, budget)
    fold_allocations: tuple[Allocation, ...] | None = None
    covered = pool.covered(allocation)
    if allocating == "optimised":
        rates = correct / samples
        allocation = optimised(rates, budget)
        fold_allocations = tuple(optimised(rates[:, ~part], budget) for part in inside)
        covered = (np.stack([pool.covered(one) for one in fold_allocations]) * inside).sum(axis=0) / SPLITS
    singles = pool.singles()
    # A column for each checkpoint and fold: what it covers there, and nothing of other folds.
    apart = np.where(inside.T[:, :, None], singles[:, None, :], 0.0)
    values = np.column_stack([covered, apart.reshape(pool.problems, -1)])
    drawn = _Drawn(resampled_means(values, resamples=resamples, seed=seed), folds)
    found = _Drawn(values.mean(axis=0, keepdims=True), folds)

    def estimate(mean: Floats, means: Floats) -> Estimate:
        low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
        return Estimate(float(mean[0]), float(low), float(high), pool.problems)

    return Comparison(
        checkpoints=tuple(
            estimate(found.singles[:, number], drawn.singles[:, number]) for number in range(pool.checkpoints)
        ),
        pool=estimate(found.pool, drawn.pool),
        best=estimate(found.best, drawn.best),
        chosen=tuple(found.chosen[0].ravel().tolist()),
        best_seen=estimate(found.best_seen, drawn.best_seen),
        gain=estimate(_less(found.pool, found.best), _less(drawn.pool, drawn.best)),
        gain_seen=estimate(_less(found.pool, found.best_seen), _less(drawn.pool, drawn.best_seen)),
        allocation=allocation,
        fold_allocations=fold_allocations,
    )


def _less(one: Floats, other: Floats) -> Floats:
    """What rounding alone leaves of a difference is none, of either sign: it would be told as a gain."""
    return np.round(one - other, 12) + 0.0


class _Drawn:
    """What each resample of the problems comes to."""

    def __init__(self, means: Floats, folds: int) -> None:
        """`means`: [resamples, 1 + splits * folds * checkpoints], of the pool, and of each checkpoint on each fold."""
        self.pool = means[:, 0]
        by_fold = means[:, 1:].reshape(len(means), SPLITS, folds, -1)
        self.singles = by_fold[:, 0].sum(axis=1)
        elsewhere = self.singles[:, None, None, :] - by_fold
        self.chosen = elsewhere.argmax(axis=3)
        self.best = np.take_along_axis(by_fold, self.chosen[..., None], axis=3).sum(axis=(1, 2, 3)) / SPLITS
        self.best_seen = self.singles.max(axis=1)
