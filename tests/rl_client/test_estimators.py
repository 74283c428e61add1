"""pass@k and fix@k against counting, and what they refuse."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

from rl_client.estimators import fix_at_k, pass_at_k


@pytest.mark.parametrize("samples", range(1, 8))
def test_pass_at_k_is_the_share_of_choices_that_hold_a_success(samples: int) -> None:
    for successes in range(samples + 1):
        for k in range(1, samples + 1):
            chosen = list(combinations([True] * successes + [False] * (samples - successes), k))
            assert pass_at_k(samples, successes, k) == float(Fraction(sum(map(any, chosen)), len(chosen)))


def test_pass_at_k_is_right_to_the_last_bit_for_many_samples() -> None:
    below = Fraction(1)
    for one in range(10_000 - 3 + 1, 10_001):
        below *= 1 - Fraction(500, one)
    assert pass_at_k(10_000, 3, 500) == float(1 - below)
    assert pass_at_k(10**6, 1, 1) == 1e-6


@pytest.mark.parametrize(("samples", "successes", "k"), [(10, 0, 25), (10, 10, 11), (5, 2, 0), (0, 0, 1)])
def test_more_tries_than_were_made_are_refused(samples: int, successes: int, k: int) -> None:
    with pytest.raises(ValueError, match=f"k is {k}"):
        pass_at_k(samples, successes, k)


@pytest.mark.parametrize(("samples", "successes"), [(3, 4), (3, -1)])
def test_successes_are_some_of_the_samples(samples: int, successes: int) -> None:
    with pytest.raises(ValueError, match="successes of 3 samples"):
        pass_at_k(samples, successes, 1)


def test_fix_at_k_is_the_mean_over_failures_whatever_their_numbers_of_repairs() -> None:
    assert fix_at_k([(4, 1), (2, 2), (8, 0)], 1) == pytest.approx((0.25 + 1 + 0) / 3)
    assert fix_at_k([(4, 1), (2, 2)], 2) == pytest.approx((0.5 + 1) / 2)
    with pytest.raises(ValueError, match="k is 3"):
        fix_at_k([(4, 1), (2, 2)], 3)
    with pytest.raises(ValueError, match="no failed program"):
        fix_at_k([], 1)
