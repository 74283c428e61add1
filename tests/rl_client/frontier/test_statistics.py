"""Margins over a frontier, against what is known of them; and the ellipses of rates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rl_client.evaluate.statistics import Floats
from rl_client.frontier.statistics import ellipses, margin


def shares(points: Sequence[tuple[float, ...]], problems: int, seed: int, samples: int = 8) -> Floats:
    """[problems, runs, categories] of samples that fail so (optimization, correctness, if need be format), problems
    of several kinds.
    """
    draws = np.random.default_rng(seed)
    harder = draws.uniform(0.6, 1.4, size=(problems, 1))
    found = np.empty((problems, len(points), 4))
    for run, (optimization, correctness, *form) in enumerate(points):
        failing = np.stack([optimization * harder[:, 0], correctness * (2 - harder[:, 0])], axis=1)
        without = np.full(problems, sum(form))
        chances = np.column_stack([1 - failing.sum(axis=1) - without, failing, without])
        found[:, run] = draws.multinomial(samples, chances) / samples
    return found


TRAINED = [(0.4, 0.1), (0.1, 0.4)]


@pytest.mark.parametrize(
    ("point", "exact"),
    [
        # At equal prices 0.25 for each of the trained ones; beyond both at the price of one failure alone; and behind.
        ((0.15, 0.15), 0.1),
        ((0.02, 0.5), 0.08),
        ((0.35, 0.35), -0.1),
        # Where there is no program there is neither failure.
        ((0.02, 0.5, 0.04), 0.04),
        ((0.01, 0.3, 0.4), -0.305),
    ],
)
def test_a_margin_is_by_how_much_a_point_lies_beyond_the_line(point: tuple[float, ...], exact: float) -> None:
    found = margin(shares([*TRAINED, point], 600, seed=1), [2], [0, 1], resamples=1000)
    assert found.mean == pytest.approx(exact, abs=0.03)
    assert found.low is not None and found.high is not None
    assert found.low < found.mean < found.high
    assert (found.low > 0) is (exact > 0) and (found.high < 0) is (exact < 0)


def test_the_best_of_many_points_on_the_line_is_not_told_to_lie_beyond_it() -> None:
    """Chosen and measured on the same problems it would be, on the average: the maximum of noise is above 0."""
    between = [(0.4 - 0.3 * step, 0.1 + 0.3 * step) for step in np.linspace(0.1, 0.9, 9)]
    found, lows, same = [], [], []
    for seed in range(40):
        values = shares([*TRAINED, *between], 60, seed)
        estimate = margin(values, range(2, 11), [0, 1], resamples=200, seed=seed)
        assert estimate.mean is not None and estimate.low is not None
        found.append(estimate.mean)
        lows.append(estimate.low)
        means = values[:, :, 1:3].mean(axis=(0, 2)) * 2
        same.append(means[:2].min() - means[2:].min())
    assert np.mean(same) > 0.01
    assert np.mean(found) < 0.003
    assert np.mean(np.array(lows) > 0) <= 0.1


def test_few_problems_have_no_margin_and_a_single_one_no_ellipse() -> None:
    values = shares([*TRAINED, (0.2, 0.2)], 3, seed=1)
    assert margin(values, [2], [0, 1]).mean is None
    assert margin(shares([*TRAINED, (0.2, 0.2)], 4, seed=1), [2], [0, 1]).mean is not None
    assert ellipses(values[:1]) == [None] * 3


def test_an_ellipse_holds_as_many_true_rates_as_it_says() -> None:
    held = []
    for seed in range(200):
        [found] = ellipses(values := shares([(0.3, 0.2)], 80, seed), resamples=300, seed=seed)
        assert found is not None
        off = values[:, 0, 1:3].mean(axis=0) - [0.3, 0.2]
        turn = np.radians(found.degrees)
        along, across = off @ [np.cos(turn), np.sin(turn)], off @ [-np.sin(turn), np.cos(turn)]
        held.append((along / found.width * 2) ** 2 + (across / found.height * 2) ** 2 <= 1)
    # Of 200 at 95 %: 3.3 standard deviations below and above.
    assert 0.89 <= np.mean(held) <= 1
    assert not all(held)
