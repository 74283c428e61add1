"""Kattis problems of several passes: the program runs anew on what the validator makes of its last output."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox.checkers.base import CheckerProgram, CheckerProtocol, JuryProgram
from sandbox.judge import Judge
from sandbox.problem import Dialogue
from sandbox.verdicts import Verdict
from tests.sandbox.conversations import LIMITS, graded, jury, problem

pytestmark = pytest.mark.jail

A, W, R, C = Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.RUNTIME_ERROR, Verdict.CHECKER_ERROR

DOUBLE = "print(2 * int(input()))"
#: Fails on the third pass alone.
UP_TO_20 = "n = int(input())\nprint(2 * n if n < 20 else n)"


@pytest.mark.parametrize("dialogue", [None, Dialogue()], ids=["alone", "talking"])
@pytest.mark.parametrize(
    ("source", "digits", "verdict", "said", "score"),
    [
        (DOUBLE, "1", A, "4 to 8", 1.0),
        (DOUBLE, "3", A, "4 to 8\n8 to 16\n16 to 32\n32 to 64\n64 to 128", 5.0),
        (UP_TO_20, "3", W, "4 to 8\n8 to 16\n16 to 32\n32 to 32", None),
        ("print(2 * int(input()))\nprint('more')", "1", W, "4 to 8 more", None),
    ],
)
def test_passes(
    judge: Judge, dialogue: Dialogue | None, source: str, digits: str, verdict: Verdict, said: str, score: float | None
) -> None:
    flags = () if dialogue is None else ("talk",)
    of = problem(jury("passes.py", *flags), ("4", digits), dialogue=dialogue, passes=5)
    (result,) = graded(judge, of, source)
    assert (result.verdict, result.checker_message, result.score) == (verdict, said, score)


def test_more_passes_than_there_may_be_are_the_validators_fault(judge: Judge) -> None:
    (result,) = graded(judge, problem(jury("passes.py"), ("4", "9"), dialogue=None, passes=3), DOUBLE)
    assert (result.verdict, result.message) == (C, "the validator asked for more than 3 passes")
    # But not of a program that says nothing, which it rejects.
    assert result.provoked


ALWAYS = "import sys\nsys.stdin.read()\nopen(sys.argv[3] + 'nextpass.in', 'w').write('1')\nsys.exit(42)"


def test_a_validator_that_always_asks_for_another_pass_was_not_provoked(judge: Judge) -> None:
    always = CheckerProgram(CheckerProtocol.KATTIS, JuryProgram("python", (("main.py", ALWAYS.encode()),)))
    (result,) = graded(judge, problem(always, ("4", "9"), dialogue=None, passes=3), DOUBLE)
    assert (result.verdict, result.provoked) == (C, False)


def test_a_rejection_that_asks_for_another_pass_is_the_validators_fault(judge: Judge) -> None:
    (result,) = graded(judge, problem(jury("passes.py", "insist"), ("4", "9"), dialogue=None, passes=3), "print(1)")
    assert (result.verdict, result.checker_message) == (C, "the validator rejected and asked for another pass")


def test_a_failure_on_any_pass_is_the_tests(judge: Judge) -> None:
    source = "n = int(input())\nassert n < 20\nprint(2 * n)"
    (result,) = graded(judge, problem(jury("passes.py"), ("4", "3"), dialogue=None, passes=5), source)
    assert (result.verdict, result.exit_code, result.message) == (R, 1, "exited with status 1")


def test_each_pass_has_the_whole_limit_and_the_most_is_told(judge: Judge) -> None:
    source = "import time\nuntil = time.process_time() + 0.3\nwhile time.process_time() < until: pass\n" + DOUBLE
    of = problem(jury("passes.py"), ("4", "3"), dialogue=None, passes=5)
    (result,) = graded(judge, of, source, limits=replace(LIMITS, cpu_s=0.6))
    assert result.verdict is A
    assert result.cpu_s is not None
    assert 0.3 <= result.cpu_s < 0.6


def test_each_pass_is_a_run_of_its_own(judge: Judge) -> None:
    """Nothing of one pass is there in the next but what the validator passes on."""
    source = (
        "import builtins, os\n"
        "assert not hasattr(builtins, 'mark') and not os.path.exists('/tmp/mark') and not os.listdir('.')\n"
        "builtins.mark = 1\n"
        "open('/tmp/mark', 'w')\n" + DOUBLE
    )
    (result,) = graded(judge, problem(jury("passes.py"), ("4", "3"), dialogue=None, passes=5), source)
    assert result.verdict is A


def test_a_program_cannot_change_the_next_passs_input(judge: Judge) -> None:
    """The validator reads the same input as the program: what it made, not what the program made of it."""
    source = (
        "import os\n"
        "n = int(input())\n"
        "for attempt in (lambda: os.open('/dev/stdin', os.O_RDWR), lambda: os.truncate('/dev/stdin', 0)):\n"
        "    try: attempt()\n"
        "    except OSError: continue\n"
        "    print('changed')\n"
        "print(2 * n)\n"
    )
    (result,) = graded(judge, problem(jury("passes.py"), ("4", "3"), dialogue=None, passes=5), source)
    assert result.verdict is A
