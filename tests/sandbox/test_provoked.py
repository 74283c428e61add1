"""Programs that would rather have no reward than a bad one: what they do to interactors and checkers, and get.

A fault of the jury's program is nobody's wrong answer. So it must not be had by printing much, and where it is had by
printing something that the jury's program cannot stand, the result says so.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox.checkers.base import Checker, CheckerProgram, CheckerProtocol, JuryProgram, Scoring
from sandbox.checkers.compare import Exact, Lcb, Lines, Tokens
from sandbox.checkers.plain import Plain
from sandbox.judge import Judge
from sandbox.problem import Limits
from sandbox.verdicts import Verdict
from tests.sandbox.cells import MB
from tests.sandbox.conversations import BESIDE, CARELESS, NONSENSE, c, graded, jury, problem
from tests.sandbox.juries import by_kattis, by_python, by_testlib, judged, one

pytestmark = pytest.mark.jail

A, W, R, C = Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.RUNTIME_ERROR, Verdict.CHECKER_ERROR
O, I = Verdict.OUTPUT_LIMIT, Verdict.IDLE  # noqa: E741

PATIENT = Limits(cpu_s=20, wall_s=40, memory_bytes=128 * MB)

# ---------------------------------------------------------------------------------------------------------------
# Interactors

FLOODS = {"lines": 'puts("1")', "one line without an end": "putchar('1')"}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_program_that_floods_its_interactor_is_over_its_output_limit(judge: Judge, flood: str) -> None:
    """An interactor's limits are wide enough to keep all that a program may say; beyond that it is the program's."""
    source = c(f"for (;;) {FLOODS[flood]};")
    (result,) = graded(judge, problem(jury("faulty.py"), ("keeps", "")), source, "c", PATIENT)
    assert (result.verdict, result.message.split(",")[0]) == (O, "the program wrote more than 16 MiB to the interactor")


def test_a_flood_is_bounded_by_the_output_limit_too(judge: Judge) -> None:
    limits = replace(PATIENT, output_bytes=3 * MB)
    (result,) = graded(judge, problem(jury("faulty.py"), ("keeps", "")), c('for (;;) puts("1");'), "c", limits)
    assert (result.verdict, result.message.split(",")[0]) == (O, "the program wrote more than 3 MiB to the interactor")


def test_nobody_counts_what_an_interactor_can_take(judge: Judge) -> None:
    """20 MiB to an interactor that forgets what it hears."""
    talks = c("for (int i = 0; i < 20 << 20; i++) putchar(i % 64 ? '1' : '\\n');")
    (result,) = graded(judge, problem(jury("faulty.py"), ("forgets", "")), talks, "c", PATIENT)
    assert result.verdict is A


def test_an_interactor_out_of_all_proportion_is_at_fault_itself(judge: Judge) -> None:
    (result,) = graded(judge, problem(jury("faulty.py"), ("hoards", "")), c('for (;;) puts("1");'), "c", PATIENT)
    assert (result.verdict, result.provoked) == (C, True)
    assert result.checker_message == "the interactor needed more than 2048 MiB"


@pytest.mark.parametrize("program", BESIDE)
def test_a_fault_that_a_silent_program_meets_too_is_not_provoked(judge: Judge, program: str) -> None:
    (result,) = graded(judge, problem(jury("faulty.py"), ("dies", "")), BESIDE[program])
    assert (result.verdict, result.provoked) == (C, False)


def test_a_fault_over_what_a_program_said_is_provoked(judge: Judge) -> None:
    (result,) = graded(judge, CARELESS, NONSENSE)
    assert (result.verdict, result.provoked) == (C, True)


#: How an interactor reads a guess, without a thought of a program that may say none.
READERS = {
    "converts": "int(sys.stdin.readline())",
    "takes a word": "int(sys.stdin.readline().split()[0])",
    "gives up": "int(line) if (line := sys.stdin.readline()).strip().isdigit() else sys.exit(3)",
    "aborts": "int(line) if (line := sys.stdin.readline()).strip().isdigit() else os.abort()",
}
GUESSES = """
import os, sys
secret = int(open(sys.argv[1]).read())
while (guess := {}) != secret:
    print("<" if secret < guess else ">", flush=True)
