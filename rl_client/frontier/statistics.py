"""Rates of two kinds of failure with their ellipses, and whether some checkpoints lie beyond the frontier of others.

Pure; needs numpy. What is resampled are problems, each with all samples of all checkpoints, so that all is paired.

A frontier is what a set of checkpoints reaches in (optimization failures, correctness failures), less of both being
better. Who takes each sample from one of two checkpoints, by a coin, reaches every point of the line between them; so
the frontier is the lower left border of the convex hull, and a point lies beyond it if at some price (w, 1 - w) of the
two failures, 0 <= w <= 1, it costs less than every checkpoint of the set. How much less is the margin,

    margin(x | S) = max over w of (min over s in S of cost(s) - cost(x)),
    cost(x) = w * x_opt + (1 - w) * x_cor + x_format

in failures per sample, below 0 where x lies behind the frontier at every price. A sample without a program is a failure
at any price: else who gives none, and so has neither failure, would lie beyond everybody. A set's margin is that of its
best point. The best of several noisy margins is too high on the data it is chosen by. So the problems lie in two folds:
point and price are chosen on one, the margin is measured on the other, and both ways are averaged. That is unbiased for
what was chosen, but for the min over S, which makes it too low rather than too high. In the bootstrap the choice is
made anew in each resample, all copies of a problem being in its fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rl_client.evaluate.report import CATEGORIES
from rl_client.evaluate.statistics import LEVEL, RESAMPLES, Estimate, Floats, estimates, resampled_means

#: The two of CATEGORIES that the frontier is between, and the one that is both.
FORMAT = CATEGORIES.index("format_error")
OPTIMIZATION, CORRECTNESS = CATEGORIES.index("optimization_failure"), CATEGORIES.index("correctness_failure")

#: Prices that are tried, from that of correctness failures alone to that of optimization failures alone.
PRICES = np.linspace(0, 1, 41)

#: In each of the two folds there must be so many problems.
FEWEST = 2

_BLOCK = 500
"""Resamples whose costs are in memory at once."""


@dataclass(frozen=True, slots=True)
class Ellipse:
    """Where both rates lie, jointly, by a normal approximation to the resampled means."""

    width: float
    """Whole axes, in rates; the first along `degrees`."""
    height: float
    degrees: float
    """Of the first axis, from that of optimization failures towards that of correctness failures."""


def rates(shares: Floats, *, resamples: int = RESAMPLES, seed: int = 0) -> list[dict[str, Estimate]]:
    """Of each run, by category: [problems, runs, categories] in."""
    problems, runs, categories = shares.shape
    found = estimates(shares.reshape(problems, runs * categories), resamples=resamples, seed=seed)
    return [dict(zip(CATEGORIES, found[run * categories :][:categories], strict=True)) for run in range(runs)]


def ellipses(
    shares: Floats, *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = 0
) -> list[Ellipse | None]:
    """Of each run the one that holds `level` of a normal distribution with the covariance of the resampled means.

    Its half axes are sqrt(-2 ln(1 - level)) standard deviations: the quantile of chi squared with two degrees of
    freedom. None of a single problem.
    """
    problems, runs, _ = shares.shape
    if problems == 1:
        return [None] * runs
    both = shares[:, :, [OPTIMIZATION, CORRECTNESS]].reshape(problems, runs * 2)
    means = resampled_means(both, resamples=resamples, seed=seed).reshape(resamples, runs, 2)
    scale = 2 * np.sqrt(-2 * np.log(1 - level))
    found: list[Ellipse | None] = []
    for run in range(runs):
        variances, axes = np.linalg.eigh(np.cov(means[:, run].T))
        minor, major = scale * np.sqrt(np.maximum(variances, 0.0))
        degrees = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))) % 180
        found.append(Ellipse(float(major), float(minor), degrees))
    return found


def margin(
    shares: Floats,
    points: Sequence[int],
    others: Sequence[int],
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> Estimate:
    """Of some runs over the frontier of others, as the module says: [problems, runs, categories] in.

    Nothing but None where a fold would have fewer than FEWEST problems. Raises ValueError of empty sets.
    """
    if not points or not others:
        raise ValueError("a margin is of some runs over some others")
    problems = len(shares)
    if problems < 2 * FEWEST:
        return Estimate(None, None, None, problems)
    fold = np.random.default_rng(seed).permutation(problems) % 2
    ordered = shares[:, [*points, *others]]
    both = (ordered[:, :, [OPTIMIZATION, CORRECTNESS]] + ordered[:, :, [FORMAT]]).reshape(problems, -1)
    # A column for each rate and fold; the problems of the other fold do not have it.
    values = np.concatenate([np.where(fold[:, None] == number, both, np.nan) for number in (0, 1)], axis=1)
    drawn = _margins(resampled_means(values, resamples=resamples, seed=seed), len(points))
    [found] = _margins(np.nanmean(values, axis=0, keepdims=True), len(points))
    # Of few problems some draws have none of a fold.
    low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(found), float(low), float(high), problems)


def _margins(means: Floats, points: int) -> Floats:
    """[draws, folds * runs * 2] to [draws]; of the runs the points come first."""
    found = []
    for start in range(0, len(means), _BLOCK):
        block = means[start : start + _BLOCK]
        pairs = block.reshape(len(block), 2, -1, 2)
        # [draws, folds, runs, prices]
        costs = pairs[..., :1] * PRICES + pairs[..., 1:] * (1 - PRICES)
        beyond = (costs[:, :, points:].min(axis=2)[:, :, None] - costs[:, :, :points]).reshape(len(block), 2, -1)
        lost = np.isnan(beyond).any(axis=(1, 2))
        chosen = np.where(lost[:, None, None], 0.0, beyond).argmax(axis=2)
        told = np.take_along_axis(beyond, chosen[:, ::-1, None], axis=2)[:, :, 0].mean(axis=1)
        found.append(np.where(lost, np.nan, told))
    return np.concatenate(found)
