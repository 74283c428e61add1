"""open-r1/codeforces: generated checkers, files, tests cut short, problems it cannot hold a program to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.contract import ProblemLimits, PythonChecker, StdioProblem, StdioTest, TokensChecker
from tests.rl_client.datasets.importing import FORMS, import_rows

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

TESTS = (StdioTest(input="1\n", output="1\n"), StdioTest(input="2\n", output="2\n"))
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