print("=", flush=True)
sys.exit(42)
"""

#: What is said to them, what becomes of it, and whether the program is told to have brought it about.
SAID = {
    "the secret": ("print(6, flush=True)\nassert input() == '='", A, False),
    "nothing": ("pass", W, False),
    "too little": ("print(3, flush=True)\ninput()\nprint(9, flush=True)", W, False),
    "too little, then no more": ("import os, time\nprint(3, flush=True)\nos.close(1)\ntime.sleep(9)", I, False),
    "too little, badly": ("print(3, flush=True)\ninput()\nraise SystemExit(3)", R, False),
    "nonsense": ("print('x', flush=True)", C, True),
    "nonsense, then waits": ("print('x', flush=True)\ninput()", C, True),
    "an empty line": ("print(flush=True)\ninput()", C, True),
}


def in_python(source: str) -> CheckerProgram:
    files = (("main.py", source.encode()),)
    return CheckerProgram(CheckerProtocol.KATTIS, JuryProgram("python", files), (), Scoring())


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("said", SAID)
def test_an_interactor_that_fails_at_the_end_of_what_is_said_has_lost_its_program(
    judge: Judge, said: str, reader: str
) -> None:
    """Whatever words or status it fails with: it had been waiting for more. A failure over a word is its own."""
    source, verdict, provoked = SAID[said]
    of = problem(in_python(GUESSES.format(READERS[reader])), ("6", ""))
    (result,) = graded(judge, of, source, limits=Limits(cpu_s=0.5, wall_s=1.0, memory_bytes=128 * MB))
    assert (result.verdict, result.provoked) == (verdict, provoked), result


@pytest.mark.parametrize("program", ["", "print('x')"])
def test_an_interactor_that_is_long_in_failing_of_itself_was_not_provoked(judge: Judge, program: str) -> None:
    """It listens to nobody, so that nobody's end is what it fails over."""
    works = in_python("import time\nwhile time.process_time() < 0.4: pass\n1 / 0")
    (result,) = graded(judge, problem(works, ("", "")), program)
    assert (result.verdict, result.provoked) == (C, False)


POLLS = """
import os, sys, time
os.set_blocking(0, False)
while True:
    try:
        if not os.read(0, 100):
            sys.exit(1)
    except BlockingIOError:
        time.sleep(0.002)
        sum(range(50_000))
"""


def test_an_interactor_that_never_rests_is_told_of_the_end_all_the_same(judge: Judge) -> None:
    """Its verdict is left open: on a crowded host it may come to rest."""
    (result,) = graded(judge, problem(in_python(POLLS), ("", "")), "")
    assert result.message == "the program ended, then the interactor exited with status 1"


@pytest.mark.parametrize("program", ["", "print('x')"])
@pytest.mark.parametrize(("source", "provoked"), [("int(sys.stdin.read())", True), ("1 / 0", False)])
def test_a_validator_of_several_passes_is_asked_without_a_word_too(
    judge: Judge, source: str, provoked: bool, program: str
) -> None:
    of = problem(in_python(f"import sys\n{source}\nsys.exit(42)"), ("", ""), dialogue=None, passes=2)
    (result,) = graded(judge, of, program)
    assert (result.verdict, result.provoked) == (C, provoked)


# ---------------------------------------------------------------------------------------------------------------
# Comparisons

COMPARISONS: list[Checker] = [
    *(Tokens(), Tokens(case_sensitive=False), Tokens(float_absolute=1e-6), Tokens(float_relative=1e-6)),
    *(Lines(), Exact(), Lcb(), Plain(), Plain(loose=True), Plain(float_absolute=1e-6)),
]
ABSURD = [
    *(b"", b"\0", b"\xff\xfe", b"\r\n\r\n", b"\xef\xbb\xbf1", b"1\x0b2", b"\x1c1\x1d", "\u0661".encode(), b"\xc2\xa01"),
    *(b"[" * 10**5, b"[" * 10**4 + b"]" * 10**4, b"{}", b"[1,2]]", b'{"a":1,"a":2}', b'{"\\ud800":1}', b'"\\ud800"'),
    *(b"9" * 10**5, b"-" + b"9" * 5000, b"1" * 641, b"0" * 10**5 + b"1", b"1_000", b"0x10", b"--1", b".", b"e1"),
    *(b"nan", b"inf", b"1e999999999", b"1e-999999999", b"0." + b"0" * 10**5 + b"1", b"-0.0", b"[NaN]", b"[1e400]"),
]
ANSWERS = [
    *(b"1", b"1.5", b"[1,[2]]", b'{"a":1}', b'"\\ud800"', b"9" * 700, b"", b"nan", b"1e400"),
    b"[" * 900 + b"]" * 900,
]


