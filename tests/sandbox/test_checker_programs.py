"""Checkers that are programs, really compiled and run: what each comes to, what it can see, and who is to blame."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sandbox import compiling, testlib
from sandbox.checkers.base import CheckerProgram, Partial, Scoring
from sandbox.checking import checking
from sandbox.config import SandboxConfig
from sandbox.errors import CheckerRefused
from sandbox.judge import Judge
from sandbox.problem import Submission, TestResult
from sandbox.starting import compiler_limits
from sandbox.verdicts import Verdict
from tests.sandbox.cells import MB, ROOMY, problem
from tests.sandbox.juries import by_kattis, by_python, by_testlib, judged, one, said

pytestmark = pytest.mark.jail

A, W, E = Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.CHECKER_ERROR

# ---------------------------------------------------------------------------------------------------------------
# testlib


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"1 2 3", (A, "ok 3 tokens", None)),
        (b" 1   2\t3 ", (A, "ok 3 tokens", None)),
        (b"1 2 4", (W, "wrong answer token 3: expected '3', found '4'", None)),
        (b"1 2", (W, "presentation error: wrong output format Unexpected end of file - token expected", None)),
        (b"1 2 3 4", (W, "presentation error: wrong output format Extra information in the output file", None)),
    ],
)
def test_a_testlib_checker_decides_on_the_output(
    judge: Judge, output: bytes, expected: tuple[Verdict, str, float | None]
) -> None:
    assert said(one(judge, by_testlib("words"), b"given\n" + output, b"1 2 3\n")) == expected


def test_a_checker_sees_each_tests_own_input_output_and_answer(judge: Judge) -> None:
    tests = [(b"integer\n%d\n" % number, b"%d\n" % (number - number % 2)) for number in range(6)]
    results = judged(judge, by_testlib("deeds"), *tests)
    assert [said(result) for result in results] == [
        (A, "ok the same", None) if number % 2 == 0 else (W, f"wrong answer {number} is not {number - 1}", None)
        for number in range(6)
    ]


@pytest.mark.parametrize(
    ("deed", "output", "answer", "expected"),
    [
        (b"integer", b"3", b"3", (A, "ok the same", None)),
        (b"integer", b"x", b"3", (W, 'presentation error: wrong output format Expected integer, but "x" found', None)),
        (b"integer", b"3", b"x", (E, 'the checker gave up: FAIL Expected integer, but "x" found (/dev/fd/6)', None)),
        (b"integer", b"3", b"", (E, "the checker gave up: FAIL Unexpected end of file - int32 expected", None)),
        (b"points 0.5", b"", b"", (W, "points 0.5 for the effort", 0.5)),
        (b"points 1", b"", b"", (W, "points 1.0 for the effort", 1.0)),
        (b"partly 0", b"", b"", (W, "partially correct (0) some of it", 0.0)),
        (b"partly 1", b"", b"", (W, "partially correct (1) some of it", 0.01)),
        (b"partly 50", b"", b"", (W, "partially correct (50) some of it", 0.5)),
        (b"fail", b"", b"", (E, "the checker gave up: FAIL the answer is out of its mind", None)),
        (b"throw", b"", b"", (E, "the checker died of signal 6", None)),
        (b"segfault", b"", b"", (E, "the checker died of signal 11", None)),
        (b"exit 99", b"", b"", (E, "the checker exited with status 99", None)),
        (b"exit 42", b"", b"", (E, "the checker exited with status 42", None)),
        (b"allocate", b"", b"", (E, "the checker needed more than 1024 MiB", None)),
        (b"flood", b"", b"", (E, "the checker wrote more than 1", None)),
        (b"write", b"x", b"y", (A, "ok read-only", None)),
    ],
)  # fmt: skip
def test_ends_of_a_testlib_checker(
    judge: Judge, deed: bytes, output: bytes, answer: bytes, expected: tuple[Verdict, str, float | None]
) -> None:
    result = one(judge, by_testlib("deeds"), deed + b"\n" + output + b"\n", answer)
    verdict, message, score = said(result)
    assert (verdict, score) == (expected[0], expected[2])
    assert message.startswith(expected[1])


def test_a_checker_that_never_quits_is_at_fault(judge: Judge) -> None:
    result = one(judge, by_testlib("deeds"), b"nothing\n\n", b"")
    assert result.verdict is E
    assert "the checker gave up: FAIL" in result.checker_message


@pytest.mark.parametrize(
    ("scoring", "verdict"), [(Scoring(), W), (Scoring(Partial.ACCEPT), A), (Scoring(Partial.SCORE, 0.4), A)]
)
def test_points_are_accepted_as_the_problem_says(judge: Judge, scoring: Scoring, verdict: Verdict) -> None:
    result = one(judge, by_testlib("deeds", scoring), b"points 0.5\n\n", b"")
    assert (result.verdict, result.score) == (verdict, 0.5 / scoring.full_score)


def test_the_message_of_the_run_itself_stays_that_of_the_run(judge: Judge) -> None:
    result = one(judge, by_testlib("deeds"), b"integer\n3\n", b"3", source=b"import sys; sys.exit(3)")
    assert (result.verdict, result.message, result.checker_message) == (
        Verdict.RUNTIME_ERROR, "exited with status 3", ""
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------
# Kattis validators

KATTIS_HEADER = """
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>
void say(const std::string &directory, const char *file, const char *text);
"""
KATTIS_SAY = """
#include "feedback.h"
void say(const std::string &directory, const char *file, const char *text) {
    FILE *out = fopen((directory + file).c_str(), "w");
    fputs(text, out);
    fclose(out);
}
"""
KATTIS_MAIN = """
#include "feedback.h"
#include <fstream>
#include <iostream>
int main(int argc, char **argv) {
    std::ifstream given(argv[1]), answer(argv[2]);
    std::string deed, wanted, got;
    given >> deed;
    answer >> wanted;
    std::cin >> got;
    std::string flags;
    for (int i = 4; i < argc; i++) flags += std::string(" ") + argv[i];
    if (deed == "score") say(argv[3], "score.txt", "12.5\\n");
    if (deed == "flood") for (;;) say(argv[3], "judgemessage.txt", std::string(100 << 20, 'x').c_str());
    say(argv[3], "judgemessage.txt", (got + " for " + wanted + flags + "\\n").c_str());
    return got == wanted ? 42 : 43;
}
"""
MULTI_FILE = {"validate.cpp": KATTIS_MAIN, "feedback.h": KATTIS_HEADER, "say.cc": KATTIS_SAY}

KATTIS_PYTHON = """
import sys
from words import words
given, answer, feedback, *flags = sys.argv[1:]
wanted, got = words(open(answer)), words(sys.stdin)
with open(feedback + "judgemessage.txt", "w") as out:
    print(*got, "for", *wanted, *flags, file=out)
