"""Means over problems with their intervals, by a bootstrap whose clusters are problems. Pure; needs numpy.

Samples of one problem are no independent observations, so what is resampled are problems, each with all of its samples.
A metric is one number a problem, such as the share of its samples that are correct; its estimate is the mean over the
problems that have it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

RESAMPLES = 10_000
LEVEL = 0.95

#: Resamples that are drawn at once: what is drawn for them is in memory together.
_BLOCK_DRAWS = 2**20


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean over problems of one metric, with a percentile interval."""

    mean: float | None
    """None where no problem has the metric."""
    low: float | None
    """None of a single problem, which says nothing of others."""
    high: float | None
    problems: int
    """Those that have it."""


def with_sign(difference: float, digits: int) -> str:
    """With its sign; without one where it rounds to nothing, which is neither more nor less."""
    text = f"{difference:+z.{digits}f}"
    return text.removeprefix("+") if float(text) == 0 else text


def resampled_means(values: Floats, *, resamples: int = RESAMPLES, seed: int = 0) -> Floats:
    """Means over problems drawn with replacement: [problems, metrics] in, [resamples, metrics] out.

    NaN stands for a metric that a problem does not have; the mean of a draw without any that has it is NaN. All metrics
    of a resample are over the same problems, so that the difference of two columns is paired by problem.

    Raises ValueError of no problems, and of arrays that are not of two axes.
    """
    if values.ndim != 2 or not len(values):
        raise ValueError(f"values are [problems, metrics], of at least one problem, not {list(values.shape)}")
    problems = len(values)
    has = ~np.isnan(values)
    # One product for sums and counts: both are weighted by how often a problem was drawn.
    columns = np.hstack([np.where(has, values, 0.0), has])
    draws = np.random.default_rng(seed)
    block = max(1, _BLOCK_DRAWS // problems)
    means = np.empty((resamples, values.shape[1]))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = draws.integers(problems, size=(rows, problems), dtype=np.int32)
        drawn += np.arange(rows, dtype=np.int32)[:, None] * np.int32(problems)
        weights = np.bincount(drawn.ravel(), minlength=rows * problems).reshape(rows, problems)
        sums, counts = np.split(weights.astype(np.float64) @ columns, 2, axis=1)
        with np.errstate(invalid="ignore"):
            means[start : start + rows] = sums / counts
    return means


def estimates(values: Floats, *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = 0) -> list[Estimate]:
    """An estimate for each column of [problems, metrics]; NaN stands for a metric that a problem does not have.

    The interval is that of percentiles (Efron 1979), between (1 - level) / 2 and (1 + level) / 2. Raises ValueError as
    `resampled_means` does, and of a level that is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}, not between 0 and 1")
    means = resampled_means(values, resamples=resamples, seed=seed)
    found = []
    for column, drawn in zip(values.T, means.T, strict=True):
        has = column[~np.isnan(column)]
        if not len(has):
            found.append(Estimate(None, None, None, 0))
            continue
        if len(has) == 1:
            found.append(Estimate(float(has[0]), None, None, 1))
            continue
        low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2])
        found.append(Estimate(float(has.mean()), float(low), float(high), len(has)))
    return found
