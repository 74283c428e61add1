"""Checkers that are at fault, on a judge that gives them half a second: who waits for them, and what they leave."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sandbox.checkers.base import CheckerProgram
from sandbox.config import SandboxConfig
from sandbox.errors import Cancelled
from sandbox.judge import Judge
from sandbox.problem import Submission
from sandbox.verdicts import Verdict
from tests.sandbox.cells import ROOMY, footprint, problem, wait_until
from tests.sandbox.juries import SECOND_LINE, by_kattis, by_python, by_testlib, judged

pytestmark = pytest.mark.jail

A, W = Verdict.ACCEPTED, Verdict.WRONG_ANSWER
O, E = Verdict.OUTPUT_LIMIT, Verdict.CHECKER_ERROR  # noqa: E741


@pytest.fixture(scope="module")
def judge(sandbox_config: SandboxConfig) -> Iterator[Judge]:
    judge = Judge(replace(sandbox_config, checker_cpu_s=0.5), slot=0, core=None)
    yield judge
    judge.close()


@pytest.mark.parametrize(
    ("deed", "message"),
    [(b"loop", "the checker used more than 0.5 s of CPU time"), (b"sleep", "the checker had not ended after 2 s")],
)
def test_a_checker_that_never_ends_is_ended_and_not_asked_again_for_every_test(
    judge: Judge, deed: bytes, message: str
) -> None:
    judge.vet(problem(checker=by_testlib("deeds")))
    started = time.monotonic()
    results = judged(judge, by_testlib("deeds"), *[(deed + b"\n%02d\n" % number, b"") for number in range(50)])
    assert time.monotonic() - started < 30
    assert [result.verdict for result in results] == [E] * 50
    assert results[0].checker_message == message
    assert {result.checker_message for result in results[1:]} == {f"not asked: on test 0 {message}, twice"}


def test_a_checkers_processes_are_bounded_and_end_with_it(judge: Judge) -> None:
    results = judged(judge, by_testlib("deeds"), (b"fork\n\n", b""), (b"look\nxxxx\n", b""))
    assert [result.verdict for result in results] == [A, A]
    assert results[1].checker_message == "ok xxxx:/prog/main;process 1;"


def test_a_fault_of_the_checker_is_looked_into_once_more_and_blames_no_test_after_it(judge: Judge) -> None:
    """Every test is asked for its own sake: a crash on one says nothing of the next."""
    before = judge.cells_started
    results = judged(judge, by_testlib("deeds"), (b"segfault\n\n", b""), (b"integer\n123\n", b"123"))
    assert [result.verdict for result in results] == [E, A]
    # The program's, the checker's, and another for the second look.
    assert judge.cells_started - before == 3


def test_a_judge_can_be_called_off_while_a_checker_runs(judge: Judge) -> None:
    cancelled, cancel = os.pipe()
    submission = Submission(problem((b"sleep\n\n", b""), checker=by_testlib("deeds")), "python", SECOND_LINE, ROOMY)
    timer = threading.Timer(0.5, os.write, (cancel, b"x"))
    timer.start()
    try:
        with pytest.raises(Cancelled):
            judge.judge(submission, cancel_fd=cancelled)
    finally:
        timer.join()
        os.close(cancelled)
        os.close(cancel)


def test_a_checker_that_large_outputs_keep_busy_is_still_asked_about_others(judge: Judge) -> None:
    """Or whoever floods one test would have no verdict on any."""
    loops = by_python("import sys\nif len(open(sys.argv[3]).read()) > 9:\n    while True: pass\nprint(0)")
    floods = b"print('1\\n' * (9 << 20) if input() == 'flood' else 1)"
    results = judged(judge, loops, (b"flood\n", b"1"), (b"flood\n\n", b"1"), (b"\n" * 9, b"1"), source=floods)
    assert [result.verdict for result in results] == [O, O, W]
    assert results[1].checker_message.startswith("not asked: on test 0 the checker used more than")


def test_who_brought_it_about_stays_known_where_a_checker_is_not_asked_any_more(judge: Judge) -> None:
    loops = by_python("import sys\nif open(sys.argv[3]).read() != 'right':\n    while True: pass\nprint(1)")
    results = judged(judge, loops, *[(b"%d" % number, b"right") for number in range(9)], source=b"print(1)")
    assert {(result.verdict, result.provoked) for result in results} == {(E, True)}


@pytest.mark.parametrize(
    ("files", "size_bytes", "fault"),
    [
        (200, 900_000, "the checker left more than 32 feedback files"),
        (33, 1, "the checker left more than 32 feedback files"),
        (5, 900_000, "the checker left more than 4 MiB of feedback"),
        (4, 900_000, ""),
        (32, 1000, ""),
    ],
)
def test_feedback_is_bounded_as_a_whole(judge: Judge, files: int, size_bytes: int, fault: str) -> None:
    leaves = (
        "import sys\n"
        f"for n in range({files}):\n"
        "    name = f'{n}' if n else 'judgemessage.txt'\n"
        f"    open(sys.argv[3] + name, 'w').write('x' * {size_bytes})\n"
        "sys.exit(42)"
    )
    (result,) = judged(judge, by_kattis("python", {"main.py": leaves}), (b"1\n1\n", b"1"))
    said = fault or "x" * min(size_bytes, 4096)
    assert (result.verdict, result.checker_message) == (E if fault else A, said)


def test_another_pass_where_the_problem_has_one_is_the_validators_fault(judge: Judge) -> None:
    asks = "import sys\nopen(sys.argv[3] + 'nextpass.in', 'w').write('1')\nsys.exit(42)"
    (result,) = judged(judge, by_kattis("python", {"main.py": asks}), (b"1\n1\n", b"1"))
    assert (result.verdict, result.provoked) == (E, False)
    assert result.checker_message == "the checker asked for another pass, and the problem has one"


FAULTY: list[CheckerProgram] = [
    by_testlib("deeds"),
    by_kattis("python", {"v.py": "import os; os.fork(); open('/tmp/x', 'w'); os.abort()"}),
    by_python("import os; os.fork(); os.mkdir('/box/x', 0); print(1); os._exit(9)"),
]


def test_closing_a_judge_leaves_nothing_of_checkers(judge: Judge, sandbox_config: SandboxConfig) -> None:
    """Last in this module: closing one judge of a process removes the groups of all of them."""
    judge.close()
    before = footprint()
    other = Judge(sandbox_config, slot=1, core=None)
    for checker in FAULTY:
        results = judged(other, checker, (b"segfault\n\n", b""), (b"throw\n\n", b""), (b"flood\n\n", b""))
        assert [result.verdict for result in results] == [E] * 3
    other.close()
    wait_until(lambda: footprint() <= before, "nothing left", within_s=3)
