"""pass@K of a pool: against enumeration, exact fractions, and what is true of a simulation."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from rl_client.ensemble.coverage import Pool


def test_it_is_the_share_of_all_ways_to_draw_the_samples() -> None:
    """Of each checkpoint every subset of its samples, joined with every one of the others."""
    samples, correct = (5, 4, 3), (2, 0, 1)
    pool = Pool.of(np.array(samples)[:, None], np.array(correct)[:, None], 3)
    for allocation in itertools.product(range(4), repeat=3):
        subsets = [itertools.combinations(range(n), k) for n, k in zip(samples, allocation, strict=True)]
        # Samples below c are the correct ones.
        hits = [
            any(one < c for subset, c in zip(draw, correct, strict=True) for one in subset)
            for draw in itertools.product(*subsets)
        ]
        assert pool.covered(allocation) == pytest.approx([sum(hits) / len(hits)], abs=1e-15), allocation


def test_it_is_as_exact_for_many_samples() -> None:
    samples, budget = 10_000, 400
    correct = np.array([0, 1, 7, 5_000, 9_600, 9_601, 10_000])
    pool = Pool.of(np.full((2, len(correct)), samples), np.stack([correct, correct]), budget)
    for half, others in ((budget, 0), (150, 250)):
        for found, c in zip(pool.covered([half, others]), map(int, correct), strict=True):
            misses = Fraction(1)
            for k in (half, others):
                misses *= Fraction(math.comb(samples - c, k), math.comb(samples, k))
            assert found == pytest.approx(float(1 - misses), rel=1e-12)


def test_it_has_no_bias_and_what_puts_rates_in_has_one() -> None:
    rng = np.random.default_rng(7)
    rates, allocation, n = np.array([[0.02, 0.1, 0.0], [0.05, 0.0, 0.2]]), (4, 6), 10
    truth = 1 - ((1 - rates) ** np.array(allocation)[:, None]).prod(axis=0)
    # A problem for each rate and draw.
    correct = rng.binomial(n, np.repeat(rates, 20_000, axis=1))
    covered = Pool.of(np.full_like(correct, n), correct, 6).covered(allocation).reshape(3, -1)
    plugged = 1 - ((1 - correct / n) ** np.array(allocation)[:, None]).prod(axis=0).reshape(3, -1)
    error = covered.std(axis=1) / math.sqrt(covered.shape[1])
    assert (np.abs(covered.mean(axis=1) - truth) < 4 * error).all()
    assert (truth - plugged.mean(axis=1) > 4 * error).all()


@pytest.mark.parametrize(
    ("samples", "correct", "budget", "message"),
    [
        ([[4, 3]], [[1, 1]], 4, "the budget is 4: with 3 samples"),
        ([[4, 3]], [[1, 1]], 0, "the budget is 0"),
        ([[4, 3]], [[1, 4]], 2, "correct samples are between"),
        ([[4, 3]], [[1, -1]], 2, "correct samples are between"),
        ([[4, 3]], [[1]], 2, r"\[checkpoints, problems\] are \[1, 2\] and \[1, 1\]"),
        (np.zeros((2, 0)), np.zeros((2, 0)), 1, r"\[checkpoints, problems\]"),
    ],
)
def test_what_is_no_samples_is_refused(samples: object, correct: object, budget: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Pool.of(np.array(samples), np.array(correct), budget)


@pytest.mark.parametrize("allocation", [(3, 0), (-1, 1), (1,), (1, 1, 0)])
def test_more_samples_of_a_checkpoint_than_there_are_are_refused(allocation: tuple[int, ...]) -> None:
    pool = Pool.of(np.full((2, 1), 2), np.ones((2, 1), dtype=int), 2)
    with pytest.raises(ValueError, match="is no allocation of 2 to 2 checkpoints"):
        pool.covered(allocation)