if words(open(given))[:1] == ["score"]:
    open(feedback + "score.txt", "w").write("12.5")
if words(open(given))[:1] == ["flood"]:
    open(feedback + "judgemessage.txt", "w").write("x" * (100 << 20))
sys.exit(42 if got == wanted else 43)
"""
WORDS = "def words(file):\n    return file.read().split()\n"

VALIDATORS = {
    "C++": by_kattis("cpp", MULTI_FILE, "case_sensitive", "eps 1"),
    "Python": by_kattis("python", {"main.py": KATTIS_PYTHON, "words.py": WORDS}, "case_sensitive", "eps 1"),
    "Python, a fresh interpreter": by_kattis(
        "python-exec", {"main.py": KATTIS_PYTHON, "words.py": WORDS}, "case_sensitive", "eps 1"
    ),
}


@pytest.mark.parametrize("validator", VALIDATORS.values(), ids=VALIDATORS)
def test_a_kattis_validator_of_several_files(judge: Judge, validator: CheckerProgram) -> None:
    tests = [(b"-\na\n", b"a"), (b"--\na\n", b"b"), (b"score\nc\n", b"c"), (b"score \nc\n", b"d")]
    results = judged(judge, validator, *tests)
    assert [said(result) for result in results] == [
        (A, "a for a case_sensitive eps 1", None),
        (W, "a for b case_sensitive eps 1", None),
        (A, "c for c case_sensitive eps 1", 12.5),
        (E, "the checker left feedback/score.txt and exited with status 43: c for d case_sensitive eps 1", None),
    ]


@pytest.mark.parametrize("validator", VALIDATORS.values(), ids=VALIDATORS)
def test_a_flood_of_feedback_is_the_validators_fault_and_the_next_test_goes_on(
    judge: Judge, validator: CheckerProgram
) -> None:
    results = judged(judge, validator, (b"flood\na\n", b"a"), (b"goes on\na\n", b"a"))
    assert [result.verdict for result in results] == [E, A]
    assert "MiB" in results[0].checker_message or "exited with status" in results[0].checker_message


@pytest.mark.parametrize("status", [0, 1, 41, 44])
def test_other_statuses_than_42_and_43_are_the_validators_fault(judge: Judge, status: int) -> None:
    result = one(judge, by_kattis("python", {"v.py": f"import sys; sys.exit({status})"}), b"-\na\n", b"a")
    assert said(result) == (E, f"the checker exited with status {status}, which is neither 42 nor 43", None)


@pytest.mark.parametrize(
    "trick", ["ln -s /proc/1 feedback", "ln -s /proc/1/environ feedback/score.txt", "mkfifo feedback/score.txt"]
)
def test_feedback_that_leads_elsewhere_is_not_followed(judge: Judge, trick: str) -> None:
    """The one who hands feedback out has other rights than the validator: it must not fetch what that one could not."""
    setup = "import os, shutil; shutil.rmtree('feedback'); " if trick.endswith(" feedback") else "import os; "
    source = f"{setup}os.system({trick!r}); os._exit(42)"
    result = one(judge, by_kattis("python", {"v.py": source}), b"-\na\n", b"a")
    assert (result.verdict, result.score) == (A, None)


# ---------------------------------------------------------------------------------------------------------------
# Python checkers

OPEN_R1 = """
import sys
given, answer, output = (open(path).read() for path in sys.argv[1:])
print({expression})
"""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("int(answer.split() == output.split())", (A, "", None)),
        ("int(given == '-\\na\\n' and answer == 'a' and output == 'a\\n')", (A, "", None)),
        ("int(answer != output.strip())", (W, "", None)),
        ("0.5", (W, "", 0.5)),
        ("'maybe'", (E, "the checker printed neither 1 nor 0: maybe", None)),
        ("1 / 0", (E, "the checker exited with status 1: Traceback", None)),
        ("sys.argv[0]", (E, "the checker printed neither 1 nor 0: /prog/main.py", None)),
    ],
)
def test_ends_of_a_python_checker(judge: Judge, expression: str, expected: tuple[Verdict, str, float | None]) -> None:
    verdict, message, score = said(one(judge, by_python(OPEN_R1.format(expression=expression)), b"-\na\n", b"a"))
    assert (verdict, score) == (expected[0], expected[2])
    assert message.startswith(expected[1])


# ---------------------------------------------------------------------------------------------------------------
# Checkers that are refused


@pytest.mark.parametrize(
    ("checker", "part", "message"),
    [
        (by_testlib(b"int main() { return undeclared; }"), "source", "undeclared"),
        (by_kattis("cpp", {"v.cpp": "int main() { return undeclared; }"}), "source", "undeclared"),
        (by_python("def f(:"), "source", "SyntaxError"),
        (by_kattis("cobol", {"v.cob": ""}), "language", "unknown language"),
        (by_kattis("python", {"a.py": "", "b.py": ""}), "source", "main.py"),
        (by_kattis("cpp", {"a.h": "", "b.h": ""}), "source", "none of the files is a source"),
        (by_kattis("c", {"a.py": "", "b.h": ""}), "source", "none of the files is a source"),
    ],
)
def test_a_checker_that_is_of_no_use_is_refused_before_anything_runs(
    judge: Judge, checker: CheckerProgram, part: str, message: str
) -> None:
    ran: list[TestResult] = []
    submission = Submission(problem((b"", b""), checker=checker), "python", b"print()", ROOMY)
    with pytest.raises(CheckerRefused, match=message) as caught:
        judge.judge(submission, on_test=ran.append)
    assert caught.value.field == f"checker.{part}"
    with pytest.raises(CheckerRefused, match=message):
        judge.vet(problem(checker=checker))
    assert ran == []


def test_a_program_with_testlib_has_time_to_compile_on_a_busy_host(sandbox_config: SandboxConfig) -> None:
    limits = compiler_limits(testlib.language(sandbox_config), compiling.LIMITS)
    assert (limits.cpu_s, limits.effective_wall_s) == (60.0, 120.0)


def test_without_the_header_testlib_checkers_are_refused(
    judge: Judge, sandbox_config: SandboxConfig, tmp_path: Path
) -> None:
    workshop = replace(judge.workshop, config=replace(sandbox_config, testlib=tmp_path / "testlib.h"))
    with pytest.raises(CheckerRefused, match=r"testlib\.h is not installed here"):
        checking(by_testlib("words"), workshop, None)


def test_a_vetted_checker_is_not_compiled_again(judge: Judge) -> None:
    checker = by_kattis("cpp", {"v.cpp": "int main() { return 42; }"})
    judge.vet(problem(checker=checker))
    before = judge.cells_started
    judge.vet(problem(checker=checker))
    assert judge.cells_started == before


# ---------------------------------------------------------------------------------------------------------------
# Who can see what, and attacks on the checker by what a program prints


def test_the_program_finds_nothing_of_the_checker_or_the_answer_in_its_cell(judge: Judge) -> None:
    look = b"""
