"""Rewards against their formulas, and what none of them does with faults of the grader and with empty groups."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_client.errors import FaultyGrade
from rl_client.rewards import (
    Empty,
    Reward,
    collapsed,
    combined,
    fraction,
    is_fault,
    is_provoked,
    ladder,
    log_progress,
    on_fault,
    penalized,
    r_inf,
    r_k,
    scaled,
    signed,
    speed,
    two_gate,
)
from service.contract import GradeResult, Verdict
from tests.rl_client.results import graded, provoked, unrun

AC = Verdict.ACCEPTED
WA = Verdict.WRONG_ANSWER
TLE = Verdict.TIME_LIMIT
SKIP = Verdict.SKIPPED
FAULT = Verdict.INTERNAL_ERROR

SMALL_ONLY = graded((3, AC), (50, AC), (5000, TLE))
RIGHT = graded((3, AC), (50, AC), (5000, AC))
WRONG = graded((3, WA), (50, AC), (5000, AC))
FAULTY = graded((3, AC), (50, FAULT), (5000, AC))
PROVOKED = provoked(3, 50, 5000)
NOT_COMPILED = unrun("compile_error", 3, 50, 5000)
NO_PROGRAM = unrun("format_error", 3, 50, 5000)

LADDER = ladder({1: 0.25, 2: 0.25, "inf": 0.5})
EVERY = [r_k(2), r_inf, LADDER, fraction, log_progress, two_gate(), collapsed()]


def of(reward: Reward, *results: GradeResult) -> list[float | None]:
    return [reward(result) for result in results]


def test_r_k_asks_for_every_test_shorter_than_ten_to_the_k() -> None:
    assert [r_k(k)(SMALL_ONLY) for k in (1, 2, 3, 4, 5, 9)] == [1, 1, 1, 0, 0, 0]
    assert of(r_inf, RIGHT, SMALL_ONLY, WRONG, NOT_COMPILED, NO_PROGRAM) == [1, 0, 0, 0, 0]
    assert r_k(9)(RIGHT) == 1


@pytest.mark.parametrize(("empty", "value"), [("skip", None), ("next", 1), (0.5, 0.5), (0, 0)])
def test_an_empty_group_comes_to_what_is_asked_for(empty: Empty, value: float | None) -> None:
    result = graded((150, AC), (1500, WA))
    assert r_k(1, empty=empty)(result) == value
    assert r_k(3, empty=empty)(result) == 1
    whole = ladder({2: 0.5, "inf": 0.5}, empty=empty)(result)
    assert whole == (None if value is None else value / 2)


@pytest.mark.parametrize("empty", ["skip", "next", 0.5])
def test_no_policy_for_empty_groups_is_one_for_faults(empty: Empty) -> None:
    faulty = graded((150, AC), (1500, FAULT))
    assert r_k(1, empty=empty)(faulty) is None
    assert ladder({1: 1.0}, empty=empty)(faulty) is None


def test_an_empty_group_is_as_empty_where_nothing_ran() -> None:
    assert r_k(1)(unrun("compile_error", 150)) is None
    assert r_k(1, empty="next")(unrun("compile_error", 150)) == 0
    assert r_k(1)(provoked(150)) is None


def test_a_ladder_adds_up_the_rungs_that_were_reached() -> None:
    assert of(LADDER, RIGHT, SMALL_ONLY, WRONG, NO_PROGRAM) == [1.0, 0.5, 0.0, 0.0]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({}, "needs a weight"),
        ({0: 1.0}, "from 1 on"),
        ({True: 1.0}, "from 1 on"),
        ({1: 0.5}, "add up to 0.5, not to 1"),
        ({1: 1.5, 2: -0.5}, "not between 0 and 1"),
        ({1: math.nan}, "not between 0 and 1"),
    ],
)
def test_a_ladder_that_is_none(weights: dict[int, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ladder(weights)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [0, -1, True, 1.5, "3"])
def test_a_k_that_is_none(k: object) -> None:
    with pytest.raises(ValueError, match="whole number from 1 on"):
        r_k(k)  # type: ignore[arg-type]


def test_fraction_counts_tests_and_refuses_those_that_were_skipped() -> None:
    assert of(fraction, RIGHT, WRONG, NOT_COMPILED, NO_PROGRAM) == [1.0, 2 / 3, 0.0, 0.0]
    with pytest.raises(ValueError, match="fraction needs every test"):
        fraction(graded((3, AC), (50, WA), (5000, SKIP)))
    with pytest.raises(ValueError, match="needs every test"):
        signed(combined((1.0, r_inf), (0.1, fraction)))(graded((3, WA), (50, SKIP)))


def test_log_progress_goes_by_what_was_passed() -> None:
    assert of(log_progress, RIGHT, WRONG, NO_PROGRAM) == [1.0, 0.0, 0.0]
    assert log_progress(SMALL_ONLY) == pytest.approx(math.log(51) / math.log(5001))
    assert log_progress(graded((3, AC), (50, WA), (5000, SKIP))) == pytest.approx(math.log(4) / math.log(5001))
    assert log_progress(graded((0, AC), (0, WA))) == 0.0
    assert log_progress(graded((0, AC))) == 1.0


def test_speed_runs_from_no_time_to_the_limit() -> None:
    fast, slow = (graded((3, AC), (50, AC), cpu_s=(0.02, cpu_s)) for cpu_s in (0.1, 2.5))
    assert speed(fast) == pytest.approx(1 - 2 * 0.1 / 2)
    assert speed(slow) == -1
    assert speed(fast, reference_s=0.2) == pytest.approx(0.0)
    assert speed(fast, reference_s=0.22, startup_s=0.02) == pytest.approx(1 - 2 * 0.08 / 0.2)
    assert speed(fast, startup_s=0.5) == 1
    with pytest.raises(ValueError, match="leaves nothing"):
        speed(fast, startup_s=2.0)
    with pytest.raises(ValueError, match="give `reference_s`"):
        speed(fast.model_copy(update={"limits": None}))
    with pytest.raises(ValueError, match="no CPU time"):
        speed(NO_PROGRAM)


def test_two_gates_and_the_collapsed_form() -> None:
    """By the formulas as they stand, for c of -1 and 1."""
    right = graded((3, AC), cpu_s=(0.5,))
    g = speed(right)
    for c, result in ((1, right), (-1, WRONG), (-1, NOT_COMPILED), (-1, PROVOKED)):
        assert two_gate()(result) == pytest.approx((1 + c) * (1 + g) / 4 - (1 - c) / 2)
        assert collapsed()(result) == pytest.approx((1 + c) * (1 + g) / 2 - 1)
    assert two_gate(gate=r_k(2), reference_s=10.0)(SMALL_ONLY) == pytest.approx((1 + (1 - 2 * 0.01 / 10)) / 2)
    with pytest.raises(ValueError, match="more than the start-up"):
        two_gate(reference_s=0.1, startup_s=0.1)
    with pytest.raises(ValueError, match="not a time"):
        collapsed(startup_s=-1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e39])
@pytest.mark.parametrize(
    "made",
    [
        lambda value: r_k(3, empty=value),
        lambda value: ladder({"inf": 1.0}, empty=value),
        lambda value: scaled(r_inf, 0.0, value),
        lambda value: scaled(r_inf, value, 0.0),
        lambda value: penalized(r_inf, format_error=value),
        lambda value: penalized(r_inf, compile_error=value),
        lambda value: on_fault(r_inf, value),
    ],
)
def test_what_is_no_number_to_a_trainer_is_no_reward(made: Callable[[float], Reward], value: float) -> None:
    with pytest.raises(ValueError, match=r"not finite|is no reward"):
        made(value)


def test_scaling() -> None:
    assert of(signed(r_inf), RIGHT, WRONG, FAULTY) == [1, -1, None]
    assert of(scaled(r_inf, 0.1, 0.9), RIGHT, WRONG, FAULTY) == pytest.approx([0.9, 0.1, None])
    assert signed(r_k(3)).name == "signed(r_k:3)"


def test_open_r1s_weighted_sum() -> None:
    weighted_sum = combined((1.0, r_inf), (0.1, fraction))
    assert of(weighted_sum, RIGHT, SMALL_ONLY, FAULTY) == [pytest.approx(1.1), pytest.approx(0.2 / 3), None]
    with pytest.raises(ValueError, match="nothing to combine"):
        combined()


def test_penalties_take_the_place_of_the_reward() -> None:
    reward = penalized(signed(r_inf), format_error=-2.0, compile_error=-1.5)
    assert of(reward, RIGHT, WRONG, NOT_COMPILED, NO_PROGRAM, FAULTY) == [1, -1, -1.5, -2.0, None]
    assert of(penalized(r_inf, format_error=-1.0), NOT_COMPILED, NO_PROGRAM) == [0, -1.0]
    assert penalized(r_inf).name == "r_inf"


def test_a_fault_comes_to_what_is_asked_for_and_never_to_0_by_itself() -> None:
    for reward in EVERY:
        assert reward(FAULTY) is None
        assert on_fault(reward, "skip")(FAULTY) is None
        assert on_fault(reward, 0.25)(FAULTY) == 0.25
        with pytest.raises(FaultyGrade, match="internal_error"):
            on_fault(reward, "retry")(FAULTY)
        assert on_fault(reward, "retry")(WRONG) == reward(WRONG)
    with pytest.raises(ValueError, match="skip, retry or a number"):
        on_fault(r_inf, "zero")  # type: ignore[arg-type]


def test_breaking_a_checker_is_worth_what_failing_every_test_is() -> None:
    fails = graded((3, WA), (50, WA), (5000, WA))
    assert (is_provoked(PROVOKED), is_fault(PROVOKED), is_fault(FAULTY)) == (True, False, True)
    for reward in [
        *EVERY,
        signed(r_k(1)),
        penalized(signed(LADDER), format_error=-3),
        on_fault(signed(r_inf), "retry"),
    ]:
        assert reward(PROVOKED) == reward(fails)


# ---------------------------------------------------------------------------------------------------------------
# Whatever the tests came to

verdicts = st.sampled_from([AC, AC, AC, WA, TLE, Verdict.RUNTIME_ERROR, Verdict.MEMORY_LIMIT])
suites = st.lists(st.tuples(st.integers(0, 10**6), verdicts), min_size=1, max_size=12).map(lambda all: graded(*all))


@given(suites)
def test_every_measure_of_correctness_lies_between_0_and_1_and_is_1_for_right_programs_alone(
    result: GradeResult,
) -> None:
    for reward in (r_inf, fraction, log_progress, ladder({2: 0.5, "inf": 0.5}, empty="next")):
        value = reward(result)
        assert value is not None
        assert 0 <= value <= 1
        assert (value == 1) == (result.category == "correct")


@given(suites)
def test_r_k_does_not_increase_with_k_and_ends_in_r_inf(result: GradeResult) -> None:
    values = [r_k(k, empty=1.0)(result) for k in range(1, 9)]
    assert values == sorted(values, key=lambda value: -(value or 0))
    assert values[-1] == r_inf(result)


@given(suites)
def test_r_k_is_told_by_the_first_failure(result: GradeResult) -> None:
    first = math.inf if result.first_failure_length is None else result.first_failure_length
    for group in result.groups:
        if group.tests:
            assert r_k(group.k)(result) == (first >= 10**group.k)


@given(suites, st.integers(0, 11))
def test_passing_one_more_test_never_costs_anything(result: GradeResult, which: int) -> None:
    pairs = [(test.input_length, test.verdict) for test in result.tests]
    index = which % len(pairs)
    better = graded(*pairs[:index], (pairs[index][0], AC), *pairs[index + 1 :])
    for reward in (r_k(2, empty="next"), r_inf, fraction, log_progress, LADDER_NEXT, two_gate()):
        before, after = reward(result), reward(better)
        assert before is not None
        assert after is not None
        assert after >= before


@given(suites, st.integers(0, 11))
def test_one_fault_of_the_grader_leaves_no_reward(result: GradeResult, which: int) -> None:
    pairs = [(test.input_length, test.verdict) for test in result.tests]
    index = which % len(pairs)
    faulty = graded(*pairs[:index], (pairs[index][0], FAULT), *pairs[index + 1 :])
    assert of_all(faulty) == [None] * len(EVERY)


@given(suites)
def test_stopping_at_the_first_failure_changes_no_reward_that_allows_it(result: GradeResult) -> None:
    ordered = sorted(result.tests, key=lambda test: (test.input_length, test.index))
    failed = next((at for at, test in enumerate(ordered) if test.verdict is not AC), len(ordered))
    behind = {test.index for test in ordered[failed + 1 :]}
    stopped = graded(*((t.input_length, SKIP if t.index in behind else t.verdict) for t in result.tests))
    for reward in EVERY:
        if not reward.needs_every_test:
            assert reward(stopped) == reward(result)


def of_all(result: GradeResult) -> list[float | None]:
    return [reward(result) for reward in EVERY]


LADDER_NEXT = ladder({1: 0.25, 3: 0.25, "inf": 0.5}, empty="next")
