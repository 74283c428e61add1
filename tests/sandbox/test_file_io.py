"""Problems whose input and output are files: where a program finds the one and leaves the other, and what counts."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import Any

import pytest

from sandbox.checkers.base import CheckerProgram, CheckerProtocol, JuryProgram
from sandbox.judge import Judge
from sandbox.problem import Limits, Submission, TestResult
from sandbox.verdicts import Verdict
from tests.sandbox.cells import MB, ROOMY, problem

pytestmark = pytest.mark.jail

BOTH = {"input_file": "sum.in", "output_file": "sum.out"}
LIMITS = replace(ROOMY, output_bytes=4 * MB)

PYTHON = b"""
with open("sum.in") as given, open("sum.out", "w") as wanted:
    print(sum(map(int, given.read().split())), file=wanted)
"""
CPP = b"""
#include <bits/stdc++.h>
int main() {
    std::ifstream given("sum.in");
    std::ofstream wanted("sum.out");
    long long a, b;
    given >> a >> b;
    wanted << a + b << "\\n";
}
"""
C = b"""
#include <stdio.h>
int main(void) {
    long long a, b;
    freopen("sum.in", "r", stdin);
    freopen("sum.out", "w", stdout);
    if (scanf("%lld %lld", &a, &b) != 2) return 1;
    printf("%lld\\n", a + b);
    return 0;
}
"""


def judged(
    judge: Judge,
    source: str | bytes,
    *tests: tuple[bytes, bytes],
    language: str = "python",
    limits: Limits = LIMITS,
    files: dict[str, Any] = BOTH,
) -> list[TestResult]:
    code = source if isinstance(source, bytes) else textwrap.dedent(source).encode()
    return list(judge.judge(Submission(replace(problem(*tests), **files), language, code, limits)).tests)


def verdicts(results: list[TestResult]) -> list[Verdict]:
    return [result.verdict for result in results]


@pytest.mark.parametrize(("language", "source"), [("python", PYTHON), ("python-exec", PYTHON), ("cpp", CPP), ("c", C)])
def test_files_are_found_and_left_as_each_language_does_it(judge: Judge, language: str, source: bytes) -> None:
    results = judged(judge, source, (b"1 2\n", b"3\n"), (b"20 30\n", b"50\n"), (b"1 1\n", b"3\n"), language=language)

    assert verdicts(results) == [Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.WRONG_ANSWER]
    assert results[2].message == ""


@pytest.mark.parametrize("language", ["python", "python-exec"])
def test_with_an_input_file_stdin_is_empty_and_with_an_output_file_stdout_is_not_looked_at(
    judge: Judge, language: str
) -> None:
    source = """
        import sys
        assert sys.stdin.read() == ""
        assert sorted(__import__("os").listdir()) == ["sum.in"]
        print("whatever")
        open("sum.out", "w").write(open("sum.in").read())
    """

    assert verdicts(judged(judge, source, (b"x\n", b"x\n"), language=language)) == [Verdict.ACCEPTED]


def test_the_input_alone_may_be_a_file(judge: Judge) -> None:
    source = "import sys; assert sys.stdin.read() == ''; print(open('sum.in').read())"

    assert verdicts(judged(judge, source, (b"x", b"x"), files={"input_file": "sum.in"})) == [Verdict.ACCEPTED]


def test_the_output_alone_may_be_a_file(judge: Judge) -> None:
    source = "print(input(), file=open('sum.out', 'w')); print('whatever')"

    assert verdicts(judged(judge, source, (b"x\n", b"x"), files={"output_file": "sum.out"})) == [Verdict.ACCEPTED]


def test_the_input_can_be_opened_again_and_by_other_processes(judge: Judge) -> None:
    source = """
        import os
        first = open("sum.in").read(1)
        if os.fork() == 0:
            with open("sum.out", "w") as file:
                file.write(first + open("/box/sum.in").read())
            os._exit(0)
        os.wait()
    """

    assert verdicts(judged(judge, source, (b"x\n", b"xx\n"))) == [Verdict.ACCEPTED]


@pytest.mark.parametrize("language", ["python", "python-exec"])
@pytest.mark.parametrize(
    "leave",
    [
        "open('sum.out', 'w').write('right')",
        "os.umask(0o077); open('sum.out', 'w').write('right')",
        "open('draft', 'w').write('right'); os.rename('draft', 'sum.out')",
        "os.write(os.open('sum.out', os.O_CREAT | os.O_WRONLY, 0o600), b'right')",
    ],
    ids=["plainly", "umask", "renamed", "private"],
)
def test_a_plain_file_counts_however_it_came_about(judge: Judge, language: str, leave: str) -> None:
    assert verdicts(judged(judge, f"import os\n{leave}", (b"", b"right"), language=language)) == [Verdict.ACCEPTED]


@pytest.mark.parametrize(
    "leave",
    [
        "print('right')",
        "open('SUM.OUT', 'w').write('right')",
        "open('/tmp/sum.out', 'w').write('right')",
        "open('right', 'w').write('right'); os.symlink('right', 'sum.out')",
        "os.mkdir('sum.out')",
        "open('sum.out', 'w').write('right'); os.chmod('sum.out', 0)",
    ],
    ids=["stdout", "other_name", "other_place", "symlink", "directory", "unreadable"],
)
def test_without_a_plain_file_the_answer_is_wrong_and_the_message_says_why(judge: Judge, leave: str) -> None:
    [result] = judged(judge, f"import os\n{leave}", (b"", b"right"))

    assert (result.verdict, result.message) == (Verdict.WRONG_ANSWER, "left no plain, readable file sum.out")
    assert (result.checker_message, result.score) == ("", None)


def test_an_empty_output_file_is_an_output(judge: Judge) -> None:
    [right, wrong] = judged(judge, "open('sum.out', 'w')", (b"", b""), (b"1", b"1"))

    assert (right.verdict, wrong.verdict, wrong.message) == (Verdict.ACCEPTED, Verdict.WRONG_ANSWER, "")


def test_how_the_run_ended_comes_before_what_it_left(judge: Judge) -> None:
    [result] = judged(judge, "open('sum.out', 'w').write('right'); raise SystemExit(3)", (b"", b"right"))

    assert (result.verdict, result.exit_code) == (Verdict.RUNTIME_ERROR, 3)


@pytest.mark.parametrize("language", ["python", "python-exec"])
@pytest.mark.parametrize(("over", "verdict"), [(0, Verdict.ACCEPTED), (1, Verdict.OUTPUT_LIMIT)])
def test_the_output_limit_is_that_of_stdout(judge: Judge, language: str, over: int, verdict: Verdict) -> None:
    size = LIMITS.output_bytes + over
    source = f"open('sum.out', 'wb').write(b'x' * {size})"

    [result] = judged(judge, source, (b"", b"x" * size), language=language)

    assert result.verdict is verdict


def test_the_output_file_is_no_part_of_the_programs_memory(judge: Judge) -> None:
    """As pages of stdout are not: a judge that gave it a disk would not count them either."""
    limits = Limits(cpu_s=10, wall_s=40, memory_bytes=64 * MB, output_bytes=64 * MB)
    source = """
        with open("sum.out", "wb") as file:
            for _ in range(60):
                file.write(b"x" * (1 << 20))
    """

    [result] = judged(judge, source, (b"", b"x" * (60 * MB)), limits=limits, language="python-exec")

    assert result.verdict is Verdict.ACCEPTED
    assert result.memory_bytes is not None
    assert result.memory_bytes < 32 * MB


@pytest.mark.parametrize("size", [2, 300_000])
def test_a_checker_that_is_a_program_reads_both_files(judge: Judge, size: int) -> None:
    source = b"import sys\ngiven, _, output = (open(n).read() for n in sys.argv[1:])\nprint(int(output == 2 * given))\n"
    checker = CheckerProgram(CheckerProtocol.PYTHON, JuryProgram("python", (("main.py", source),)))
    twice = replace(problem((b"x" * size, b"")), checker=checker, **BOTH)  # type: ignore[arg-type]
    programs = [
        f"import os; os.umask(0o077); open('sum.out', 'w').write({factor} * open('sum.in').read())" for factor in (2, 3)
    ]

    found = [judge.judge(Submission(twice, "python", program.encode(), LIMITS)).tests[0] for program in programs]

    assert verdicts(found) == [Verdict.ACCEPTED, Verdict.WRONG_ANSWER], found[0].checker_message


def test_what_was_judged_is_shown_and_stdout_beside_it(judge: Judge) -> None:
    source = "print('to stdout')\nopen('sum.out', 'w').write('x' * 5000 + 'end')"
    (result,) = judged(judge, source, (b"1 2", b"3"))
    assert result.verdict is Verdict.WRONG_ANSWER
    assert result.output_tail == b"x" * 4093 + b"end"
    assert result.stdout_tail == b"to stdout\n"


def test_nothing_is_shown_as_judged_where_no_output_was_left(judge: Judge) -> None:
    (result,) = judged(judge, "print(3)", (b"1 2", b"3"))
    assert (result.verdict, result.output_tail, result.stdout_tail) == (Verdict.WRONG_ANSWER, None, b"3\n")
