"""What each end of a checker that is a program means: every exit status, every file, every limit, by its protocol."""

from __future__ import annotations

import pytest

from sandbox.checkers.base import CheckerOutcome, CheckerProtocol, Partial, Scoring
from sandbox.checkers.programs import (
    JUDGE_MESSAGE,
    MESSAGE_BYTES,
    SCORE,
    SCORE_MULTIPLIER,
    CheckerRun,
    outcome,
)
from sandbox.problem import Limits
from sandbox.testlib import PARTIAL_BASE
from sandbox.verdicts import Evidence, Verdict

A, W, E = Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.CHECKER_ERROR
LIMITS = Limits(cpu_s=30.0, memory_bytes=2**30, output_bytes=2**20)
TESTLIB, KATTIS, PYTHON = CheckerProtocol

BOTH_SCORES = f"the checker left {SCORE} and {SCORE_MULTIPLIER} and exited with status 42: debug"


def evidence(exit_code: int | None = 0, **over: bool) -> Evidence:
    fields = {"over_memory": False, "over_cpu": False, "over_wall": False, "over_output": False} | over
    return Evidence(**fields, exit_code=exit_code, signal=None if exit_code is not None else 9)


def run(
    protocol: CheckerProtocol,
    exit_code: int | None,
    *,
    stdout: bytes = b"",
    stderr: bytes = b"",
    files: dict[str, bytes] | None = None,
    scoring: Scoring = Scoring(),  # noqa: B008
) -> CheckerOutcome:
    return outcome(protocol, CheckerRun(evidence(exit_code), LIMITS, stdout, stderr, files), scoring)


@pytest.mark.parametrize(
    ("exit_code", "stderr", "expected"),
    [
        (0, b"ok 3 tokens\n", CheckerOutcome(A, "ok 3 tokens")),
        (1, b"wrong answer 2 is not 3\n", CheckerOutcome(W, "wrong answer 2 is not 3")),
        (2, b"wrong output format x\n", CheckerOutcome(W, "presentation error: wrong output format x")),
        (8, b"unexpected eof x\n", CheckerOutcome(W, "unexpected end of output: unexpected eof x")),
        (7, b"points 0.5 half\n", CheckerOutcome(W, "points 0.5 half", 0.5)),
        (7, b"points 1e400\n", CheckerOutcome(E, "the checker exited with status 7 and said no points: points 1e400")),
        (7, b"points nan\n", CheckerOutcome(E, "the checker exited with status 7 and said no points: points nan")),
        (7, b"", CheckerOutcome(E, "the checker exited with status 7 and said no points")),
        (16, b"partially correct (0) none\n", CheckerOutcome(W, "partially correct (0) none", 0.0)),
        (216, b"partially correct (200) all\n", CheckerOutcome(W, "partially correct (200) all", 2.0)),
        (17, b"partially correct (0)", CheckerOutcome(E, "the checker exited with status 17: partially correct (0)")),
        (99, b"dead\n", CheckerOutcome(E, "the checker exited with status 99: dead")),
        (3, b"FAIL no answer\n", CheckerOutcome(E, "the checker gave up: FAIL no answer")),
        (4, b"", CheckerOutcome(E, "the checker exited with status 4")),
        (15, b"", CheckerOutcome(E, "the checker exited with status 15")),
        (255, b"", CheckerOutcome(E, "the checker exited with status 255")),
    ],
)  # fmt: skip
def test_testlib(exit_code: int, stderr: bytes, expected: CheckerOutcome) -> None:
    assert run(TESTLIB, exit_code, stderr=stderr) == expected


@pytest.mark.parametrize(
    ("scoring", "points", "verdict"),
    [
        (Scoring(), 1.0, W),
        (Scoring(), 0.5, W),
        (Scoring(Partial.ACCEPT), 0.5, A),
        (Scoring(Partial.ACCEPT), 0.0, W),
        (Scoring(Partial.ACCEPT), -1.0, W),
        (Scoring(Partial.SCORE), 0.999, W),
        (Scoring(Partial.SCORE), 1.0, A),
        (Scoring(Partial.SCORE, full_score=100.0), 99.0, W),
        (Scoring(Partial.SCORE, full_score=100.0), 100.0, A),
    ],
)
def test_points_accept_as_the_problem_says_and_are_reported_always(
    scoring: Scoring, points: float, verdict: Verdict
) -> None:
    assert run(TESTLIB, 7, stderr=b"points %f x" % points, scoring=scoring) == CheckerOutcome(
        verdict, f"points {points:f} x", points / scoring.full_score
    )


