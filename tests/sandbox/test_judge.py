"""The judge's loop: order, stopping, compile errors, checkers, messages, faults of the grader, cancelling."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from sandbox.checkers import CheckerOutcome, Exact
from sandbox.config import SandboxConfig
from sandbox.errors import Cancelled, UnknownLanguage
from sandbox.judge import Judge
from sandbox.problem import Limits, Problem, Stop, Submission, Test, TestResult
from sandbox.stdin import Stdin
from sandbox.verdicts import Verdict
from tests.sandbox.cells import MB, ROOMY, footprint, problem, wait_until, while_running

pytestmark = pytest.mark.jail

A, W, S = Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.SKIPPED

SUM = b"print(sum(map(int, input().split())))"
ECHO = b"import sys; sys.stdout.write(sys.stdin.read())"


def verdicts(results: tuple[TestResult, ...]) -> list[Verdict]:
    return [result.verdict for result in results]


# ---------------------------------------------------------------------------------------------------------------
# Order and stopping


def of_lengths(*lengths: int) -> Problem:
    """Tests that wait for the word "yes", with input lengths as given, whatever the inputs are."""
    tests = (Test(index, f"t{index}", length, Stdin(b"yes\n"), b"yes") for index, length in enumerate(lengths))
    return replace(problem(), tests=tuple(tests))


def test_tests_run_in_ascending_length_and_ties_by_index(judge: Judge) -> None:
    ran: list[TestResult] = []
    judgement = judge.judge(Submission(of_lengths(7, 3, 7, 1, 3), "python", ECHO, ROOMY), on_test=ran.append)
    assert [result.index for result in ran] == [3, 1, 4, 0, 2]
    assert [(result.index, result.name, result.input_length) for result in judgement.tests] == [
        (0, "t0", 7),
        (1, "t1", 3),
        (2, "t2", 7),
        (3, "t3", 1),
        (4, "t4", 3),
    ]
    assert sorted(ran, key=lambda result: result.index) == list(judgement.tests)


def test_indices_are_the_problems_own(judge: Judge) -> None:
    """A part of a problem keeps the indices and the order that the whole gave it."""
    whole = of_lengths(3, 2, 1)
    part = replace(whole, tests=(whole.tests[2], whole.tests[0]))
    ran: list[int] = []
    judgement = judge.judge(Submission(part, "python", ECHO, ROOMY), on_test=lambda result: ran.append(result.index))
    assert (ran, [result.index for result in judgement.tests]) == ([2, 0], [2, 0])


FAILS_ON_3 = b"n = input()\nprint('no' if n == '3' else n)"
DESCENDING = ((b"4444\n", b"4444"), (b"3\n", b"3"), (b"22\n", b"22"), (b"\n", b""))


@pytest.mark.parametrize(("stop", "expected"), [(Stop.NEVER, [A, W, A, A]), (Stop.FIRST_FAILURE, [S, W, S, A])])
def test_what_follows_the_first_failure(judge: Judge, stop: Stop, expected: list[Verdict]) -> None:
    ran: list[Verdict] = []
    submission = Submission(problem(*DESCENDING), "python", FAILS_ON_3, ROOMY, stop)
    judgement = judge.judge(submission, on_test=lambda result: ran.append(result.verdict))
    assert verdicts(judgement.tests) == expected
    assert ran == [expected[index] for index in (3, 1, 2, 0)]


def test_a_skipped_test_has_no_figures(judge: Judge) -> None:
    submission = Submission(problem(*DESCENDING), "python", FAILS_ON_3, ROOMY, Stop.FIRST_FAILURE)
    assert judge.judge(submission).tests[0] == TestResult(0, None, 5, Verdict.SKIPPED)


# ---------------------------------------------------------------------------------------------------------------
# Compiling

BROKEN = {
    "python": (b"def f(:\n    pass\n", 'File "/prog/main.py", line 1', "SyntaxError"),
    "python-exec": (b"def f(:\n    pass\n", 'File "/prog/main.py", line 1', "SyntaxError"),
    "c": (b"int main(void) { return x; }\n", "/prog/main.c:1", "undeclared"),
    "cpp": (b"int main() { return x; }\n", "/prog/main.cpp:1", "not declared"),
    "cpp20": (b"int main() { return x; }\n", "/prog/main.cpp:1", "not declared"),
}


@pytest.mark.parametrize("language", BROKEN)
def test_a_compile_error_runs_no_test_and_says_where(judge: Judge, language: str) -> None:
    source, place, what = BROKEN[language]
    ran: list[TestResult] = []
    judgement = judge.judge(Submission(problem((b"", b"")), language, source, ROOMY), on_test=ran.append)
    assert judgement.compile is not None
    assert (judgement.compile.ok, judgement.tests, ran) == (False, (), [])
    assert place in judgement.compile.message
    assert what in judgement.compile.message
    # Nothing of the grader's own code in what the author reads.
    assert "rkgrade" not in judgement.compile.message


def test_a_judgement_says_what_it_took(judge: Judge) -> None:
    sleeps = b"import time; time.sleep(0.2); print(1)"
    judgement = judge.judge(Submission(problem((b"", b"1"), (b"\n", b"1")), "python", sleeps, ROOMY))
    assert judgement.compile is not None
    assert (judgement.compile.ok, judgement.compile.cached, judgement.compile.message) == (True, False, "")
    assert judgement.secure
    assert judgement.language_version.startswith("Python 3.")
    assert judgement.compile_s > 0
    assert judgement.run_s > 0.4


def test_an_unknown_language_is_refused(judge: Judge) -> None:
    with pytest.raises(UnknownLanguage):
        judge.judge(Submission(problem((b"", b"")), "cobol", b"", ROOMY))


# ---------------------------------------------------------------------------------------------------------------
# Checkers


@dataclass(frozen=True)
class Scores:
    """Says what it was shown, and gives half the points."""

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        return CheckerOutcome(A, f"{bytes(output)!r} for {expected!r}", 0.5)


def test_the_checker_sees_the_output_as_written_and_has_the_last_word(judge: Judge) -> None:
    writes = b"import os; os.write(1, b'a\\x00\\xff\\r\\n')"
    (result,) = judge.judge(Submission(problem((b"", b"want"), checker=Scores()), "python", writes, ROOMY)).tests
    assert (result.verdict, result.score, result.message) == (A, 0.5, "")
    assert result.checker_message == r"""b'a\x00\xff\r\n' for b'want'"""


def test_the_checker_is_not_asked_about_a_failed_run(judge: Judge) -> None:
    dies = b"print('right')\nraise SystemExit(3)"
    (result,) = judge.judge(Submission(problem((b"", b""), checker=Scores()), "python", dies, ROOMY)).tests
    assert (result.verdict, result.exit_code, result.score, result.checker_message) == (
        Verdict.RUNTIME_ERROR,
        3,
        None,
        "",
    )


def test_an_ignored_exit_status_leaves_it_to_the_checker(judge: Judge) -> None:
    dies = b"print('right')\nraise SystemExit(3)"
    lenient = problem((b"", b"right"), (b"\n", b"other"), ignore_exit_code=True)
    results = judge.judge(Submission(lenient, "python", dies, ROOMY)).tests
    assert [(result.verdict, result.exit_code, result.message) for result in results] == [(A, 3, ""), (W, 3, "")]


def test_an_empty_output_is_an_output(judge: Judge) -> None:
    exact = problem((b"", b""), (b"", b"\n"), checker=Exact())
    assert verdicts(judge.judge(Submission(exact, "python", b"", ROOMY)).tests) == [A, W]


def test_the_tails_of_both_streams_are_kept(judge: Judge) -> None:
    writes = b"import sys\nprint('x' * 9000 + 'end')\nprint('y' * 9000 + 'END', file=sys.stderr)"
    (result,) = judge.judge(Submission(problem((b"", b"")), "python", writes, ROOMY)).tests
    assert result.stdout_tail == b"x" * 4092 + b"end\n"
    assert result.stderr_tail == b"y" * 4092 + b"END\n"


# ---------------------------------------------------------------------------------------------------------------
# Messages

TIGHT = Limits(cpu_s=0.3, wall_s=20.0, memory_bytes=64 * MB, output_bytes=3 * MB // 2)

FAILURES = [
    (b"x = b'x' * (200 * 2**20)", TIGHT, Verdict.MEMORY_LIMIT, "needed more than 64 MiB"),
    (b"while True: pass", TIGHT, Verdict.TIME_LIMIT, "used more than 0.3 s of CPU time"),
    (b"print('x' * 2 * 2**20)", TIGHT, Verdict.OUTPUT_LIMIT, "wrote more than 1.5 MiB"),
    (b"raise SystemExit(7)", TIGHT, Verdict.RUNTIME_ERROR, "exited with status 7"),
    (b"import os; os.abort()", TIGHT, Verdict.RUNTIME_ERROR, "died of SIGABRT"),
    (b"import os; os.kill(os.getpid(), 40)", TIGHT, Verdict.RUNTIME_ERROR, "died of signal 40"),
    (b"print('wrong')", TIGHT, Verdict.WRONG_ANSWER, ""),
]


@pytest.mark.parametrize(("source", "limits", "verdict", "message"), FAILURES)
def test_messages_say_what_happened(
    judge: Judge, source: bytes, limits: Limits, verdict: Verdict, message: str
) -> None:
    (result,) = judge.judge(Submission(problem((b"secret", b"hidden")), "python", source, limits)).tests
    assert (result.verdict, result.message) == (verdict, message)


def test_the_message_of_an_idle_program(judge: Judge) -> None:
    sleeper = b"import time; time.sleep(1000)"
    limits = replace(ROOMY, cpu_s=2.5, wall_s=0.3)
    (result,) = judge.judge(Submission(problem((b"", b"")), "python", sleeper, limits)).tests
    assert result.verdict is Verdict.IDLE
    assert result.cpu_s is not None
    assert result.message == f"used {result.cpu_s:.3g} s of CPU time and had not ended after 0.3 s"


# ---------------------------------------------------------------------------------------------------------------
# Faults of the grader

SLOW_SUM = b"""
#include <stdio.h>
#include <unistd.h>
int main(void) { long a, b; scanf("%ld %ld", &a, &b); usleep(300000); printf("%ld\\n", a + b); }
"""
TWO_SUMS = problem((b"1 2\n", b"3"), (b"10 20\n", b"30"))


@pytest.fixture
def compiled(judge: Judge) -> Submission:
    """A program that is in the compile cache, so that no compiler's cell is mistaken for the program's."""
    submission = Submission(TWO_SUMS, "c", SLOW_SUM, ROOMY)
    assert verdicts(judge.judge(submission).tests) == [A, A]
    return submission


def kill(warden: int) -> None:
    os.kill(warden, signal.SIGKILL)


def test_a_fault_is_tried_again_in_a_new_cell(judge: Judge, compiled: Submission) -> None:
    with while_running(kill) as killed:
        judgement = judge.judge(compiled)
    assert len(killed) == 1
    assert verdicts(judgement.tests) == [A, A]


def test_a_second_fault_is_an_internal_error_of_that_test_alone(judge: Judge, compiled: Submission) -> None:
    with while_running(kill, times=2) as killed:
        judgement = judge.judge(compiled)
    assert len(killed) == 2
    assert verdicts(judgement.tests) == [Verdict.INTERNAL_ERROR, A]
    fault = judgement.tests[0]
    assert (fault.cpu_s, fault.exit_code, fault.signal, fault.score) == (None, None, None, None)
    assert fault.message.startswith("the warden is gone")


def test_faults_without_end_are_internal_errors_throughout(judge: Judge, compiled: Submission) -> None:
    with while_running(kill, times=100) as killed:
        judgement = judge.judge(compiled)
    assert len(killed) == 4
    assert verdicts(judgement.tests) == [Verdict.INTERNAL_ERROR] * 2


def test_the_judge_is_as_good_as_new_after_faults(judge: Judge, compiled: Submission) -> None:
    assert verdicts(judge.judge(compiled).tests) == [A, A]


def test_a_fault_of_a_python_cell_is_tried_again(judge: Judge) -> None:
    """The second cell must compile the source and become its zygote once more."""
    source = b"import time\na, b = map(int, input().split())\ntime.sleep(0.5)\nprint(a + b)"
    with while_running(kill) as killed:
        judgement = judge.judge(Submission(TWO_SUMS, "python", source, ROOMY))
    assert len(killed) == 1
    assert verdicts(judgement.tests) == [A, A]


# What the sweep itself uses as names, so that it cannot empty the disk.
SPOILS = b"""
import os
left = sum(len(os.listdir(directory)) for directory in ("/box", "/tmp"))
for number in range(1, 300):
    os.makedirs(f"/box/.rkgrade-sweep{number}/x/y")
