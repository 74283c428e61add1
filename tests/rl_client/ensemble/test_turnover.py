"""Who solves what, what chance alone makes of it, and verdicts that are not the same the next time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rl_client.ensemble.flakiness import Flakiness
from rl_client.ensemble.turnover import Turnover, only
from rl_client.evaluate.rows import Grade
from service.contract import Category


def test_turnover_of_three_checkpoints() -> None:
    correct = np.array([[2, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    found = Turnover.of(np.full_like(correct, 2), correct)
    assert found.jaccard[:2, :2].tolist() == [[1, 0.5], [0.5, 1]]
    assert found.jaccard[2, :2].tolist() == [0, 0]
    assert np.isnan(found.jaccard[2, 2])
    assert np.isnan(found.jaccard_by_chance[2, 2])
    assert found.not_by.tolist() == [[0, 1, 2], [0, 0, 1], [0, 0, 0]]


def test_chance_is_that_of_all_ways_to_deal_the_samples_out() -> None:
    samples, correct = np.array([[3, 2], [2, 3], [1, 1]]), np.array([[2, 0], [0, 1], [0, 0]])
    shares, alone = [], 0.0
    for problem in range(2):
        n, c = samples[:, problem], correct[:, problem]
        # Of the first two checkpoints alone, then of all three: which samples are the correct ones.
        deals = list(itertools.combinations(range(n[:2].sum()), c[:2].sum()))
        shares.append(sum(min(deal) < n[0] <= max(deal) for deal in deals) / len(deals))
        deals = list(itertools.combinations(range(n.sum()), c.sum()))
        alone += sum(n[0] <= min(deal) and max(deal) < n[:2].sum() for deal in deals) / len(deals)
    assert Turnover.of(samples, correct).jaccard_by_chance[0, 1] == pytest.approx(np.mean(shares))
    flags, by_chance = only(samples, correct, [False, True, False])
    assert (flags.tolist(), by_chance) == ([False, True], pytest.approx(alone))


def grade(name: str, category: Category | None, seconds: float, problem: str = "p") -> Grade:
    verdict = {"correct": "accepted", "correctness_failure": "wrong_answer", None: "internal_error"}.get(
        category, "time_limit"
    )
    return Grade(
        grade=name,
        problem_id=problem,
        key=problem,
        verdict=verdict,
        category=category,
        rewards={"R_inf": float(category == "correct")},
        tests=1,
        passed=int(category == "correct"),
        seconds=seconds,
        grader="1",
    )


def test_programs_that_were_run_more_than_once_tell_how_flaky_verdicts_are() -> None:
    grades = [
        grade("same", "correct", 1.0),
        grade("same", "correct", 1.1),
        grade("copied", "correct", 1.0),
        grade("copied", "correct", 1.0),
        grade("fault", "correct", 1.0),
        grade("fault", None, 2.0),
        grade("fails", "correctness_failure", 1.0),
        grade("fails", "optimization_failure", 1.0),
        grade("flips", "correct", 1.0, "q"),
        grade("flips", "optimization_failure", 1.0, "q"),
        grade("flips", "correct", 1.2, "q"),
        grade("none", "format_error", 1.0),
        grade("none", "format_error", 1.1),
        grade("known", "correct", 1.0),
        grade("known", "correct", 0.1).model_copy(update={"cached": True}),
        grade("elsewhere", "correct", 1.0, "r"),
        grade("elsewhere", "optimization_failure", 1.0, "r"),
    ]
    assert Flakiness.of(grades, {"p", "q"}) == Flakiness(
        programs=3, gradings=7, known=1, differing=2, flipping=1, rate=2 / 3, flip_rate=1 / 3, problem_ids=("q",)
    )
    nothing = Flakiness.of([grades[0], grades[2], grades[3]], {"p"})
    assert (nothing.programs, nothing.rate, nothing.flip_rate) == (0, None, None)
