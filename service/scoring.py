"""From the verdicts of single tests to rewards R_k and R_inf, groups, category and the submission's verdict.

Points of tests and groups are another matter, and in `service.points`.

Pure: works on whatever has an index, an input length and a verdict, so that trainers can score a result again
by another rule. Knows nothing of how verdicts came about, and nothing of HTTP.

With T_k the tests of input length < 10^k, R_k is 1 where every test of T_k is accepted and 0 where one fails
(arXiv 2605.28751); it is None where T_k is empty, so that an empty group is never a free reward. k runs from
1 to the number of decimal digits of the longest input length: the last T_k then holds every test.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sandbox.verdicts import FAULT_VERDICTS, LIMIT_VERDICTS, Verdict
from service.contract import Category, Reward, SubmissionVerdict, Taxonomy, Unrun


class Tested(Protocol):
    """A test that was judged: `sandbox.problem.TestResult` and `service.contract.TestRow` both are."""

    @property
    def index(self) -> int: ...
    @property
    def input_length(self) -> int: ...
    @property
    def verdict(self) -> Verdict: ...


@dataclass(frozen=True, slots=True)
class Group:
    """T_k counted. Faults of the grader are in `tests` only: neither passed, failed nor skipped."""

    k: int
    tests: int
    passed: int
    failed: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Score:
    verdict: SubmissionVerdict
    category: Category | None
    """None where the grader itself failed."""
    first_failure_length: int | None
    """Least input length of a failing test; None where none failed, none ran, or the grader itself failed."""
    rewards: Mapping[str, Reward]
    """`R_1`, `R_2`, ... in order, then `R_inf`."""
    groups: tuple[Group, ...]
    """One for each k, each holding the one before."""


def score(tests: Sequence[Tested], taxonomy: Taxonomy) -> Score:
    """Score a submission whose program was run.

    A test that ended in checker_error or internal_error says nothing about the program. One such test
    therefore makes the category, the first failure and *all* rewards None, those that other tests would
    settle included, and the verdict is that of the shortest such test.

    Tests may be skipped only behind the first failure in ascending order of (input length, index). Every R_k
    is exact then: a T_k that holds a skipped test also holds the failure before it.

    Raises ValueError for no tests, for a test skipped before any failure, and for a rule other than
    `first_failure` where tests were skipped: `any_wrong` and `strict` need every verdict.
    """
    if not tests:
        raise ValueError("no tests: nothing to score")
    ordered = sorted(tests, key=lambda test: (test.input_length, test.index))
    groups = _groups(ordered)
    fault = next((test for test in ordered if test.verdict in FAULT_VERDICTS), None)
    if fault is not None:
        return Score(fault.verdict, None, None, dict.fromkeys(_reward_names(groups)), groups)

    passed = sum(test.verdict is Verdict.ACCEPTED for test in ordered)
    failing = [test for test in ordered if test.verdict not in (Verdict.ACCEPTED, Verdict.SKIPPED)]
    skipped = [test for test in ordered if test.verdict is Verdict.SKIPPED]
    if passed == len(ordered):
        return Score(Verdict.ACCEPTED, "correct", None, _rewards(groups), groups)
    if not failing or (skipped and _key(skipped[0]) < _key(failing[0])):
        raise ValueError("a test was skipped without a failure before it: R_k is unknown")
    if skipped and taxonomy != "first_failure":
        raise ValueError(f"the rule {taxonomy} needs every test, but some were skipped")
    first = failing[0]
    return Score(first.verdict, _category(ordered, failing, taxonomy), first.input_length, _rewards(groups), groups)


def score_unrun(input_lengths: Iterable[int], verdict: Unrun) -> Score:
    """Score a submission of which no test was run: it did not compile, or the completion held no program.

    Every test counts as skipped and every R_k of a non-empty T_k is 0. Raises ValueError for no tests.
    """
    skipped = [_Unrun(index, length) for index, length in enumerate(input_lengths)]
    if not skipped:
        raise ValueError("no tests: nothing to score")
    groups = _groups(skipped)
    category: Category = "format_error" if verdict == "format_error" else "correctness_failure"
    return Score(verdict, category, None, _rewards(groups), groups)


@dataclass(frozen=True, slots=True)
class _Unrun:
    index: int
    input_length: int
    verdict: Verdict = Verdict.SKIPPED


def _key(test: Tested) -> tuple[int, int]:
    return test.input_length, test.index


def _groups(tests: Sequence[Tested]) -> tuple[Group, ...]:
    # A length is below 10^k exactly when it has at most k decimal digits; a length of 0 has one.
    digits = [len(str(test.input_length)) for test in tests]
    groups = []
    for k in range(1, max(digits) + 1):
        verdicts = [test.verdict for test, width in zip(tests, digits, strict=True) if width <= k]
        passed = verdicts.count(Verdict.ACCEPTED)
        skipped = verdicts.count(Verdict.SKIPPED)
        faults = sum(verdict in FAULT_VERDICTS for verdict in verdicts)
        groups.append(Group(k, len(verdicts), passed, len(verdicts) - passed - skipped - faults, skipped))
    return tuple(groups)


def _reward_names(groups: Sequence[Group]) -> list[str]:
    return [*(f"R_{group.k}" for group in groups), "R_inf"]


def _rewards(groups: Sequence[Group]) -> dict[str, Reward]:
    """Rewards where the grader did not fail and no test was skipped before a failure, or none ran."""
    values = [_reward(group) for group in groups]
    return dict(zip(_reward_names(groups), [*values, values[-1]], strict=True))


def _reward(group: Group) -> Reward:
    if group.tests == 0:
        return None
    return 1 if group.passed == group.tests else 0


def _category(ordered: Sequence[Tested], failing: Sequence[Tested], taxonomy: Taxonomy) -> Category:
    """Section "Verdicts" of the design; `failing` is not empty and, like `ordered`, ascending.

    `strict` reads "some shorter test" as strictly shorter than the shortest failing one: a program that fails
    at its smallest sizes hangs, whatever it passes above them.
    """
    only_limits = all(test.verdict in LIMIT_VERDICTS for test in failing)
    first = failing[0]
    match taxonomy:
        case "first_failure":
            optimization = first.verdict in LIMIT_VERDICTS
        case "any_wrong":
            optimization = only_limits
        case "strict":
            # Everything shorter than the first failure was accepted, so the shortest test speaks for all.
            optimization = only_limits and ordered[0].input_length < first.input_length
    return "optimization_failure" if optimization else "correctness_failure"