print(left)
"""


@pytest.mark.parametrize("language", ["python", "python-exec"])
def test_a_scratch_disk_that_stays_dirty_costs_a_new_cell_not_a_verdict(judge: Judge, language: str) -> None:
    tests = problem((b"", b"0"), (b"\n", b"0"), (b"\n\n", b"0"))
    assert verdicts(judge.judge(Submission(tests, language, SPOILS, ROOMY)).tests) == [A, A, A]


# ---------------------------------------------------------------------------------------------------------------
# Cancelling

CancelledBy = Callable[[Judge, int, int], None]


def before_it_began(judge: Judge, reader: int, writer: int) -> None:
    os.write(writer, b"x")
    judge.judge(Submission(problem((b"", b"")), "python", b"", ROOMY), cancel_fd=reader)


def while_compiling(judge: Judge, reader: int, writer: int) -> None:
    source = b"constexpr long f(long n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n" + b"static_assert(f(60));\n"
    with while_running(lambda _: os.write(writer, b"x")):
        judge.judge(Submission(problem((b"", b"")), "cpp", source, ROOMY), cancel_fd=reader)


def while_running_a_test(judge: Judge, reader: int, writer: int) -> None:
    source = b"import time; time.sleep(1000)"
    with while_running(lambda _: os.write(writer, b"x")):
        judge.judge(Submission(problem((b"", b"")), "python-exec", source, ROOMY), cancel_fd=reader)


def between_tests(judge: Judge, reader: int, writer: int) -> None:
    tests = problem((b"", b""), (b"", b""))
    submission = Submission(tests, "python", b"", ROOMY)
    judge.judge(submission, cancel_fd=reader, on_test=lambda _: os.write(writer, b"x") and None)


@pytest.mark.parametrize("cancelled", [before_it_began, while_compiling, while_running_a_test, between_tests])
def test_cancelled(judge: Judge, cancelled: CancelledBy) -> None:
    reader, writer = os.pipe()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        cancelled(judge, reader, writer)
    os.close(reader)
    os.close(writer)
    assert time.monotonic() - started < 5
    assert verdicts(judge.judge(Submission(TWO_SUMS, "python", SUM, ROOMY)).tests) == [A, A]


# ---------------------------------------------------------------------------------------------------------------
# Cells


def test_no_cell_serves_two_submissions(judge: Judge) -> None:
    """Files, processes and the interpreter of one are unknown to the next, though the cell was made ahead of it."""
    judge.warm()
    marks = b"import os, builtins; builtins.mark = 1; os.environ['MARK'] = '1'; open('/tmp/mark', 'w'); print(1)"
    looks = b"import os, builtins; print(hasattr(builtins, 'mark'), 'MARK' in os.environ, os.listdir('/tmp'))"
    assert verdicts(judge.judge(Submission(problem((b"", b"1")), "python", marks, ROOMY)).tests) == [A]
    judge.warm()
    clean = problem((b"", b"False False []"), (b"\n", b"False False []"))
    assert verdicts(judge.judge(Submission(clean, "python", looks, ROOMY)).tests) == [A, A]


def test_no_test_knows_of_the_one_before(judge: Judge) -> None:
    source = (
        b"import os, builtins, sys, random\n"
        b"print(hasattr(builtins, 'mark'), 'mark' in sys.modules, os.path.exists('/tmp/mark'), 'm' in globals())\n"
        b"builtins.mark = m = 1; sys.modules['mark'] = os; open('/tmp/mark', 'w')\n"
    )
    clean = problem(*[(b"\n" * length, b"False False False False") for length in range(3)])
    assert verdicts(judge.judge(Submission(clean, "python", source, ROOMY)).tests) == [A, A, A]


def test_random_numbers_differ_from_test_to_test(judge: Judge) -> None:
    """The zygote imports `random` once: a seed shared by all forks would give every test the same numbers."""
    source = b"import random; print(random.random())"
    judgement = judge.judge(Submission(problem(*[(b"", b"")] * 3), "python", source, ROOMY))
    assert len({result.stdout_tail for result in judgement.tests}) == 3


def test_closing_a_judge_leaves_nothing(judge: Judge, sandbox_config: SandboxConfig) -> None:
    """Last in this module: closing one judge of a process removes the groups of all of them."""
    judge.close()
    before = footprint()
    other = Judge(sandbox_config, slot=1, core=None)
    other.warm()
    for _ in range(3):
        other.judge(Submission(TWO_SUMS, "python", SUM, ROOMY))
        other.warm()
    other.close()
    wait_until(lambda: footprint() <= before, "nothing left", within_s=3)
