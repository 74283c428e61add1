"""What tests of checkers that are programs share: making them, and judging a program by them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sandbox.checkers.base import CheckerProgram, CheckerProtocol, JuryProgram, Scoring
from sandbox.judge import Judge
from sandbox.problem import Submission, TestResult
from sandbox.verdicts import Verdict
from tests.sandbox.cells import MB, ROOMY, problem

SOURCES = Path(__file__).parent / "checkers"

LIMITS = replace(ROOMY, output_bytes=64 * MB)

#: Prints the second line of its input.
SECOND_LINE = b"input(); print(input())"


def by_testlib(source: str | bytes, scoring: Scoring = Scoring()) -> CheckerProgram:  # noqa: B008
    text = (SOURCES / f"{source}.cpp").read_bytes() if isinstance(source, str) else source
    program = JuryProgram("cpp", (("check.cpp", text),), uses_testlib=True)
    return CheckerProgram(CheckerProtocol.TESTLIB, program, scoring=scoring)


def by_kattis(language: str, files: dict[str, str], *flags: str) -> CheckerProgram:
    texts = tuple((name, text.encode()) for name, text in files.items())
    return CheckerProgram(CheckerProtocol.KATTIS, JuryProgram(language, texts), flags)


def by_python(source: str, scoring: Scoring = Scoring()) -> CheckerProgram:  # noqa: B008
    program = JuryProgram("python", (("checker.py", source.encode()),))
    return CheckerProgram(CheckerProtocol.PYTHON, program, scoring=scoring)


def judged(
    judge: Judge, checker: CheckerProgram, *tests: tuple[bytes, bytes], source: bytes = SECOND_LINE
) -> list[TestResult]:
    """Results of a program on tests of (input, answer)."""
    return list(judge.judge(Submission(problem(*tests, checker=checker), "python", source, LIMITS)).tests)


def one(judge: Judge, checker: CheckerProgram, given: bytes, answer: bytes, source: bytes = SECOND_LINE) -> TestResult:
    (result,) = judged(judge, checker, (given, answer), source=source)
    return result


def said(result: TestResult) -> tuple[Verdict, str, float | None]:
    return result.verdict, result.checker_message, result.score
