"""KodCode: suites for pytest, with time for each of their tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.contract import ProblemLimits, ScriptProblem, ScriptTest
from tests.rl_client.datasets.importing import FORMS, import_rows, verdicts
from tests.serving import Server

SUITE = """from solution import add


def test_small():
    assert add(1, 2) == 3


class TestMore:
    def test_large(self):
        assert add(10**20, 1) == 10**20 + 1
"""

ROW: dict[str, Any] = {
    "style": "instruct",
    "subset": "Leetcode",
    "question_id": "Leetcode_1_I",
    "question": "Add.",
    "solution": "def add(a, b):\n    return a + b\n",
    "test_code": SUITE,
    "test_info": [{"function_name": "add", "function_declaration": "def add(a, b):", "docstring": "Add."}],
    "gpt_pass_percentage": 1.0,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("preset", ["official", "strict"])
def test_the_suite_is_taken_whole(tmp_path: Path, form: str, preset: str) -> None:
    imported = import_rows("kodcode", tmp_path, [ROW], "--preset", preset, form=form)

    assert (imported.status, imported.problems) == (
        0,
        [
            ScriptProblem(
                kind="script",
                runner="pytest",
                tests=(ScriptTest(script=SUITE),),
                limits=ProblemLimits(cpu_s=10.0, memory_mb=1024),
            )
        ],
    )
    assert [(line["key"], line["labels"]) for line in imported.mapping] == [
        ("Leetcode_1_I", {"style": "instruct", "subset": "Leetcode", "function": "add"})
    ]


def test_the_time_is_bounded(tmp_path: Path) -> None:
    suite = "import solution\n" + "".join(f"def test_{n}():\n    assert solution.f({n})\n" for n in range(100))
    (problem,) = import_rows("kodcode", tmp_path, [ROW | {"test_code": suite}]).problems
    assert problem.limits.cpu_s == 300.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"test_code": ""}, ("no tests", "test_code: empty")),
        ({"test_code": None}, ("no tests", "test_code: empty")),
        ({"test_code": "from solution import add\n"}, ("no tests", "test_code: defines no test function")),
        (
            {"test_code": "def test_nothing():\n    assert True\n"},
            ("malformed", "test_code: imports nothing from the solution"),
        ),
        ({"test_code": 7}, ("malformed", "test_code: must be a string, not int")),
    ],
)
def test_what_is_no_problem_is_skipped(tmp_path: Path, change: dict[str, Any], reason: tuple[str, str]) -> None:
    imported = import_rows("kodcode", tmp_path, [ROW | change, ROW], form="jsonl")

    assert (imported.status, imported.reasons) == (1, [reason])
    assert [line["row"] for line in imported.mapping] == [1]


@pytest.mark.jail
def test_a_grader_judges_an_imported_row_by_its_suite(tmp_path: Path, grader: Server) -> None:
    programs = ("def add(a, b):\n    return a + b\n", "def add(a, b):\n    return 3\n")
    found = verdicts("kodcode", tmp_path, ROW, grader.url, *programs)
    assert found == ["accepted", "wrong_answer"]
