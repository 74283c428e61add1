"""SYNTHETIC-1: text of JSON, text of Python's literals, structs; stdin problems and calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.contract import CallProblem, CallTest, LcbChecker, ProblemLimits, StdioProblem, StdioTest
from tests.rl_client.datasets.importing import FORMS, import_rows

STDIN_INFO: dict[str, Any] = {
    "language": "python",
    "test_cases": [{"type": "stdin_stdout", "fn_name": None, "input": "1 2\n", "output": "3\n"}],
}
CALL_INFO: dict[str, Any] = {
    "language": "python",
    "test_cases": [{"type": "function_call", "fn_name": "add", "input": [[1], 2], "output": True}],
}
METADATA: dict[str, Any] = {"difficulty": None, "time_limit": "2 seconds", "memory_limit_bytes": 268435456}


def row(info: Any, metadata: Any = "{}", solution: str = "") -> dict[str, Any]:
    return {
        "source": "apps",
        "task_type": "verifiable_code",
        "in_source_id": "0",
        "prompt": "Add.",
        "gold_standard_solution": solution,
        "verification_info": info,
        "metadata": metadata,
        "problem_id": "vfc_0",
    }


OFFICIAL = ProblemLimits(cpu_s=120.0, memory_mb=1024)
TESTS = (StdioTest(input="1 2\n", output="3\n"),)
STDIN = StdioProblem(kind="stdio", tests=TESTS, checker=LcbChecker(type="lcb"), limits=OFFICIAL, exit_code="ignore")
LABELS = {"source": "apps", "task_type": "verifiable_code", "in_source_id": "0", "language": "python"}


def call(function: str) -> CallProblem:
    tests = (CallTest(args=([1], 2), expected=True),)
    return CallProblem(kind="call", function=function, prelude="lcb", tests=tests, limits=OFFICIAL)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("spell", [json.dumps, repr], ids=["JSON", "literal"])
def test_official_judges_as_the_sets_own_verifier(tmp_path: Path, form: str, spell: Any) -> None:
    rows = [row(spell(STDIN_INFO)), row(spell(CALL_INFO))]
    imported = import_rows("synthetic1", tmp_path, rows, form=form)

    assert (imported.status, imported.problems) == (0, [STDIN, call("add")])
    assert [(line["key"], line["labels"]) for line in imported.mapping] == [
        ("vfc_0", LABELS),
        ("vfc_0", LABELS | {"function": "add"}),
    ]


def test_a_literal_with_an_unknown_escape_is_read_without_a_warning(tmp_path: Path) -> None:
    info = repr(STDIN_INFO).replace("1 2", r"1\d2")
    imported = import_rows("synthetic1", tmp_path, [row(info)])
    assert [test.given for test in imported.problems[0].tests] == ["1\\d2\n"]


@pytest.mark.parametrize("form", FORMS)
def test_structs(tmp_path: Path, form: str) -> None:
    imported = import_rows("synthetic1", tmp_path, [row(STDIN_INFO, METADATA)], form=form)
    assert (imported.status, imported.problems) == (0, [STDIN])


@pytest.mark.parametrize("language", ["python", "Python", "python3", "", None])
def test_calls_are_of_python(tmp_path: Path, language: str | None) -> None:
    imported = import_rows("synthetic1", tmp_path, [row(json.dumps(CALL_INFO | {"language": language}))])
    assert imported.problems == [call("add")]


def test_programs_that_read_stdin_may_be_in_any_language(tmp_path: Path) -> None:
    imported = import_rows("synthetic1", tmp_path, [row(json.dumps(STDIN_INFO | {"language": "javascript"}))])
    assert imported.problems == [STDIN]


@pytest.mark.parametrize(
    ("solution", "function"),
    [
        ("def add(a, b):\n    return a\n", "add"),
        ("class Solution:\n    def add(self, a, b):\n        return a\n", "add"),
        ("class Sums(object):\n\n    x = 1\n    async def add(self, a, b):\n        return a\n", "Sums.add"),
        ("class Sums:\n    def other(self): pass\n\ndef add(a, b):\n    return a\n", "add"),
        ("class Sums:\n    pass\n\ndef outer():\n    def add(): pass\n", "add"),
    ],
)
def test_a_method_is_known_by_the_sets_own_solution(tmp_path: Path, solution: str, function: str) -> None:
    rows = [row(json.dumps(CALL_INFO), solution=solution)]
    assert import_rows("synthetic1", tmp_path, rows).problems == [call(function)]


@pytest.mark.parametrize(
    ("metadata", "limits"),
    [
        (json.dumps(METADATA), ProblemLimits(cpu_s=2.0, memory_mb=256)),
        (METADATA, ProblemLimits(cpu_s=2.0, memory_mb=256)),
        (
            json.dumps({"time_limit": {"seconds": 1, "nanos": 500000000}, "memory_limit": "64 megabytes"}),
            ProblemLimits(cpu_s=1.5, memory_mb=64),
        ),
        ("{}", ProblemLimits(cpu_s=5.0, memory_mb=1024)),
        (None, ProblemLimits(cpu_s=5.0, memory_mb=1024)),
    ],
)
def test_strict_takes_the_rows_limits(tmp_path: Path, metadata: Any, limits: ProblemLimits) -> None:
    rows = [row(json.dumps(STDIN_INFO), metadata)]
    assert import_rows("synthetic1", tmp_path, rows, "--preset", "strict").problems == [
        StdioProblem(kind="stdio", tests=TESTS, limits=limits)
    ]


def of(*tests: Any) -> str:
    return json.dumps({"language": "python", "test_cases": tests})


STDIN_TEST, CALL_TEST = STDIN_INFO["test_cases"][0], CALL_INFO["test_cases"][0]


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        ("", ("no tests", "verification_info: empty")),
        (None, ("no tests", "verification_info: empty")),
        (of(), ("no tests", "verification_info.test_cases: empty")),
        ("[1]", ("malformed", "verification_info: must hold an object, not list")),
        ("{'a': ", ("undecodable", "verification_info: neither JSON nor a literal of Python")),
        ("__import__('os')", ("undecodable", "verification_info: neither JSON nor a literal of Python")),
        ("[" * 100_000, ("undecodable", "verification_info: neither JSON nor a literal of Python")),
        (of(STDIN_TEST, CALL_TEST), ("unsupported", "verification_info.test_cases: of the types function_call, stdin")),
        (of(STDIN_TEST | {"type": "other"}), ("unsupported", "verification_info.test_cases: of the types other")),
        (of(STDIN_TEST | {"output": 3}), ("malformed", "verification_info.test_cases[0]: output: must be a string")),
        (of(STDIN_TEST | {"output": " "}), ("no tests", "verification_info.test_cases: every answer is empty")),
        (of(CALL_TEST | {"input": "1"}), ("malformed", "verification_info.test_cases[0].input: must be a list")),
        (of(CALL_TEST | {"fn_name": "a-b"}), ("malformed", "verification_info.test_cases[0].fn_name: no name")),
        (
            json.dumps(CALL_INFO | {"language": "javascript"}),
            ("unsupported", "verification_info.language: calls are made to functions of Python, not of javascript"),
        ),
        (of(CALL_TEST, CALL_TEST | {"fn_name": "g"}), ("unsupported", "verification_info.test_cases: of 2 functions")),
        (
            repr({"language": "python", "test_cases": [CALL_TEST | {"input": [{1: 2}]}]}),
            ("unsupported", "verification_info.test_cases[0].input: a dict with integers as keys"),
        ),
        (
            repr({"language": "python", "test_cases": [CALL_TEST | {"input": [{1, 2}]}]}),
            ("refused", "tests[0].args"),
        ),
        (
            of({key: value for key, value in CALL_TEST.items() if key != "output"}),
            ("malformed", "verification_info.test_cases[0].output: missing"),
        ),
    ],
)
def test_what_is_no_problem_is_skipped(tmp_path: Path, info: str | None, reason: tuple[str, str]) -> None:
    imported = import_rows("synthetic1", tmp_path, [row(info), row(json.dumps(STDIN_INFO))])

    assert imported.status == 1
    ((fault, words),) = imported.reasons
    assert (fault, words[: len(reason[1])]) == reason
    assert [line["row"] for line in imported.mapping] == [1]
