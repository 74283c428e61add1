"""R_k, groups, the three rules and the submission's verdict, against their definitions."""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass

import pytest

from sandbox.verdicts import FAULT_VERDICTS, LIMIT_VERDICTS, Verdict
from service.contract import Category, Taxonomy
from service.scoring import Group, Score, score, score_unrun

AC = Verdict.ACCEPTED
WA = Verdict.WRONG_ANSWER
TLE = Verdict.TIME_LIMIT
MLE = Verdict.MEMORY_LIMIT
OLE = Verdict.OUTPUT_LIMIT
IDLE = Verdict.IDLE
RE = Verdict.RUNTIME_ERROR
CHECKER = Verdict.CHECKER_ERROR
INTERNAL = Verdict.INTERNAL_ERROR
SKIP = Verdict.SKIPPED

ALL_RULES: tuple[Taxonomy, ...] = ("first_failure", "any_wrong", "strict")


@dataclass(frozen=True)
class Judged:
    index: int
    input_length: int
    verdict: Verdict


def judge(*pairs: tuple[int, Verdict]) -> list[Judged]:
    return [Judged(index, length, verdict) for index, (length, verdict) in enumerate(pairs)]


def test_everything_accepted_is_correct() -> None:
    assert score(judge((4, AC), (40, AC)), "first_failure") == Score(
        verdict=AC,
        category="correct",
        first_failure_length=None,
        rewards={"R_1": 1, "R_2": 1, "R_inf": 1},
        groups=(
            Group(1, tests=1, passed=1, failed=0, skipped=0),
            Group(2, tests=2, passed=2, failed=0, skipped=0),
        ),
    )


def test_a_program_too_slow_for_large_inputs_keeps_the_rewards_of_small_ones() -> None:
    assert score(judge((2000, TLE), (3, AC), (120, AC), (90_000, WA)), "first_failure") == Score(
        verdict=TLE,
        category="optimization_failure",
        first_failure_length=2000,
        rewards={"R_1": 1, "R_2": 1, "R_3": 1, "R_4": 0, "R_5": 0, "R_inf": 0},
        groups=(
            Group(1, tests=1, passed=1, failed=0, skipped=0),
            Group(2, tests=1, passed=1, failed=0, skipped=0),
            Group(3, tests=2, passed=2, failed=0, skipped=0),
            Group(4, tests=3, passed=2, failed=1, skipped=0),
            Group(5, tests=4, passed=2, failed=2, skipped=0),
        ),
    )


def test_an_empty_group_is_no_free_reward() -> None:
    assert score(judge((150, AC)), "first_failure").rewards == {
        "R_1": None,
        "R_2": None,
        "R_3": 1,
        "R_inf": 1,
    }
    assert score(judge((150, WA)), "first_failure").rewards == {
        "R_1": None,
        "R_2": None,
        "R_3": 0,
        "R_inf": 0,
    }


@pytest.mark.parametrize(
    ("length", "rewards"),
    [
        (0, {"R_1": 0, "R_inf": 0}),
        (9, {"R_1": 0, "R_inf": 0}),
        (10, {"R_1": None, "R_2": 0, "R_inf": 0}),
        (99, {"R_1": None, "R_2": 0, "R_inf": 0}),
        (100, {"R_1": None, "R_2": None, "R_3": 0, "R_inf": 0}),
    ],
)
def test_a_length_of_exactly_ten_to_the_k_is_outside_group_k(length: int, rewards: dict[str, int | None]) -> None:
    assert score(judge((length, WA)), "first_failure").rewards == rewards


def test_rewards_come_in_ascending_order_with_the_whole_last() -> None:
    assert list(score(judge((10**11, AC)), "first_failure").rewards) == [
        *(f"R_{k}" for k in range(1, 13)),
        "R_inf",
    ]


def test_the_first_failure_is_the_shortest_and_among_equals_the_one_that_stands_first() -> None:
    result = score(judge((50, RE), (7, TLE), (7, WA), (3, AC)), "first_failure")

    assert (result.verdict, result.first_failure_length) == (TLE, 7)