@pytest.mark.parametrize("checker", COMPARISONS, ids=repr)
def test_no_output_makes_a_comparison_fail(checker: Checker) -> None:
    for answer in (*ANSWERS, *ABSURD):
        for output in (*ABSURD, *ANSWERS):
            assert checker.check(memoryview(output), answer).verdict in (A, W)


# ---------------------------------------------------------------------------------------------------------------
# Checkers

LISTS = "lines = [line.split() for line in {}]\n"
BULKY = by_python(f"import sys\n{LISTS.format('open(sys.argv[3])')}print(int(lines == [['7']]))")


def lines(count: int) -> bytes:
    return b"import sys; sys.stdout.write('1\\n' * %d)" % count


def test_a_checker_has_room_for_what_it_can_be_expected_to_take(judge: Judge) -> None:
    """8 Mi lines of two bytes, which become 1.3 GiB."""
    result = one(judge, BULKY, b"", b"7", lines(8 << 20))
    assert (result.verdict, result.provoked) == (W, False)


def test_an_output_beyond_that_which_a_checker_cannot_take_is_over_the_output_limit(judge: Judge) -> None:
    result = one(judge, BULKY, b"", b"7", lines(24 << 20))
    assert (result.verdict, result.provoked) == (O, False)
    assert result.message == "wrote more than 16 MiB, which the checker could not take"
    assert result.checker_message == "the checker needed more than 2048 MiB"


def test_a_large_output_that_the_checker_takes_is_nobodys_fault(judge: Judge) -> None:
    counts = by_python("import sys\nprint(int(len(open(sys.argv[3]).read()) == 48 << 20))")
    assert one(judge, counts, b"", b"7", lines(24 << 20)).verdict is A


def test_a_checker_that_is_broken_is_so_whatever_was_printed(judge: Judge) -> None:
    result = one(judge, by_python("1 / 0"), b"", b"7", lines(24 << 20))
    assert (result.verdict, result.provoked) == (C, False)


def test_what_can_be_expected_grows_with_the_test(judge: Judge) -> None:
    """An answer of 5 MiB: 20 MiB are nothing out of the way, and the checker's failure is the checker's."""
    dies = by_python("import sys\nif len(open(sys.argv[3]).read()) > 6 << 20: 1 / 0\nprint(1)")
    answer = b"1\n" * (5 << 19)
    results = [one(judge, dies, b"", answer, lines(count)) for count in (9 << 20, 11 << 20)]
    assert [(result.verdict, result.provoked) for result in results] == [(C, True), (O, False)]


NUMBER = by_python("import sys\nprint(int(int(open(sys.argv[3]).read()) == int(open(sys.argv[2]).read())))")


def test_a_checker_that_takes_the_answer_and_not_the_output_was_provoked(judge: Judge) -> None:
    results = [one(judge, NUMBER, b"", b"7", source) for source in (b"print(7)", b"print(8)", b"print('x')")]
    assert [(result.verdict, result.provoked) for result in results] == [(A, False), (W, False), (C, True)]


def test_a_checker_that_does_not_take_the_answer_either_was_not(judge: Judge) -> None:
    result = one(judge, NUMBER, b"", b"seven", b"print(7)")
    assert (result.verdict, result.provoked) == (C, False)


@pytest.mark.parametrize("answer", [b"", b"\n"])
@pytest.mark.parametrize(
    ("reads", "prints", "provoked"),
    [
        ("int({})", "'x'", True),
        ("[int(word) for word in {}.split()][0]", "'x'", True),
        ("a, b, *more = {}.split()", "'x'", True),
        ("dict(YES=1, NO=0)[{}.strip()]", "'x'", True),
        ("int({}) / 0", "7", False),
        ("1 / 0", "7", False),
    ],
)
def test_a_blank_answer_says_nothing_of_what_a_checker_stands(
    judge: Judge, answer: bytes, reads: str, prints: str, provoked: bool
) -> None:
    validator = by_kattis("python", {"main.py": f"import sys\n{reads.format('sys.stdin.read()')}\nsys.exit(42)"})
    result = one(judge, validator, b"3", answer, f"print({prints})".encode())
    assert (result.verdict, result.provoked) == (C, provoked)


def test_each_test_is_attributed_for_itself(judge: Judge) -> None:
    results = judged(judge, by_testlib("deeds"), (b"segfault\n\n", b""), (b"integer\n1\n", b"1"), source=b"print(1)")
    assert [(result.verdict, result.provoked) for result in results] == [(C, False), (A, False)]
