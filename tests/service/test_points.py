"""The score: points of tests by the groups of their problem, in each way of scoring, and where it stays open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from sandbox.verdicts import FAULT_VERDICTS, LIMIT_VERDICTS, Verdict
from service import contract
from service.points import Award, Plan, award, plan


@dataclass(frozen=True)
class Judged:
    index: int
    verdict: Verdict
    score: float | None = None


ACCEPTED, WRONG, SKIPPED = Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.SKIPPED


def planned(*tests: tuple[float | None, str | None], **groups: dict[str, Any]) -> Plan | None:
    """Tests of (points, group); `groups` as on the wire."""
    return plan(
        contract.PROBLEMS.validate_python(
            {
                "kind": "stdio",
                "tests": [{"input": "", "output": "", "points": points, "group": group} for points, group in tests],
                "groups": groups,
            }
        )
    )


def earned(plan: Plan | None, *results: Verdict | float, ran: bool = True) -> Award:
    """What the results earn, in the order of the tests; a number is a checker's score for an accepted test."""
    assert plan is not None
    tests = [
        Judged(index, one) if isinstance(one, Verdict) else Judged(index, ACCEPTED, one)
        for index, one in enumerate(results)
    ]
    return award(plan, tests, ran=ran)


def rows(award: Award) -> list[tuple[str | None, float | None, float]]:
    return [(one.part.name, one.points, one.max_points) for one in award.parts]


def test_a_problem_without_points_has_no_plan() -> None:
    assert planned((None, None), (None, None)) is None


def test_tests_outside_groups_are_summed_and_those_without_points_change_nothing() -> None:
    by_itself = planned((None, None), (10, None), (20.5, None))

    result = earned(by_itself, WRONG, ACCEPTED, ACCEPTED)

    assert (result.score, rows(result)) == (30.5, [(None, 30.5, 30.5)])
    assert earned(by_itself, ACCEPTED, WRONG, ACCEPTED).score == 20.5


def test_a_sum_group_adds_up_and_a_min_group_earns_what_its_worst_test_does() -> None:
    both = planned((10, "s"), (30, "s"), (40, "m"), (40, "m"), (1, None), s={"scoring": "sum"}, m={"scoring": "min"})

    result = earned(both, ACCEPTED, WRONG, ACCEPTED, ACCEPTED, ACCEPTED)
    assert (result.score, rows(result)) == (51, [("s", 10, 40), ("m", 40, 40), (None, 1, 1)])

    result = earned(both, ACCEPTED, ACCEPTED, ACCEPTED, Verdict.TIME_LIMIT, WRONG)
    assert (result.score, rows(result)) == (40, [("s", 40, 40), ("m", 0, 40), (None, 0, 1)])


def test_a_checkers_share_counts_for_accepted_and_for_wrong_answers() -> None:
    both = planned((10, "s"), (30, "s"), (40, "m"), (40, "m"), s={"scoring": "sum"}, m={"scoring": "min"})
    assert both is not None

    result = award(
        both,
        [Judged(0, ACCEPTED, 0.5), Judged(1, WRONG, 0.1), Judged(2, ACCEPTED, 0.75), Judged(3, ACCEPTED, 0.25)],
    )

    assert rows(result) == [("s", pytest.approx(8.0), 40), ("m", 10, 40)]


@pytest.mark.parametrize(("said", "points"), [(1.5, 10), (-1.0, 0), (float("nan"), 0), (float("inf"), 10), (0.0, 0)])
def test_a_share_is_held_within_its_bounds(said: float, points: float) -> None:
    assert earned(planned((10, None)), said).score == points


@pytest.mark.parametrize("verdict", sorted({*LIMIT_VERDICTS, Verdict.RUNTIME_ERROR}))
def test_failures_that_no_checker_saw_earn_nothing(verdict: Verdict) -> None:
    by_itself = planned((10, None))
    assert by_itself is not None

    assert award(by_itself, [Judged(0, verdict, 1.0)]).score == 0


def test_a_group_earns_only_where_all_that_it_depends_on_is_passed_whole() -> None:
    chain = planned(
        (1, "a"),
        (2, "b"),
        (4, "c"),
        (8, "d"),
        a={"scoring": "sum"},
        b={"scoring": "min", "depends": ["a"]},
        c={"scoring": "sum", "depends": ["b"]},
        d={"scoring": "sum"},
    )

    assert earned(chain, ACCEPTED, ACCEPTED, ACCEPTED, ACCEPTED).score == 15
    # c depends on a by way of b.
    assert earned(chain, WRONG, ACCEPTED, ACCEPTED, ACCEPTED).score == 8
    assert earned(chain, 0.5, ACCEPTED, ACCEPTED, ACCEPTED).score == 8.5
    assert earned(chain, ACCEPTED, WRONG, ACCEPTED, ACCEPTED).score == 9


def test_a_group_of_no_worth_is_still_to_be_passed() -> None:
    samples = planned(
        (0, "samples"), (9, "rest"), samples={"scoring": "sum"}, rest={"scoring": "sum", "depends": ["samples"]}
    )

    assert earned(samples, ACCEPTED, ACCEPTED).score == 9
    assert earned(samples, WRONG, ACCEPTED).score == 0


@pytest.mark.parametrize("fault", sorted(FAULT_VERDICTS))
def test_a_fault_of_the_grader_leaves_everything_unknown(fault: Verdict) -> None:
    result = earned(planned((10, "g"), (None, None), (5, None), g={"scoring": "sum"}), ACCEPTED, fault, ACCEPTED)

    assert (result.score, rows(result)) == (None, [("g", None, 10), (None, None, 5)])


def test_skipped_tests_leave_open_only_what_they_could_change() -> None:
    both = planned((10, "s"), (10, "s"), (40, "m"), (40, "m"), s={"scoring": "sum"}, m={"scoring": "min"})

    result = earned(both, ACCEPTED, ACCEPTED, WRONG, SKIPPED)
    assert (result.score, rows(result)) == (20, [("s", 20, 20), ("m", 0, 40)])

    result = earned(both, WRONG, SKIPPED, ACCEPTED, ACCEPTED)
    assert (result.score, rows(result)) == (None, [("s", None, 20), ("m", 40, 40)])


def test_without_a_program_nothing_is_earned_and_nothing_is_open() -> None:
    result = earned(planned((10, "g"), (5, None), g={"scoring": "min"}), SKIPPED, SKIPPED, ran=False)

    assert (result.score, rows(result)) == (0, [("g", 0, 10), (None, 0, 5)])


def test_results_in_any_order_and_rows_of_the_wire_are_taken() -> None:
    two = planned((10, None), (5, None))
    assert two is not None
    wire = [
        contract.TestRow(index=1, input_length=0, verdict=ACCEPTED),
        contract.TestRow(index=0, input_length=0, verdict=WRONG),
    ]

    assert award(two, wire).score == 5


@pytest.mark.parametrize("indexes", [[], [0], [0, 0], [0, 2], [0, 1, 2]])
def test_results_of_another_problem_are_refused(indexes: list[int]) -> None:
    two = planned((10, None), (5, None))
    assert two is not None

    with pytest.raises(ValueError, match="not the tests"):
        award(two, [Judged(index, ACCEPTED) for index in indexes])
