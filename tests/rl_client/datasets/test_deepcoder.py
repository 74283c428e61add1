"""DeepCoder: lists in LiveCodeBench's form, objects in APPS', lists of SYNTHETIC-1's tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.contract import CallProblem, CallTest, LcbChecker, ProblemLimits, StdioProblem, StdioTest
from tests.rl_client.datasets.importing import FORMS, import_rows


def row(tests: Any, metadata: Any = None) -> dict[str, Any]:
    return {
        "problem": "Add.",
        "tests": tests if isinstance(tests, str) else json.dumps(tests),
        "starter_code": "",
        "metadata": {"func_name": None} if metadata is None else metadata,
        "solutions": ["print(3)"],
    }


LCB_STDIN = row([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}])
LCB_CALL = row([{"input": "[1]\n2", "output": "3", "testtype": "functional"}], {"func_name": "add"})
TACO_STDIN = row({"inputs": ["1 2\n"], "outputs": ["3\n"]})
TACO_CALL = row({"inputs": [[[1], 2]], "outputs": [3], "fn_name": "add"})
PRIME_STDIN = row([{"type": "stdin_stdout", "input": "1 2\n", "output": "3\n"}])
PRIME_CALL = row([{"type": "function_call", "fn_name": "add", "input": [[1], 2], "output": 3}])

PRIME_WRAPPED = row([{"type": "function_call", "fn_name": "add", "input": [[1], 2], "output": [3]}])
PRIME_LINES = row([{"type": "stdin_stdout", "input": ["1 2", ""], "output": ["3", ""]}])

SIX_S, TWELVE_S = (ProblemLimits(cpu_s=cpu_s, memory_mb=1024) for cpu_s in (6.0, 12.0))


def stdin(limits: ProblemLimits, exit_code: Any = "ignore") -> StdioProblem:
    tests = (StdioTest(input="1 2\n", output="3\n"),)
    return StdioProblem(kind="stdio", tests=tests, checker=LcbChecker(type="lcb"), limits=limits, exit_code=exit_code)


def call(limits: ProblemLimits, loose: bool = True) -> CallProblem:
    tests = (CallTest(args=([1], 2), expected=3),)
    return CallProblem(kind="call", function="add", prelude="lcb", loose=loose, tests=tests, limits=limits)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (LCB_STDIN, stdin(SIX_S)),
        (LCB_CALL, call(SIX_S)),
        (TACO_STDIN, stdin(TWELVE_S)),
        (TACO_CALL, call(TWELVE_S)),
        (PRIME_STDIN, stdin(TWELVE_S)),
        (PRIME_CALL, call(TWELVE_S)),
        (PRIME_WRAPPED, call(TWELVE_S)),
        (PRIME_LINES, stdin(TWELVE_S)),
    ],
)
def test_every_form_of_tests(
    tmp_path: Path, form: str, row: dict[str, Any], problem: StdioProblem | CallProblem
) -> None:
    imported = import_rows("deepcoder", tmp_path, [row], form=form)
    assert (imported.status, imported.problems) == (0, [problem])
    labels = {"function": "add"} if problem.kind == "call" else {}
    assert [line["labels"] for line in imported.mapping] == [labels]


def test_strict_heeds_exit_codes_and_types(tmp_path: Path) -> None:
    imported = import_rows("deepcoder", tmp_path, [LCB_STDIN, LCB_CALL], "--preset", "strict")
    assert imported.problems == [stdin(SIX_S, "strict"), call(SIX_S, loose=False)]


@pytest.mark.parametrize(
    "metadata",
    ['{"func_name": "add"}', {"func_name": "add"}],
    ids=["text", "struct"],
)
def test_the_function_is_named_by_the_rows_metadata(tmp_path: Path, metadata: Any) -> None:
    content = [{"input": "[1]\n2", "output": "3", "testtype": "functional"}]
    assert import_rows("deepcoder", tmp_path, [row(content, metadata)]).problems == [call(SIX_S)]


def test_the_function_is_named_by_the_tests_own_metadata(tmp_path: Path) -> None:
    content = [{"input": "[1]\n2", "output": "3", "testtype": "functional", "metadata": {"func_name": "add"}}]
    assert import_rows("deepcoder", tmp_path, [row(content)]).problems == [call(SIX_S)]


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        ("", ("no tests", "tests: empty")),
        ([], ("no tests", "tests: empty")),
        ({"inputs": [], "outputs": []}, ("no tests", "tests: no tests")),
        ("7", ("malformed", "tests: must hold a list or an object, not int")),
        ("[{", ("undecodable", "tests: not JSON")),
        ({"inputs": ["1", "2"], "outputs": ["1"]}, ("malformed", "tests.inputs: 2 of them, but 1 outputs")),
        ([7], ("malformed", "tests[0]: must be a struct, not int")),
        ([{"input": "1", "testtype": "stdin"}], ("malformed", "tests[0]: output: missing")),
        (
            [{"input": "1", "output": "1", "testtype": "functional"}],
            ("malformed", "metadata.func_name: no name of a function: 'None'"),
        ),
        (
            [{"input": [1], "fn_name": "f", "type": "function_call"}],
            ("malformed", "tests[0].input: input and output must both be"),
        ),
        (
            [{"input": [{"1": 2}], "output": 1, "fn_name": "f", "type": "function_call"}],
            ("unsupported", "tests[0].input: a dict with integers as keys"),
        ),
        (
            [{"input": [1], "output": None, "fn_name": "f", "type": "function_call"}],
            ("no tests", "tests: every answer is null"),
        ),
        (
            [{"input": "1", "output": ["1", 2], "type": "stdin_stdout"}],
            ("malformed", "tests[0]: output: must be a string, not list"),
        ),
        (
            [{"input": "1", "output": "1", "testtype": "interactive"}],
            ("unsupported", "tests: of the types interactive"),
        ),
    ],
)
def test_what_is_no_problem_is_skipped(tmp_path: Path, tests: Any, reason: tuple[str, str]) -> None:
    imported = import_rows("deepcoder", tmp_path, [row(tests), LCB_STDIN])

    assert imported.status == 1
    ((fault, words),) = imported.reasons
    assert (fault, words[: len(reason[1])]) == reason
    assert [line["row"] for line in imported.mapping] == [1]