@pytest.mark.parametrize(
    ("verdicts", "first_failure", "any_wrong", "strict"),
    [
        # The examples of the field: lengths ascend from left to right.
        ([AC, WA, TLE], "correctness", "correctness", "correctness"),
        ([AC, TLE, WA], "optimization", "correctness", "correctness"),
        ([AC, AC, TLE], "optimization", "optimization", "optimization"),
        ([AC, TLE, AC], "optimization", "optimization", "optimization"),
        ([TLE, TLE, TLE], "optimization", "optimization", "correctness"),
        ([TLE, AC, TLE], "optimization", "optimization", "correctness"),
        ([AC, MLE, TLE], "optimization", "optimization", "optimization"),
        ([AC, AC, IDLE], "optimization", "optimization", "optimization"),
        ([AC, AC, OLE], "optimization", "optimization", "optimization"),
        ([AC, AC, RE], "correctness", "correctness", "correctness"),
        ([AC, MLE, RE], "optimization", "correctness", "correctness"),
        ([RE, TLE, MLE], "correctness", "correctness", "correctness"),
    ],
)
def test_category_by_rule(verdicts: list[Verdict], first_failure: str, any_wrong: str, strict: str) -> None:
    judged = judge(*zip((5, 50, 500), verdicts, strict=True))

    assert {rule: score(judged, rule).category for rule in ALL_RULES} == {
        "first_failure": f"{first_failure}_failure",
        "any_wrong": f"{any_wrong}_failure",
        "strict": f"{strict}_failure",
    }


def test_the_strict_rule_asks_for_a_strictly_shorter_accepted_test() -> None:
    assert score(judge((5, AC), (5, TLE)), "strict").category == "correctness_failure"
    assert score(judge((5, TLE), (4, AC)), "strict").category == "optimization_failure"


@pytest.mark.parametrize("rule", ALL_RULES)
@pytest.mark.parametrize("fault", sorted(FAULT_VERDICTS))
def test_a_fault_of_the_grader_makes_all_rewards_null_even_those_already_settled(
    fault: Verdict, rule: Taxonomy
) -> None:
    assert score(judge((3, AC), (30, WA), (40, fault)), rule) == Score(
        verdict=fault,
        category=None,
        first_failure_length=None,
        rewards={"R_1": None, "R_2": None, "R_inf": None},
        groups=(
            Group(1, tests=1, passed=1, failed=0, skipped=0),
            Group(2, tests=3, passed=1, failed=1, skipped=0),
        ),
    )


def test_a_fault_may_have_skipped_the_rest() -> None:
    result = score(judge((3, INTERNAL), (30, SKIP), (40, CHECKER)), "strict")

    assert (result.verdict, result.category) == (INTERNAL, None)
    assert result.groups[-1] == Group(2, tests=3, passed=0, failed=0, skipped=1)


def test_tests_skipped_behind_the_first_failure_leave_every_reward_exact() -> None:
    stopped = score(judge((3, AC), (300, SKIP), (30, TLE), (30, SKIP)), "first_failure")

    assert stopped == Score(
        verdict=TLE,
        category="optimization_failure",
        first_failure_length=30,
        rewards={"R_1": 1, "R_2": 0, "R_3": 0, "R_inf": 0},
        groups=(
            Group(1, tests=1, passed=1, failed=0, skipped=0),
            Group(2, tests=3, passed=1, failed=1, skipped=1),
            Group(3, tests=4, passed=1, failed=1, skipped=2),
        ),
    )


@pytest.mark.parametrize(
    "judged",
    [
        judge((3, SKIP)),
        judge((3, AC), (4, SKIP)),
        judge((3, SKIP), (4, WA)),
        judge((3, SKIP), (3, WA)),
    ],
)
def test_a_test_skipped_before_any_failure_is_never_taken_for_a_pass(judged: list[Judged]) -> None:
    with pytest.raises(ValueError, match="skipped without a failure before it"):
        score(judged, "first_failure")


@pytest.mark.parametrize("rule", ["any_wrong", "strict"])
def test_rules_that_need_every_test_refuse_skipped_ones(rule: Taxonomy) -> None:
    with pytest.raises(ValueError, match=rule):
        score(judge((3, WA), (4, SKIP)), rule)


def test_no_tests_is_an_error_and_never_a_pass() -> None:
    with pytest.raises(ValueError, match="no tests"):
        score([], "first_failure")
    with pytest.raises(ValueError, match="no tests"):
        score_unrun([], "compile_error")


