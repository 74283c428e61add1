"""Estimates over problems: against what is known of the mean's distribution, and what they cost."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from rl_client.evaluate.statistics import Estimate, estimates, resampled_means


def test_an_interval_is_that_of_all_ways_to_draw_the_problems() -> None:
    """Of four problems there are 256 draws, all as likely: their quantiles are known exactly."""
    values = np.array([0.0, 0.1, 0.4, 1.0])
    every = sorted(np.mean(draw) for draw in itertools.product(values, repeat=4))
    [found] = estimates(values[:, None], resamples=40_000)
    assert (found.mean, found.problems) == (pytest.approx(0.375), 4)
    for bound, share in ((found.low, 0.025), (found.high, 0.975)):
        near = (np.quantile(every, share - 0.008), np.quantile(every, share + 0.008))
        assert bound is not None
        assert near[0] - 1e-9 <= bound <= near[1] + 1e-9


def test_metrics_that_a_problem_does_not_have_are_left_out() -> None:
    nan = float("nan")
    values = np.array([[1.0, nan, nan, nan], [0.0, 0.5, nan, nan], [0.5, 0.5, 0.25, nan]])
    first, second, single, third = estimates(values)
    assert (first.mean, first.problems) == (0.5, 3)
    assert second == Estimate(0.5, 0.5, 0.5, 2)
    assert single == Estimate(0.25, None, None, 1)
    assert third == Estimate(None, None, None, 0)


def test_columns_are_paired_by_problem_and_draws_by_their_seed() -> None:
    one = np.random.default_rng(1).random(50)
    means = resampled_means(np.stack([one, one + 0.25], axis=1), resamples=500)
    assert np.allclose(means[:, 1] - means[:, 0], 0.25)
    assert np.array_equal(means, resampled_means(np.stack([one, one + 0.25], axis=1), resamples=500))


@pytest.mark.parametrize("shape", [(0, 2), (3,)])
def test_no_problems_have_no_mean(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"values are \[problems, metrics\]"):
        resampled_means(np.zeros(shape))


def test_ten_thousand_resamples_of_a_thousand_problems_cost_little_more_than_their_draws() -> None:
    """It may take 2 s; drawing the ten million problems alone takes a share of that on any machine."""

    def seconds(work: object) -> float:
        start = time.perf_counter()
        assert callable(work)
        work()
        return time.perf_counter() - start

    values = np.random.default_rng(0).random((1000, 16))
    drawing = min(seconds(lambda: np.random.default_rng(0).integers(1000, size=(10_000, 1000))) for _ in range(3))
    estimating = min(seconds(lambda: estimates(values)) for _ in range(3))
    assert estimating < 20 * drawing, (estimating, drawing)
