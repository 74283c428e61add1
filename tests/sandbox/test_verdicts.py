"""The documented precedence within a test, as a table over every pair of causes."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from sandbox.verdicts import FAULT_VERDICTS, LIMIT_VERDICTS, Evidence, Verdict, decide

CLEAN = Evidence(over_memory=False, over_cpu=False, over_wall=False, over_output=False, exit_code=0, signal=None)

#: In the order of section 4 of the design; each with what it alone comes to.
PRECEDENCE: tuple[tuple[dict[str, object], Verdict], ...] = (
    ({"over_memory": True}, Verdict.MEMORY_LIMIT),
    ({"over_cpu": True}, Verdict.TIME_LIMIT),
    ({"over_wall": True}, Verdict.IDLE),
    ({"over_output": True}, Verdict.OUTPUT_LIMIT),
    ({"signal": 9, "exit_code": None}, Verdict.RUNTIME_ERROR),
    ({"exit_code": 3}, Verdict.RUNTIME_ERROR),
)

#: A death by signal has no exit status, so these two never meet.
PAIRS = [pair for pair in combinations(PRECEDENCE, 2) if pair != PRECEDENCE[-2:]]


@pytest.mark.parametrize(("cause", "verdict"), PRECEDENCE)
def test_each_cause_alone(cause: dict[str, object], verdict: Verdict) -> None:
    assert decide(replace(CLEAN, **cause), ignore_exit_code=False) is verdict  # type: ignore[arg-type]


@pytest.mark.parametrize(("stronger", "weaker"), PAIRS)
def test_of_two_causes_the_first_decides(
    stronger: tuple[dict[str, object], Verdict], weaker: tuple[dict[str, object], Verdict]
) -> None:
    evidence = replace(CLEAN, **{**weaker[0], **stronger[0]})  # type: ignore[arg-type]
    assert decide(evidence, ignore_exit_code=False) is stronger[1]


def test_all_causes_at_once() -> None:
    everything = {key: value for cause, _ in reversed(PRECEDENCE) for key, value in cause.items()}
    assert decide(replace(CLEAN, **everything), ignore_exit_code=True) is Verdict.MEMORY_LIMIT  # type: ignore[arg-type]


def test_a_clean_run_is_the_checkers() -> None:
    assert decide(CLEAN, ignore_exit_code=False) is None


@pytest.mark.parametrize("status", [1, 42, 255])
def test_an_exit_status_can_be_ignored(status: int) -> None:
    assert decide(replace(CLEAN, exit_code=status), ignore_exit_code=True) is None


@pytest.mark.parametrize(("cause", "verdict"), PRECEDENCE[:-1])
def test_nothing_but_the_exit_status_can_be_ignored(cause: dict[str, object], verdict: Verdict) -> None:
    assert decide(replace(CLEAN, **cause), ignore_exit_code=True) is verdict  # type: ignore[arg-type]


def test_every_failure_is_of_the_program_or_of_the_grader() -> None:
    programs = LIMIT_VERDICTS | {Verdict.WRONG_ANSWER, Verdict.RUNTIME_ERROR}
    neither = {Verdict.ACCEPTED, Verdict.SKIPPED}
    assert programs | FAULT_VERDICTS | neither == set(Verdict)
    assert not programs & FAULT_VERDICTS
