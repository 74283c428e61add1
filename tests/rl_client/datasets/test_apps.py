"""APPS: texts and lists of lines, calls with wrapped answers, and keys that JSON cannot carry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.contract import CallProblem, CallTest, ProblemLimits, StdioProblem, StdioTest, TokensChecker
from tests.rl_client.datasets.importing import FORMS, import_rows

LIMITS = ProblemLimits(cpu_s=4.0, memory_mb=1024)


def row(**content: Any) -> dict[str, Any]:
    return {
        "problem_id": 0,
        "question": "Add.",
        "solutions": json.dumps(["print(sum(map(int, input().split())))"]),
        "input_output": json.dumps(content),
        "difficulty": "interview",
        "url": "https://example.com/problem/0",
        "starter_code": "",
    }


STDIN = row(inputs=["1 2\n", ["3 4", "5 6"]], outputs=["3\n", ["7", "11"]])
CALL = row(inputs=[[[1, 2], 3], [[], 0]], outputs=[[6], [0]], fn_name="add")

STDIN_TESTS = (StdioTest(input="1 2\n", output="3\n"), StdioTest(input="3 4\n5 6", output="7\n11"))
CALL_TESTS = (CallTest(args=([1, 2], 3), expected=6), CallTest(args=([], 0), expected=0))


@pytest.mark.parametrize("form", FORMS)
def test_official_is_as_near_to_the_sets_own_grader_as_order_allows(tmp_path: Path, form: str) -> None:
    imported = import_rows("apps", tmp_path, [STDIN, CALL], form=form)

    assert imported.status == 0
    assert imported.problems == [
        StdioProblem(
            kind="stdio",
            tests=STDIN_TESTS,
            checker=TokensChecker(type="tokens", float_absolute=1e-3),
            limits=LIMITS,
            exit_code="ignore",
        ),
        CallProblem(kind="call", function="add", prelude="lcb", loose=True, tests=CALL_TESTS, limits=LIMITS),
    ]
    assert [(line["key"], line["labels"]) for line in imported.mapping] == [
        ("0", {"difficulty": "interview", "url": "https://example.com/problem/0"}),
        ("0", {"difficulty": "interview", "url": "https://example.com/problem/0", "function": "add"}),
    ]


def test_strict_compares_exactly(tmp_path: Path) -> None:
    assert import_rows("apps", tmp_path, [STDIN, CALL], "--preset", "strict").problems == [
        StdioProblem(kind="stdio", tests=STDIN_TESTS, limits=LIMITS),
        CallProblem(kind="call", function="add", prelude="lcb", tests=CALL_TESTS, limits=LIMITS),
    ]


def test_answers_of_which_one_is_not_wrapped_are_all_taken_as_they_are(tmp_path: Path) -> None:
    content = row(inputs=[[1], [2]], outputs=[[1], [1, 2]], fn_name="f")
    (problem,) = import_rows("apps", tmp_path, [content]).problems
    assert [test.expected for test in problem.tests if isinstance(test, CallTest)] == [[1], [1, 2]]


def test_answers_may_have_integers_as_keys(tmp_path: Path) -> None:
    content = row(inputs=[["ab"]], outputs=[[{"1": 2}]], fn_name="f")
    (problem,) = import_rows("apps", tmp_path, [content]).problems
    assert problem.tests == (CallTest(args=("ab",), expected={"1": 2}),)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({}, ("no tests", "input_output: empty")),
        ({"inputs": [], "outputs": []}, ("no tests", "input_output: no tests")),
        ({"inputs": ["1", "2"], "outputs": ["1"]}, ("malformed", "input_output.inputs: 2 of them, but 1 outputs")),
        ({"inputs": ["1"], "outputs": [" \n"]}, ("no tests", "input_output: every answer is empty")),
        (
            {"inputs": ["1"], "outputs": [1]},
            ("malformed", "input_output.outputs[0]: must be a string or a list of strings, not int"),
        ),
        (
            {"inputs": ["1"], "outputs": [["1", 2]]},
            ("malformed", "input_output.outputs[0]: must be a string or a list of strings, not list"),
        ),
        (
            {"inputs": ["1"], "outputs": ["1"], "fn_name": "f"},
            ("malformed", "input_output.inputs[0]: must be a list of arguments, not str"),
        ),
        (
            {"inputs": [[1]], "outputs": [1], "fn_name": "f g"},
            ("malformed", "input_output.fn_name: no name of a function: 'f g'"),
        ),
        (
            {"inputs": [[{"1": "a", "-2": "b"}]], "outputs": [1], "fn_name": "f"},
            ("unsupported", "input_output.inputs[0]: a dict with integers as keys, which JSON cannot carry"),
        ),
        (
            {"inputs": [[[{"a": {"0": 1}}]]], "outputs": [1], "fn_name": "f"},
            ("unsupported", "input_output.inputs[0]: a dict with integers as keys, which JSON cannot carry"),
        ),
        ({"inputs": [[[1]]], "outputs": [[None]], "fn_name": "f"}, ("no tests", "input_output: every answer is null")),
        ({"inputs": [[1]], "outputs": [float("nan")], "fn_name": "f"}, ("refused", "tests[0].expected: ")),
    ],
)
def test_what_is_no_problem_is_skipped(tmp_path: Path, content: dict[str, Any], reason: tuple[str, str]) -> None:
    imported = import_rows("apps", tmp_path, [row(**content), STDIN])

    assert imported.status == 1
    ((fault, words),) = imported.reasons
    assert (fault, words[: len(reason[1])]) == reason
    assert [line["row"] for line in imported.mapping] == [1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ("no tests", "input_output: empty")),
        (None, ("no tests", "input_output: empty")),
        ("[]", ("no tests", "input_output: empty")),
        ("[1]", ("malformed", "input_output: must hold an object, not list")),
        ('{"inputs": ', ("undecodable", "input_output: not JSON: Expecting value: line 1 column 12 (char 11)")),
        ('{"inputs": [' + "1" * 5000 + "]}", ("undecodable", "input_output: not JSON: Exceeds the limit")),
        ("[" * 100_000, ("undecodable", "input_output: JSON nested too deeply")),
    ],
    ids=["blank", "null", "list", "other", "cut", "digits", "deep"],
)
def test_a_column_that_does_not_hold_tests(tmp_path: Path, text: str | None, reason: tuple[str, str]) -> None:
    imported = import_rows("apps", tmp_path, [STDIN | {"input_output": text}, STDIN])
    ((fault, words),) = imported.reasons
    assert (fault, words[: len(reason[1])]) == reason


def test_a_column_of_json_may_hold_what_it_stands_for(tmp_path: Path) -> None:
    read = {"input_output": json.loads(STDIN["input_output"])}
    assert (
        import_rows("apps", tmp_path, [STDIN | read], form="jsonl").problems
        == import_rows("apps", tmp_path, [STDIN]).problems
    )


def test_arguments_nested_too_deeply_spoil_their_row_alone(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    imported = import_rows("apps", tmp_path, [row(inputs=[[deep]], outputs=[1], fn_name="f"), STDIN])
    assert [fault for fault, _ in imported.reasons] == ["refused"]
    assert len(imported.problems) == 1
