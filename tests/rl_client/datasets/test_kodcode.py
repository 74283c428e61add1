"""KodCode: suites for pytest, with time for each of their tests, and what is read and printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.contract import LinesChecker, ProblemLimits, ScriptProblem, ScriptTest, StdioProblem, StdioTest
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
    "test": SUITE,
    "test_info": [{"function_name": "add", "function_declaration": "def add(a, b):", "docstring": "Add."}],
    "gpt_pass_percentage": 1.0,
}


#: As the pipeline that makes the set writes a row.
UNPUBLISHED = {name: value for name, value in ROW.items() if name != "test"} | {"test_code": SUITE}

ONLINE_JUDGE = ROW | {
    "style": "online_judge",
    "test": repr({"stdin": ["1 2\n", "it's 3"], "stdout": ["3\n", "3 it's"]}),
    "test_info": None,
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


def test_the_column_may_be_called_as_in_the_pipeline(tmp_path: Path) -> None:
    assert import_rows("kodcode", tmp_path, [UNPUBLISHED]).problems == import_rows("kodcode", tmp_path, [ROW]).problems


def test_a_suite_that_imports_nothing_is_given_all_as_by_its_runner(tmp_path: Path) -> None:
    suite = SUITE.partition("\n")[2]
    (problem,) = import_rows("kodcode", tmp_path, [ROW | {"test": suite}]).problems
    assert problem.tests == (ScriptTest(script=f"from solution import *\n{suite}"),)


def test_a_label_of_another_shape_spoils_no_row(tmp_path: Path) -> None:
    imported = import_rows("kodcode", tmp_path, [ROW | {"test_info": "add"}], form="jsonl")
    assert [line["labels"] for line in imported.mapping] == [{"style": "instruct", "subset": "Leetcode"}]


@pytest.mark.parametrize("preset", ["official", "strict"])
def test_rows_for_an_online_judge_are_read_and_printed(tmp_path: Path, preset: str) -> None:
    imported = import_rows("kodcode", tmp_path, [ONLINE_JUDGE], "--preset", preset)
    assert imported.problems == [
        StdioProblem(
            kind="stdio",
            tests=(StdioTest(input="1 2\n", output="3\n"), StdioTest(input="it's 3", output="3 it's")),
            checker=LinesChecker(type="lines"),
            limits=ProblemLimits(cpu_s=5.0, memory_mb=1024),
        )
    ]


def test_the_time_is_bounded(tmp_path: Path) -> None:
    suite = "import solution\n" + "".join(f"def test_{n}():\n    assert solution.f({n})\n" for n in range(100))
    (problem,) = import_rows("kodcode", tmp_path, [ROW | {"test": suite}]).problems
    assert problem.limits.cpu_s == 300.0


@pytest.mark.parametrize(
    "deed",
    [
        "assert add(1, 2) == 3",
        "unittest.TestCase().assertEqual(add(1, 2), 3)",
        "np.testing.assert_equal(add(1, 2), 3)",
        "if add(1, 2) != 3: raise AssertionError",
        "if add(1, 2) != 3: pytest.fail('no')",
        "with pytest.raises(TypeError): add(1)",
        "assert add(1, 2) == 3, '\\d'",
    ],
)
def test_there_is_more_than_one_way_to_assert(tmp_path: Path, deed: str) -> None:
    suite = f"from solution import add\ndef test_add():\n    {deed}\n"
    assert import_rows("kodcode", tmp_path, [ROW | {"test": suite}]).status == 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"test": ""}, ("no tests", "test: empty")),
        ({"test": None}, ("no tests", "test: empty")),
        ({"test": "from solution import add\n"}, ("no tests", "test: defines no test function")),
        (ONLINE_JUDGE | {"test": SUITE}, ("undecodable", "test: neither JSON nor a literal of Python")),
        (ONLINE_JUDGE | {"test": "[1]"}, ("malformed", "test: must hold an object, not list")),
        (ONLINE_JUDGE | {"test": "{}"}, ("no tests", "test: no tests")),
        (
            ONLINE_JUDGE | {"test": "{'stdin': ['1'], 'stdout': []}"},
            ("malformed", "test.stdin: 1 of them, but 0 stdout"),
        ),
        (
            ONLINE_JUDGE | {"test": "{'stdin': ['1'], 'stdout': [1]}"},
            ("malformed", "test.stdout[0]: must be a string or a list of strings, not int"),
        ),
        (
            {"test": "from solution import add\ndef test_add():\n    add(1, 2)\n"},
            ("no tests", "test: asserts nothing"),
        ),
        (
            {"test": "from solution import add\ndef test_add(:\n    assert add(1, 2) == 3\n"},
            ("malformed", "test: no Python: invalid syntax in line 2"),
        ),
        (
            {"test": SUITE + "\0"},
            ("malformed", "test: no Python: source code string cannot contain null bytes"),
        ),
        ({"test": 7}, ("malformed", "test: must be a string, not int")),
    ],
)
def test_what_is_no_problem_is_skipped(tmp_path: Path, change: dict[str, Any], reason: tuple[str, str]) -> None:
    imported = import_rows("kodcode", tmp_path, [ROW | change, ROW], form="jsonl")

    assert (imported.status, imported.reasons) == (1, [reason])
    assert [line["row"] for line in imported.mapping] == [1]


@pytest.mark.jail
@pytest.mark.parametrize("suite", [SUITE, SUITE.partition("\n")[2]], ids=["imported", "not imported"])
def test_a_grader_judges_an_imported_row_by_its_suite(tmp_path: Path, grader: Server, suite: str) -> None:
    programs = ("def add(a, b):\n    return a + b\n", "def add(a, b):\n    return 3\n")
    found = verdicts("kodcode", tmp_path, ROW | {"test": suite}, grader.url, *programs)
    assert found == ["accepted", "wrong_answer"]
