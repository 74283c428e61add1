"""open-r1/codeforces: generated checkers, files, tests cut short, problems it cannot hold a program to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.contract import ProblemLimits, PythonChecker, StdioProblem, StdioTest, TokensChecker
from tests.rl_client.datasets.importing import FORMS, import_rows, write

CHECKER = "import sys\nprint(1)\n"

ROW: dict[str, Any] = {
    "id": "1575/A",
    "aliases": None,
    "contest_id": "1575",
    "time_limit": 1.5,
    "memory_limit": 256.0,
    "title": "Another Sorting Problem",
    "interaction_format": None,
    "rating": 1100,
    "testset_size": 2,
    "official_tests": [{"input": "1\n", "output": "1\n"}, {"input": "2\n", "output": "2\n"}],
    "official_tests_complete": True,
    "input_mode": "stdio",
    "generated_checker": CHECKER,
    "executable": True,
    "generated_tests": 0,
}

TESTS = (
    StdioTest(input="1\n", output="1\n", name="official/0"),
    StdioTest(input="2\n", output="2\n", name="official/1"),
)
PROBLEM = StdioProblem(
    kind="stdio",
    tests=TESTS,
    checker=PythonChecker(type="python", source=CHECKER),
    limits=ProblemLimits(cpu_s=1.5, memory_mb=256),
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("preset", ["official", "strict"])
def test_the_rows_own_checker_and_limits_are_used(tmp_path: Path, form: str, preset: str) -> None:
    imported = import_rows("codeforces", tmp_path, [ROW], "--preset", preset, form=form)

    assert (imported.status, imported.problems) == (0, [PROBLEM])
    (line,) = imported.mapping
    assert (line["key"], line["labels"]) == ("1575/A", {"rating": 1100, "official_tests_complete": True})


@pytest.mark.parametrize("checker", [None, "", "\n"])
def test_without_a_checker_tokens_are_compared(tmp_path: Path, checker: str | None) -> None:
    (problem,) = import_rows("codeforces", tmp_path, [ROW | {"generated_checker": checker}]).problems
    assert isinstance(problem, StdioProblem)
    assert problem.checker == TokensChecker(type="tokens")


def test_files_instead_of_stdin(tmp_path: Path) -> None:
    (problem,) = import_rows("codeforces", tmp_path, [ROW | {"input_mode": "file"}]).problems
    assert isinstance(problem, StdioProblem)
    assert (problem.input_file, problem.output_file) == ("input.txt", "output.txt")


def test_without_limits_the_usual_ones_hold(tmp_path: Path) -> None:
    row = ROW | {"time_limit": None, "memory_limit": None}
    (problem,) = import_rows("codeforces", tmp_path, [row]).problems
    assert problem.limits == ProblemLimits(cpu_s=2.0, memory_mb=256)


def test_tests_cut_short_are_enough_for_official_and_labelled(tmp_path: Path) -> None:
    row = ROW | {"official_tests_complete": False, "testset_size": 54}

    official = import_rows("codeforces", tmp_path, [row])
    assert official.mapping[0]["labels"]["official_tests_complete"] is False

    strict = import_rows("codeforces", tmp_path, [row], "--preset", "strict")
    assert strict.reasons == [("no tests", "official_tests: 2 of 54, the rest is not shown")]


def generated(folder: Path) -> Path:
    """Tests of two problems of contest 1575."""
    folder.mkdir()
    rows = [
        {"problem_id": "1575/B", "input": "0\n", "output": "0\n", "test_case_i": 1},
        {"problem_id": "1575/A", "input": "7\n", "output": "7\n", "test_case_i": 1},
        {"problem_id": "1575/A", "input": "8\n", "output": "8\n", "test_case_i": 2},
    ]
    write(folder / "test_cases_1575.parquet", rows)
    write(folder / "test_cases_0007.parquet", [rows[0] | {"problem_id": "7/A"}])
    return folder


@pytest.mark.parametrize(
    ("key", "inputs"),
    [
        ("1575/A", ["1\n", "2\n", "7\n", "8\n"]),
        ("7/A", ["1\n", "2\n", "0\n"]),
        ("1575/C", ["1\n", "2\n"]),
        ("1576/A", ["1\n", "2\n"]),
        ("../1575/A", ["1\n", "2\n"]),
    ],
)
def test_generated_tests_come_behind_the_official_ones(tmp_path: Path, key: str, inputs: list[str]) -> None:
    folder = generated(tmp_path / "generated_tests")
    (problem,) = import_rows("codeforces", tmp_path, [ROW | {"id": key}], "--tests", str(folder)).problems
    assert [test.given for test in problem.tests] == inputs


def test_generated_tests_make_up_for_official_ones_cut_short(tmp_path: Path) -> None:
    folder = generated(tmp_path / "generated_tests")
    row = ROW | {"official_tests_complete": False, "official_tests": []}
    imported = import_rows("codeforces", tmp_path, [row], "--preset", "strict", "--tests", str(folder))
    assert imported.status == 0
    assert [test.name for test in imported.problems[0].tests] == ["generated/0", "generated/1"]


def test_generated_tests_that_cannot_be_read_end_the_import(tmp_path: Path) -> None:
    folder = generated(tmp_path / "generated_tests")
    (folder / "test_cases_1575.parquet").write_text("no parquet")
    imported = import_rows("codeforces", tmp_path, [ROW], "--tests", str(folder))
    assert imported.status == 2
    assert "test_cases_1575.parquet" in imported.stderr


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"official_tests": []}, ("no tests", "official_tests: no tests")),
        ({"official_tests": None}, ("no tests", "official_tests: no tests")),
        (
            {"official_tests": [{"input": "1\n", "output": None}]},
            ("malformed", "official_tests[0]: output: missing"),
        ),
        (
            {"interaction_format": "First, read n."},
            ("unsupported", "interaction_format: an interactive problem, and the set has no interactors"),
        ),
        (
            {"executable": False},
            ("unsupported", "executable: false, so the set itself does not run programs on it"),
        ),
        ({"executable": "yes"}, ("malformed", "executable: must be true or false, not str")),
        ({"input_mode": "socket"}, ("malformed", "input_mode: must be stdio or file, not 'socket'")),
        ({"time_limit": True}, ("malformed", "time_limit: must be a number, not bool")),
    ],
)
def test_what_is_no_problem_is_skipped(tmp_path: Path, change: dict[str, Any], reason: tuple[str, str]) -> None:
    imported = import_rows("codeforces", tmp_path, [ROW | change, ROW], form="jsonl")

    assert (imported.status, imported.reasons) == (1, [reason])
    assert [line["row"] for line in imported.mapping] == [1]
