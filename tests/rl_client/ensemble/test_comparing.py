"""Allocations, and the pool against its best checkpoint: on simulations of which the truth is known."""

from __future__ import annotations

import time

import numpy as np
import pytest

from rl_client.commands.evaluate_tables import shown
from rl_client.ensemble.allocating import exact, greedy, optimised, search_of, uniform
from rl_client.ensemble.comparing import SPLITS, compare
from rl_client.ensemble.coverage import Pool
from rl_client.ensemble.report import words_of
from rl_client.evaluate.statistics import Estimate, Floats


def coverage(rates: Floats, allocation: tuple[int, ...]) -> float:
    return float(1 - ((1 - rates) ** np.array(allocation)[:, None]).prod(axis=0).mean())


def test_uniform_is_the_same_of_each_and_what_is_left_over_of_the_first() -> None:
    assert (uniform(4, 10), uniform(3, 2)) == ((3, 3, 2, 2), (1, 1, 0))


def test_one_by_one_finds_what_all_that_are_tried_hold_but_for_little() -> None:
    rng = np.random.default_rng(3)
    lost = []
    for _ in range(40):
        rates, budget = rng.beta(0.4, 1.5, (int(rng.integers(2, 5)), 8)), int(rng.integers(1, 7))
        best, found = exact(rates, budget), greedy(rates, budget)
        assert sum(best) == sum(found) == budget
        lost.append(coverage(rates, best) - coverage(rates, found))
        assert lost[-1] >= -1e-12
    assert max(lost) < 0.01
    assert sum(one < 1e-9 for one in lost) >= 38
    assert (search_of(3, 10), search_of(9, 250)) == ("exact", "greedy")


def test_what_covers_nothing_more_is_given_evenly() -> None:
    """The second is no good; and two that are the same share what there is."""
    assert optimised(np.array([[0.5, 0.2], [0.0, 0.0]]), 6) == (6, 0)
    assert optimised(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), 6) == (2, 2, 2)
    assert greedy(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), 300) == (100, 100, 100)


def test_the_best_checkpoint_looks_too_good_on_the_problems_it_was_chosen_by() -> None:
    """Eight checkpoints that are the same: each is as good as each, and so is the pool."""
    rng = np.random.default_rng(5)
    seen, unseen, gains, truths = [], [], [], []
    for run in range(120):
        rates = np.tile(rng.beta(0.3, 1.5, 60), (8, 1))
        correct = rng.binomial(10, rates)
        found = compare(np.full_like(correct, 10), correct, 8, "uniform", 5, resamples=2, seed=run)
        truths.append(coverage(rates, (8,) + (0,) * 7))
        seen.append(found.best_seen.mean)
        unseen.append(found.best.mean)
        gains.append(found.gain.mean)
    true = np.array(truths)

    def bias(estimates: list[float | None], truth: Floats) -> float:
        """In standard errors."""
        off = np.array(estimates, dtype=float) - truth
        return float(off.mean() / (off.std() / np.sqrt(len(off))))

    assert bias(seen, true) > 10
    assert abs(bias(unseen, true)) < 3
    assert abs(bias(gains, np.zeros(120))) < 3


def test_checkpoints_that_solve_other_problems_gain_and_worse_ones_lose() -> None:
    rng = np.random.default_rng(11)
    apart = np.where(np.arange(300) % 3 == np.arange(3)[:, None], 0.3, 0.01)
    for rates, wins in ((apart, True), (np.repeat([[0.3], [0.001], [0.001]], 300, axis=1), False)):
        correct = rng.binomial(12, rates)
        found = compare(np.full_like(correct, 12), correct, 9, "uniform", 5, resamples=400)
        assert found.gain.low is not None
        assert found.gain.high is not None
        assert (found.gain.low > 0, found.gain.high < 0) == (wins, not wins)
        assert found.gain.mean == pytest.approx(found.pool.mean - found.best.mean, abs=1e-12)  # type: ignore[operator]
        best = compare(np.full_like(correct, 12), correct, 9, "optimised", 5, resamples=400)
        if not wins:
            assert (best.allocation, set(best.chosen)) == ((9, 0, 0), {0})
            assert best.gain == Estimate(0, 0, 0, 300)
    assert "not shown to cover more" in words_of(Estimate(0.01, -0.01, 0.02, 9), 5)
    assert words_of(Estimate(0.033, 0.01, 0.05, 9), 250) == (
        "the pool covers more than the best single checkpoint: +3.3 points of pass@250, between +1.0 and +5.0"
    )
    assert "covers less" in words_of(Estimate(-0.03, -0.05, -0.01, 9), 5)


def test_what_rounds_to_nothing_has_no_sign_of_less() -> None:
    assert words_of(Estimate(-0.0004, -0.01, -0.0, 9), 5).endswith(
        "nor less: 0.0 points of pass@5, between -1.0 and 0.0"
    )
    assert words_of(Estimate(-0.0006, -0.01, -0.0004, 9), 5).endswith("-0.1 points of pass@5, between -1.0 and 0.0")
    assert words_of(Estimate(-0.0004, -0.0004, -0.0001, 9), 5) == (
        "the pool covers as much as the best single checkpoint, to a tenth of a point of pass@5"
    )
    assert shown(Estimate(-0.0004, -0.0006, 0.0004, 9)) == "0.000 [-0.001, 0.000]"
    assert shown(Estimate(-0.0004, None, None, 1)) == "0.000"


def test_what_is_told_of_an_optimised_allocation_is_of_problems_that_it_was_not_chosen_by() -> None:
    """Of noise alone the chosen allocation looks better than any is."""
    rng = np.random.default_rng(2)
    correct = rng.binomial(6, np.tile(rng.beta(0.3, 1.5, 200), (4, 1)))
    samples = np.full_like(correct, 6)
    found = compare(samples, correct, 6, "optimised", 4, resamples=2, seed=1)
    assert found.fold_allocations is not None
    draws = np.random.default_rng(1)
    folds = [draws.permutation(200) % 4 for _ in range(SPLITS)]
    parts = [fold == number for fold in folds for number in range(4)]
    covered = 0.0
    for part, allocation in zip(parts, found.fold_allocations, strict=True):
        assert allocation == optimised((correct / samples)[:, ~part], 6)
        covered += Pool.of(samples, correct, 6).covered(allocation)[part].sum()
    assert found.pool.mean == pytest.approx(covered / 200 / SPLITS)
    assert found.pool.mean < Pool.of(samples, correct, 6).covered(found.allocation).mean()


@pytest.mark.parametrize("folds", [1, 4])
def test_problems_that_do_not_fill_the_folds_are_refused(folds: int) -> None:
    with pytest.raises(ValueError, match="3 problems cannot be in"):
        compare(np.full((2, 3), 2), np.ones((2, 3), dtype=int), 2, "uniform", folds)


def test_ten_thousand_resamples_of_a_thousand_problems_cost_little_more_than_their_draws() -> None:
    """They may take 2 s; drawing the ten million problems alone takes a share of that on any machine."""

    def seconds(work: object) -> float:
        start = time.perf_counter()
        assert callable(work)
        work()
        return time.perf_counter() - start

    correct = np.random.default_rng(0).binomial(50, 0.1, (9, 1000))
    drawing = min(seconds(lambda: np.random.default_rng(0).integers(1000, size=(10_000, 1000))) for _ in range(2))
    comparing = seconds(lambda: compare(np.full((9, 1000), 50), correct, 50, "uniform", 5))
    assert comparing < 40 * drawing, (comparing, drawing)
