"""What tests of conversations share: interactors of `interactors/`, problems of them, and programs that talk."""

from __future__ import annotations

from pathlib import Path

from sandbox.checkers.base import CheckerProgram, CheckerProtocol, JuryProgram, Scoring
from sandbox.judge import Judge
from sandbox.problem import Dialogue, Limits, Problem, Submission, Test, TestResult
from sandbox.stdin import Stdin
from tests.sandbox.cells import MB

SOURCES = Path(__file__).parent / "interactors"

LIMITS = Limits(cpu_s=0.5, wall_s=1.5, memory_bytes=128 * MB, output_bytes=MB)


def jury(name: str, *flags: str) -> CheckerProgram:
    """A program of `interactors/`; with testlib where its name says so."""
    protocol = CheckerProtocol.TESTLIB if "testlib" in name else CheckerProtocol.KATTIS
    language = "cpp" if name.endswith(".cpp") else "python"
    files = ((name, (SOURCES / name).read_bytes()),)
    return CheckerProgram(protocol, JuryProgram(language, files, uses_testlib="testlib" in name), flags, Scoring())


#: An interactor whose word is the last.
ALONE = Dialogue()


def problem(
    program: CheckerProgram,
    *tests: tuple[str, str],
    dialogue: Dialogue | None = ALONE,
    passes: int = 1,
) -> Problem:
    return Problem(
        tuple(
            Test(number, None, len(given), Stdin(given.encode()), answer.encode())
            for number, (given, answer) in enumerate(tests)
        ),
        program,
        dialogue=dialogue,
        passes=passes,
    )


def graded(
    judge: Judge, of: Problem, source: str, language: str = "python", limits: Limits = LIMITS
) -> tuple[TestResult, ...]:
    return judge.judge(Submission(of, language, source.encode(), limits)).tests


KATTIS = problem(jury("guess.cpp"), ("617283", "20"))
CARELESS = problem(jury("guess.py"), ("617283", "20"))
TESTLIB = problem(jury("guess_testlib.cpp"), ("617283", "20"), dialogue=Dialogue(jury("count_testlib.cpp")))

RIGHT = """
low, high = 1, 1_000_000
while True:
    middle = (low + high) // 2
    print(middle, flush=True)
    said = input()
    if said == "=":
        break
    low, high = (low, middle - 1) if said == "<" else (middle + 1, high)
"""
LINEAR = "n = 0\nwhile True:\n    n += 1\n    print(n, flush=True)\n    if input() == '=': break\n"
NONSENSE = "print('what?', flush=True)\ninput()"

#: What a program may do beside an interactor that fails: none of it makes the fault the program's.
BESIDE = {"waits": "input()", "ends": "", "talks": "for n in range(1000): print(n, flush=True)"}


def c(body: str) -> str:
    return f"#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) {{ {body} }}"