def test_a_program_that_does_not_compile_is_a_correctness_failure() -> None:
    assert score_unrun([10, 20, 1000], "compile_error") == Score(
        verdict="compile_error",
        category="correctness_failure",
        first_failure_length=None,
        rewards={"R_1": None, "R_2": 0, "R_3": 0, "R_4": 0, "R_inf": 0},
        groups=(
            Group(1, tests=0, passed=0, failed=0, skipped=0),
            Group(2, tests=2, passed=0, failed=0, skipped=2),
            Group(3, tests=2, passed=0, failed=0, skipped=2),
            Group(4, tests=3, passed=0, failed=0, skipped=3),
        ),
    )


def test_a_completion_without_a_program_is_a_format_error() -> None:
    result = score_unrun([5], "format_error")

    assert (result.verdict, result.category) == ("format_error", "format_error")
    assert result.rewards == {"R_1": 0, "R_inf": 0}


def random_submission(rng: random.Random) -> list[Judged]:
    verdicts = rng.choice([[AC], [AC, AC, AC, TLE], [AC, WA, TLE, RE, MLE, OLE, IDLE], [TLE, MLE, AC]])
    lengths = [rng.choice([0, 1, 9, 10, 11, 99, 100, 101, 999, 1000, rng.randrange(10**6)]) for _ in range(12)]
    return judge(*((length, rng.choice(verdicts)) for length in lengths[: rng.randint(1, 12)]))


def rewards_by_definition(judged: list[Judged]) -> dict[str, int | None]:
    rewards: dict[str, int | None] = {}
    k = 0
    while True:
        k += 1
        group = [test for test in judged if test.input_length < 10**k]
        rewards[f"R_{k}"] = int(all(test.verdict is AC for test in group)) if group else None
        if len(group) == len(judged):
            return rewards | {"R_inf": int(all(test.verdict is AC for test in judged))}


def category_by_definition(judged: list[Judged], rule: Taxonomy) -> Category:
    failing = [test for test in judged if test.verdict is not AC]
    if not failing:
        return "correct"
    first = min(failing, key=lambda test: (test.input_length, test.index))
    wrong = any(test.verdict in (WA, RE) for test in failing)
    shorter_accepted = any(
        test.verdict is AC and all(test.input_length < other.input_length for other in failing) for test in judged
    )
    optimization = {
        "first_failure": first.verdict in LIMIT_VERDICTS,
        "any_wrong": not wrong,
        "strict": not wrong and shorter_accepted,
    }[rule]
    return "optimization_failure" if optimization else "correctness_failure"


def stop_at_first_failure(judged: list[Judged]) -> list[Judged]:
    stopped: dict[int, Judged] = {}
    failed = False
    for test in sorted(judged, key=lambda test: (test.input_length, test.index)):
        stopped[test.index] = Judged(test.index, test.input_length, SKIP) if failed else test
        failed = failed or test.verdict is not AC
    return [stopped[test.index] for test in judged]


@pytest.mark.parametrize("rule", ALL_RULES)
def test_scores_agree_with_the_definitions_on_random_submissions(rule: Taxonomy) -> None:
    rng = random.Random(2)
    for _ in range(300):
        judged = random_submission(rng)
        shuffled = rng.sample(judged, len(judged))

        result = score(judged, rule)
        assert result.rewards == rewards_by_definition(judged)
        assert result.category == category_by_definition(judged, rule)
        assert score(shuffled, rule) == result
        for group in result.groups:
            members = [test.verdict for test in judged if test.input_length < 10**group.k]
            assert group == Group(group.k, len(members), members.count(AC), len(members) - members.count(AC), 0)
        length = result.first_failure_length
        assert all(
            result.rewards[f"R_{group.k}"] == int(length is None or length >= 10**group.k)
            for group in result.groups
            if group.tests
        )


def test_stopping_at_the_first_failure_changes_neither_rewards_nor_category() -> None:
    rng = random.Random(3)
    for _ in range(300):
        judged = random_submission(rng)
        whole = score(judged, "first_failure")
        stopped = score(stop_at_first_failure(judged), "first_failure")

        assert dataclasses.replace(stopped, groups=whole.groups) == whole
