"""No forgery passes a script problem, and none chooses to have no verdict at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from sandbox.problem import Limits, Submission
from tests.hostile.case import MB
from tests.hostile.forged_ends import ENDS
from tests.hostile.forged_objects import OBJECTS
from tests.hostile.forged_surroundings import SURROUNDINGS
from tests.sandbox.scripting import on_script, script_problem

pytestmark = pytest.mark.jail

FORGERIES = OBJECTS | ENDS | SURROUNDINGS

SLOT = 6
LIMITS = Limits(cpu_s=2.0, wall_s=4.0, memory_bytes=128 * MB, output_bytes=4 * MB)


@pytest.fixture(scope="module")
def judge(config: SandboxConfig) -> Iterator[Judge]:
    # A tester that a program keeps busy is to be given up soon.
    judge = Judge(replace(config, checker_cpu_s=3.0), slot=SLOT, core=None)
    yield judge
    judge.close()


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_does_not_pass(judge: Judge, name: str) -> None:
    forgery = FORGERIES[name]
    result = on_script(judge, forgery.source, forgery.script, forgery.runner, forgery.entry_point, limits=LIMITS)
    assert result.verdict.value == forgery.verdict, (result.message, result.checker_message)
    assert forgery.message in (None, result.message)


def test_what_cannot_cross_once_the_program_has_chosen_is_provoked(judge: Judge) -> None:
    script = "class Own: pass\nassert f(lambda n: {0: 1}.get(n, Own())) == 40\n"
    result = on_script(judge, "def f(g): g(7)", script, limits=LIMITS)
    assert (result.verdict.value, result.provoked) == ("checker_error", True)


@pytest.mark.parametrize("script", ["assert eval(f(3)) == 40\n", "import pickle\nassert pickle.loads(f(3)) == 40\n"])
def test_what_is_not_evaluated_is_provoked(judge: Judge, script: str) -> None:
    source = "import os, pickle\nclass End:\n    def __reduce__(self): return os._exit, (0,)\n"
    text = "'exit()'" if "eval" in script else "pickle.dumps(End())"
    result = on_script(judge, f"{source}def f(x): return {text}", script, limits=LIMITS)
    assert (result.verdict.value, result.provoked) == ("checker_error", True)


def test_a_test_at_fault_by_itself_is_not_provoked(judge: Judge) -> None:
    result = on_script(judge, "def f(x): return x", "class Own: pass\nf(Own())\n", limits=LIMITS)
    assert (result.verdict.value, result.provoked) == ("checker_error", False)


@pytest.mark.parametrize(
    ("script", "verdict"), [("for i in range(f(3)): pass\n", "wrong_answer"), ("while True: pass\n", "checker_error")]
)
def test_tests_that_run_out_are_given_up(judge: Judge, script: str, verdict: str) -> None:
    problem = script_problem(*[script] * 20)
    judgement = judge.judge(Submission(problem, "python", b"def f(x): return 10 ** 18", LIMITS))
    assert {(result.verdict.value, result.provoked) for result in judgement.tests} == {(verdict, False)}
    # Where the program is to blame, a clock has said so.
    assert {result.by_clock for result in judgement.tests} == {verdict == "wrong_answer"}
    assert [result.message.startswith("not run: ") for result in judgement.tests].count(True) >= 18
