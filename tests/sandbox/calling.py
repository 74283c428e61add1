"""Call problems for tests: both ways to run Python must come to the same."""

from __future__ import annotations

import json

from sandbox.checkers.plain import Plain
from sandbox.judge import Judge
from sandbox.problem import Call, Limits, Problem, Submission, Test, TestResult
from sandbox.stdin import Stdin
from tests.sandbox.cells import ROOMY

PYTHONS = ("python", "python-exec")


def json_text(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def call_problem(
    *tests: tuple[list[object], object], function: str = "f", prelude: str = "none", checker: Plain | None = None
) -> Problem:
    """A problem of (arguments, expected value) pairs."""
    written = [(json_text(arguments), json_text(expected)) for arguments, expected in tests]
    return Problem(
        tuple(Test(index, None, len(given), Stdin(given), wanted) for index, (given, wanted) in enumerate(written)),
        checker or Plain(),
        call=Call(function, prelude),
    )


def called(judge: Judge, language: str, source: str, problem: Problem, limits: Limits = ROOMY) -> list[TestResult]:
    judgement = judge.judge(Submission(problem, language, source.encode(), limits))
    assert judgement.compile is not None
    assert judgement.compile.ok, judgement.compile.message
    return list(judgement.tests)


def came_to(result: TestResult) -> tuple[str, str, str]:
    return result.verdict.value, result.message, result.checker_message
