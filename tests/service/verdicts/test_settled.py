"""Which results are kept: those that another run would come to as well."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from sandbox.checkers import Tokens
from sandbox.problem import CompileResult, Dialogue, Limits, Problem, TestResult
from sandbox.verdicts import Verdict
from service.verdicts.settled import is_settled

LIMITS = Limits(cpu_s=2.0, memory_bytes=256 * 2**20)
PROBLEM = Problem((), Tokens())
FAR = TestResult(0, None, 4, Verdict.ACCEPTED, cpu_s=0.1, wall_s=0.1, memory_bytes=2**20)


def settled(*tests: TestResult, problem: Problem = PROBLEM, compiled: CompileResult | None = None) -> bool:
    return is_settled(compiled, tests, problem, LIMITS)


@pytest.mark.parametrize("verdict", [Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.RUNTIME_ERROR])
def test_what_a_program_did_far_from_its_limits_is_settled(verdict: Verdict) -> None:
    assert settled(FAR, replace(FAR, verdict=verdict))


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict.TIME_LIMIT,
        Verdict.IDLE,
        Verdict.MEMORY_LIMIT,
        Verdict.OUTPUT_LIMIT,
        Verdict.CHECKER_ERROR,
        Verdict.INTERNAL_ERROR,
    ],
)
def test_what_a_limit_or_a_fault_decided_is_not(verdict: Verdict) -> None:
    assert not settled(FAR, replace(FAR, verdict=verdict))


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"cpu_s": 1.0}, True),
        ({"cpu_s": 1.01}, False),
        ({"wall_s": 2.5}, True),
        ({"wall_s": 2.51}, False),
        ({"memory_bytes": 224 * 2**20}, True),
        ({"memory_bytes": 225 * 2**20}, False),
        ({"reruns": 1}, False),
        ({"by_clock": True}, False),
        ({"cpu_s": None}, False),
        ({"memory_bytes": None}, False),
    ],
)
def test_what_came_near_a_limit_or_was_tried_again_is_not(figures: dict[str, float], expected: bool) -> None:
    assert settled(FAR, replace(FAR, **figures)) is expected  # type: ignore[arg-type]


def test_what_a_processor_does_not_know_another_may() -> None:
    assert settled(replace(FAR, verdict=Verdict.RUNTIME_ERROR, signal=signal.SIGSEGV))
    assert not settled(replace(FAR, verdict=Verdict.RUNTIME_ERROR, signal=signal.SIGILL))


def test_tests_that_were_skipped_after_a_failure_change_nothing() -> None:
    skipped = TestResult(1, None, 5, Verdict.SKIPPED)
    assert settled(replace(FAR, verdict=Verdict.WRONG_ANSWER), skipped)
    assert not settled(replace(FAR, verdict=Verdict.TIME_LIMIT), skipped)


@pytest.mark.parametrize("problem", [replace(PROBLEM, dialogue=Dialogue()), replace(PROBLEM, passes=2)])
def test_of_two_programs_that_talk_only_their_agreement_is_settled(problem: Problem) -> None:
    assert settled(FAR, problem=problem)
    assert not settled(replace(FAR, verdict=Verdict.WRONG_ANSWER), problem=problem)


def test_what_does_not_compile_never_does_unless_a_limit_ended_the_compiler() -> None:
    error = CompileResult(ok=False, cpu_s=0.1, cached=False, message="error")
    assert settled(compiled=error)
    assert not settled(compiled=replace(error, at_limit=True))