import os
print(sorted(os.listdir("/prog") + os.listdir("/box") + os.listdir("/tmp")))
print([name for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())])
print([os.readlink(f"/proc/self/fd/{fd}").split(" ")[0] for fd in (0, 1, 2)], len(os.listdir("/proc/self/fd")))
"""
    checker = by_python("import sys; print(open(sys.argv[3]).read(), file=sys.stderr); print(1)")
    results = judged(judge, checker, (b"", b"secret"), (b"-", b"secret"), source=look)
    streams = "['/memfd:stdin', '/memfd:stdout', '/memfd:stderr'] 4"
    assert [said(result) for result in results] == [(A, f"['main.py']\n[]\n{streams}", None)] * 2


def test_the_checker_finds_nothing_of_the_program_in_its_cell(judge: Judge) -> None:
    """A program that leaves files and processes behind, which are there while the checker runs."""
    leave = b"""
import os
open("/box/mine", "w"); open("/tmp/mine", "w")
if os.fork() == 0:
    import time; time.sleep(100)
print("xxx")
"""
    result = one(judge, by_testlib("deeds"), b"look\n", b"", source=leave)
    assert said(result) == (A, "ok xxx:/prog/main;process 1;", None)


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("one token of 40 MB", b"import sys; sys.stdout.write('x' * (40 << 20))"),
        ("NULs", b"import sys; sys.stdout.buffer.write(bytes(10000))"),
        ("every byte", b"import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)"),
        ("a million tokens", b"print('1 ' * 1000000)"),
        ("format directives", b"print('%s%n%s%n%1000000d' * 100)"),
        ("terminal codes", b"print('\\x1b[2J\\x1b]0;x\\x07ok 1 tokens')"),
        ("nothing", b""),
        ("a verdict of its own", b"print('ok 1 tokens'); import sys; print('points 1', file=sys.stderr)"),
        ("a huge number", b"print('9' * 100000)"),
        ("nan", b"print('nan')"),
    ],
)
def test_no_output_makes_a_sound_checker_accept_or_fail(judge: Judge, name: str, program: bytes) -> None:
    for given, checker in (
        (b"words", by_testlib("words")),
        (b"integer", by_testlib("deeds")),
        (b"-", VALIDATORS["C++"]),
    ):
        result = one(judge, checker, given, b"42", source=program)
        assert result.verdict is W, (name, result.checker_message)
        assert len(result.checker_message) < 5000


def test_large_data_reaches_a_checker_whole(judge: Judge) -> None:
    data = b"12345678 " * (4 * MB // 9)
    result = one(judge, by_testlib("words"), data, data, source=b"import sys; sys.stdout.write(sys.stdin.read())")
    assert said(result) == (A, f"ok {4 * MB // 9} tokens", None)
