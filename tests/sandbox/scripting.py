"""Script problems for tests."""

from __future__ import annotations

from sandbox.checkers.compare import Exact
from sandbox.judge import Judge
from sandbox.problem import Limits, Problem, Script, Submission, Test, TestResult
from sandbox.stdin import Stdin
from tests.sandbox.cells import ROOMY


def script_problem(*scripts: str, runner: str = "exec", entry_point: str = "") -> Problem:
    tests = tuple(Test(index, None, len(script), Stdin(script.encode()), b"") for index, script in enumerate(scripts))
    return Problem(tests, Exact(), script=Script(runner, entry_point))


def on_script(
    judge: Judge,
    source: str,
    script: str,
    runner: str = "exec",
    entry_point: str = "",
    *,
    language: str = "python",
    limits: Limits = ROOMY,
) -> TestResult:
    """What one program comes to on one script."""
    problem = script_problem(script, runner=runner, entry_point=entry_point)
    judgement = judge.judge(Submission(problem, language, source.encode(), limits))
    assert judgement.compile is not None
    assert judgement.compile.ok, judgement.compile.message
    (result,) = judgement.tests
    return result
