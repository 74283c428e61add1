"""Interactors that fail, run out of something, or leave too much: none of it is the program's fault."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sandbox.checkers.base import CheckerProgram, CheckerProtocol, JuryProgram
from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from sandbox.verdicts import Verdict
from tests.sandbox.conversations import (
    BESIDE,
    LIMITS,
    graded,
    jury,
    problem,
)

pytestmark = pytest.mark.jail

A, W, C, I = Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.CHECKER_ERROR, Verdict.IDLE  # noqa: E741


@pytest.fixture(scope="module")
def judge(sandbox_config: SandboxConfig) -> Iterator[Judge]:
    judge = Judge(replace(sandbox_config, checker_cpu_s=1.5), slot=0, core=None)
    yield judge
    judge.close()


@pytest.fixture(scope="module")
def patient(sandbox_config: SandboxConfig) -> Iterator[Judge]:
    """With CPU time to spare: there are machines that need a second and more to hand out a gigabyte."""
    judge = Judge(replace(sandbox_config, checker_cpu_s=20.0), slot=1, core=None)
    yield judge
    judge.close()


#: With what there is on the second look for a program's words, of which these tests allow 1 MiB: 0.25 s and 64 MiB.
FAULTS = {
    "exits 0": ("exited with status 0", "the interactor exited with status 0, which is neither 42 nor 43"),
    "exits 1": ("exited with status 1", "the interactor exited with status 1, which is neither 42 nor 43"),
    "dies": ("died of SIGSEGV", "the interactor died of signal 11"),
    "raises": ("exited with status 1", "the interactor exited with status 1, which is neither 42 nor 43: Traceback"),
    "loops": ("used more than 1.75 s of CPU time", "the interactor used more than 1.75 s of CPU time"),
    "sleeps": ("had not ended after", "the interactor had not ended after 3.75 s"),
    "floods feedback": ("wrote more than 64 MiB", "the interactor wrote more than 64 MiB to one file"),
    "scores a rejection": ("exited with status 43", "the interactor left feedback/score.txt and exited with status 43"),
    "scores nonsense": ("exited with status 42", "the interactor left a feedback/score.txt that holds no number: much"),
}


@pytest.mark.parametrize("program", BESIDE)
@pytest.mark.parametrize("deed", FAULTS)
def test_faults_of_the_interactor(judge: Judge, deed: str, program: str) -> None:
    told, said = FAULTS[deed]
    limits = replace(LIMITS, wall_s=1.0)
    (result,) = graded(judge, problem(jury("faulty.py"), (deed, "")), BESIDE[program], limits=limits)
    assert result.verdict is C, result
    assert result.checker_message.startswith(said)
    assert f"the interactor {told}" in result.message or "the interactor used" in result.message
    assert "secret" not in result.message


@pytest.mark.parametrize("program", BESIDE)
def test_memory_of_an_interactor_is_bounded(patient: Judge, program: str) -> None:
    (result,) = graded(patient, problem(jury("faulty.py"), ("eats", "")), BESIDE[program])
    assert result.verdict is C, result
    assert result.checker_message.startswith("the interactor needed more than 1088 MiB")
    assert "the interactor needed more than 1088 MiB" in result.message or "the interactor used" in result.message


@pytest.mark.parametrize(
    ("deed", "said"),
    [
        ("leaves 33 1", "the interactor left more than 32 feedback files"),
        ("leaves 3 30000000", "the interactor left more than 64 MiB of feedback"),
        ("asks for another pass", "the validator asked for more than one pass"),
        ("leaves 32 1", ""),
        ("leaves 2 30000000", ""),
    ],
)
def test_what_an_interactor_leaves_is_bounded_as_a_whole(judge: Judge, deed: str, said: str) -> None:
    (result,) = graded(judge, problem(jury("faulty.py"), (deed, "")), "")
    assert (result.verdict, result.checker_message) == (C if said else A, said)


def test_an_interactor_that_floods_a_program_which_does_not_read_is_the_programs_idling(judge: Judge) -> None:
    of = problem(jury("faulty.py"), ("floods the program", ""))
    (result,) = graded(judge, of, "import time\ntime.sleep(9)", limits=replace(LIMITS, wall_s=1.0))
    assert result.verdict is I


def test_an_interactor_that_never_stops_talking_to_a_program_that_has_gone_is_ended(judge: Judge) -> None:
    started = time.monotonic()
    (result,) = graded(judge, problem(jury("faulty.py"), ("floods the program", "")), "")
    assert (result.verdict, result.message) == (W, "the program ended, then the interactor exited with status 1")
    assert time.monotonic() - started < 1


def test_processes_of_an_interactor_are_bounded(judge: Judge) -> None:
    (result,) = graded(judge, problem(jury("faulty.py"), ("forks", "")), "input()", limits=replace(LIMITS, wall_s=1.0))
    assert result.verdict is C


def test_a_score_is_reported(judge: Judge) -> None:
    (result,) = graded(judge, problem(jury("faulty.py"), ("scores 0.25", "")), "")
    assert (result.verdict, result.score) == (A, 0.25)


def test_a_fault_is_looked_into_once_more_in_a_new_cell(judge: Judge) -> None:
    before = judge.cells_started
    results = graded(judge, problem(jury("faulty.py"), ("dies", ""), ("scores 1", "")), "")
    assert [result.verdict for result in results] == [C, A]
    # The program's, the interactor's, and another for the second look, whose own end costs one more.
    assert judge.cells_started - before <= 4


def test_an_interactor_that_runs_out_of_time_is_not_asked_again_for_every_test(judge: Judge) -> None:
    of = problem(jury("faulty.py"), *[("loops" + "\n" * number, "") for number in range(30)])
    started = time.monotonic()
    results = graded(judge, of, "input()", limits=replace(LIMITS, wall_s=1.0))
    assert time.monotonic() - started < 60
    assert {result.verdict for result in results} == {C}
    assert results[0].wall_s is not None
    assert {(result.checker_message, result.wall_s) for result in results[1:]} == {
        ("not asked: on test 0 the interactor used more than 1.75 s of CPU time, twice", None)
    }


READS_ON = """
#include <fstream>
#include <iostream>
int main(int, char** argv) {
    std::ifstream file(argv[1]);
    int secret, said = 0;
    file >> secret;
    while (said != secret) std::cin >> said;
    return 42;
}
"""


@pytest.mark.parametrize(
    ("source", "verdict", "provoked"), [("print(5)", A, False), ("", C, True), ("print('abc')", C, True)]
)
def test_an_interactor_that_reads_on_for_ever_when_nothing_comes_was_provoked(
    judge: Judge, source: str, verdict: Verdict, provoked: bool
) -> None:
    reads_on = CheckerProgram(CheckerProtocol.KATTIS, JuryProgram("cpp", (("main.cpp", READS_ON.encode()),)))
    (result,) = graded(judge, problem(reads_on, ("5", "")), source)
    assert (result.verdict, result.provoked) == (verdict, provoked), result


@pytest.mark.parametrize("deed", ["loops", "sleeps"])
def test_an_interactor_that_runs_out_of_time_whatever_is_said_was_not(judge: Judge, deed: str) -> None:
    (result,) = graded(judge, problem(jury("faulty.py"), (deed, "")), "")
    assert (result.verdict, result.provoked) == (C, False), result