@pytest.mark.parametrize(
    ("scoring", "verdict"), [(Scoring(), W), (Scoring(Partial.ACCEPT), A), (Scoring(Partial.SCORE, 0.1), W)]
)
def test_a_partly_correct_answer_counts_in_percent_whatever_the_full_score(scoring: Scoring, verdict: Verdict) -> None:
    ended = run(TESTLIB, PARTIAL_BASE + 50, stderr=b"partially correct (50) half", scoring=scoring)
    assert ended == CheckerOutcome(verdict, "partially correct (50) half", 0.5)


def test_a_kattis_score_is_a_share_of_the_full_score_and_a_multiplier_is_one_already() -> None:
    scoring = Scoring(full_score=50.0)
    assert run(KATTIS, 42, files={SCORE: b"12.5"}, scoring=scoring) == CheckerOutcome(A, score=0.25)
    assert run(KATTIS, 42, files={SCORE_MULTIPLIER: b"0.5"}, scoring=scoring) == CheckerOutcome(A, score=0.5)


@pytest.mark.parametrize(
    ("exit_code", "files", "expected"),
    [
        (42, {}, CheckerOutcome(A, "debug")),
        (43, {}, CheckerOutcome(W, "debug")),
        (43, {JUDGE_MESSAGE: b"too long\n"}, CheckerOutcome(W, "too long")),
        (42, {SCORE: b" 12.5\n"}, CheckerOutcome(A, "debug", 12.5)),
        (42, {SCORE_MULTIPLIER: b"0.25"}, CheckerOutcome(A, "debug", 0.25)),
        (42, {SCORE: b"much"}, CheckerOutcome(E, "the checker left a feedback/score.txt that holds no number: much")),
        (42, {SCORE: b"inf"}, CheckerOutcome(E, "the checker left a feedback/score.txt that holds no number: inf")),
        (43, {SCORE: b"1"}, CheckerOutcome(E, "the checker left feedback/score.txt and exited with status 43: debug")),
        (42, {SCORE: b"1", SCORE_MULTIPLIER: b"1"}, CheckerOutcome(E, BOTH_SCORES)),
        (0, {}, CheckerOutcome(E, "the checker exited with status 0, which is neither 42 nor 43: debug")),
        (1, {}, CheckerOutcome(E, "the checker exited with status 1, which is neither 42 nor 43: debug")),
    ],
)  # fmt: skip
def test_kattis(exit_code: int, files: dict[str, bytes], expected: CheckerOutcome) -> None:
    assert run(KATTIS, exit_code, stderr=b"debug\n", files=files) == expected


@pytest.mark.parametrize(
    ("exit_code", "stdout", "expected"),
    [
        (0, b"1\n", CheckerOutcome(A)),
        (0, b"  1  ", CheckerOutcome(A)),
        (0, b"0\n", CheckerOutcome(W)),
        (0, b"0.0\n", CheckerOutcome(W)),
        (0, b"", CheckerOutcome(W)),
        (0, b"0.5\n", CheckerOutcome(W, score=0.5)),
        (0, b"1.0\n", CheckerOutcome(W, score=1.0)),
        (0, b"11\n", CheckerOutcome(E, "the checker printed neither 1 nor 0: 11")),
        (0, b"1\n1\n", CheckerOutcome(E, "the checker printed neither 1 nor 0: 1\n1")),
        (0, b"True\n", CheckerOutcome(E, "the checker printed neither 1 nor 0: True")),
        (1, b"1\n", CheckerOutcome(E, "the checker exited with status 1")),
    ],
)
def test_python(exit_code: int, stdout: bytes, expected: CheckerOutcome) -> None:
    assert run(PYTHON, exit_code, stdout=stdout) == expected


@pytest.mark.parametrize("protocol", CheckerProtocol)
@pytest.mark.parametrize(
    ("ended", "message"),
    [
        (evidence(None, over_memory=True), "needed more than 1024 MiB"),
        (evidence(None, over_cpu=True), "used more than 30 s of CPU time"),
        (evidence(None, over_wall=True), "had not ended after 61 s"),
        (evidence(0, over_output=True), "wrote more than 1 MiB to one file"),
        (evidence(42, over_output=True), "wrote more than 1 MiB to one file"),
        (evidence(None), "died of signal 9"),
    ],
)
def test_limits_and_signals_are_the_checkers_fault_in_every_protocol(
    protocol: CheckerProtocol, ended: Evidence, message: str
) -> None:
    account = CheckerRun(ended, LIMITS, stdout=b"1", files={SCORE: b"1"})
    assert outcome(protocol, account, Scoring(Partial.ACCEPT)) == CheckerOutcome(E, f"the checker {message}")


@pytest.mark.parametrize("protocol", CheckerProtocol)
def test_what_a_checker_says_may_be_any_bytes_and_is_cut(protocol: CheckerProtocol) -> None:
    noise = bytes(range(256)) * 1024
    said = run(protocol, 99, stdout=noise, stderr=noise, files={JUDGE_MESSAGE: noise}).message
    assert len(said.encode()) < 4 * MESSAGE_BYTES
