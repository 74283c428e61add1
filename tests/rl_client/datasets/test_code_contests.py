"""CodeContests: suites in the published form and in the protocol's, files instead of stdin, limits of the presets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.contract import ProblemLimits, StdioProblem, StdioTest, TokensChecker
from tests.rl_client.datasets.importing import FORMS, import_rows

ROW: dict[str, Any] = {
    "name": "1575_A. Another Sorting Problem",
    "description": "Sort.",
    "public_tests": {"input": ["2\n1 2\n"], "output": ["1 2\n"]},
    "private_tests": {"input": [], "output": []},
    "generated_tests": {"input": ["1\n7\n", "1\n8\n"], "output": ["7\n", "8\n"]},
    "source": 2,
    "difficulty": 7,
    "solutions": {"language": [3], "solution": ["print(input())"]},
    "cf_contest_id": 1575,
    "cf_index": "A",
    "cf_rating": 1100.0,
    "time_limit": {"seconds": 1, "nanos": 500_000_000},
    "memory_limit_bytes": 512_000_000,
    "input_file": "",
    "output_file": "",
}

TESTS = (
    StdioTest(input="2\n1 2\n", output="1 2\n", name="public/0"),
    StdioTest(input="1\n7\n", output="7\n", name="generated/0"),
    StdioTest(input="1\n8\n", output="8\n", name="generated/1"),
)


@pytest.mark.parametrize("form", FORMS)
def test_official_judges_as_the_sets_own_tester(tmp_path: Path, form: str) -> None:
    imported = import_rows("code-contests", tmp_path, [ROW], form=form)

    assert imported.status == 0
    assert imported.problems == [
        StdioProblem(
            kind="stdio",
            tests=TESTS,
            checker=TokensChecker(type="tokens", case_sensitive=False, float_absolute=1e-5),
            limits=ProblemLimits(cpu_s=10.0, memory_mb=288),
        )
    ]
    (line,) = imported.mapping
    assert (line["key"], line["tests"]) == ("1575_A. Another Sorting Problem", 3)
    assert line["labels"] == {
        "source": 2,
        "difficulty": 7,
        "cf_rating": 1100.0,
        "cf_contest_id": 1575,
        "cf_index": "A",
    }


def test_strict_takes_the_rows_limits_and_compares_exactly(tmp_path: Path) -> None:
    (problem,) = import_rows("code-contests", tmp_path, [ROW], "--preset", "strict").problems

    assert problem == StdioProblem(
        kind="stdio",
        tests=TESTS,
        checker=TokensChecker(type="tokens"),
        limits=ProblemLimits(cpu_s=1.5, memory_mb=489),
    )


def test_strict_without_limits_in_the_row_keeps_the_testers(tmp_path: Path) -> None:
    row = ROW | {"time_limit": None, "memory_limit_bytes": 0}
    (problem,) = import_rows("code-contests", tmp_path, [row], "--preset", "strict").problems
    assert problem.limits == ProblemLimits(cpu_s=10.0, memory_mb=288)


def test_files_instead_of_stdin(tmp_path: Path) -> None:
    row = ROW | {"input_file": "sort.in", "output_file": "sort.out"}
    (problem,) = import_rows("code-contests", tmp_path, [row]).problems
    assert isinstance(problem, StdioProblem)
    assert (problem.input_file, problem.output_file) == ("sort.in", "sort.out")


def test_suites_as_lists_of_structs(tmp_path: Path) -> None:
    row = ROW | {
        "public_tests": [{"input": "2\n1 2\n", "output": "1 2\n"}],
        "private_tests": None,
        "generated_tests": [{"input": "1\n7\n", "output": "7\n"}, {"input": "1\n8\n", "output": "8\n"}],
    }
    (problem,) = import_rows("code-contests", tmp_path, [row], form="jsonl").problems
    assert problem.tests == TESTS


NONE: dict[str, list[str]] = {"input": [], "output": []}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"public_tests": NONE, "generated_tests": NONE},
            ("no tests", "public, private and generated tests: no tests"),
        ),
        (
            {"public_tests": None, "generated_tests": {"input": ["1\n"], "output": ["\n"]}},
            ("no tests", "public, private and generated tests: every answer is empty"),
        ),
        (
            {"public_tests": {"input": ["1\n", "2\n"], "output": ["1\n"]}},
            ("malformed", "public_tests.input: 2 of them, but 1 output"),
        ),
        (
            {"public_tests": {"input": ["1\n"], "output": [None]}},
            ("malformed", "public_tests[0]: output: missing"),
        ),
        (
            {"public_tests": {"input": ["1\n"], "output": [1]}},
            ("malformed", "public_tests[0]: output: must be a string, not int"),
        ),
        ({"public_tests": "none"}, ("malformed", "public_tests: must be a list, not str")),
        ({"memory_limit_bytes": "512"}, ("malformed", "memory_limit_bytes: must be a number, not str")),
    ],
)
def test_what_is_no_problem_is_skipped(tmp_path: Path, change: dict[str, Any], reason: tuple[str, str]) -> None:
    imported = import_rows("code-contests", tmp_path, [ROW | change, ROW], "--preset", "strict", form="jsonl")

    assert (imported.status, imported.reasons) == (1, [reason])
    assert [line["row"] for line in imported.mapping] == [1]
    assert len(imported.problems) == 1
