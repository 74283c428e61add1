"""TACO: APPS' form with limits in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.contract import CallProblem, CallTest, ProblemLimits, StdioProblem, StdioTest, TokensChecker
from tests.rl_client.datasets.importing import FORMS, import_rows

ROW: dict[str, Any] = {
    "question": "Add.",
    "solutions": "[]",
    "starter_code": "",
    "input_output": json.dumps({"inputs": ["1 2\n"], "outputs": ["3\n"]}),
    "difficulty": "EASY",
    "raw_tags": "['math']",
    "name": "A. Sum",
    "source": "codeforces",
    "tags": "['Mathematics']",
    "skill_types": "[]",
    "url": "https://example.com/a",
    "Expected Auxiliary Space": None,
    "time_limit": "2.5 seconds",
    "date": "2019-12-31",
    "picture_num": "0",
    "memory_limit": "256.0 megabytes",
    "Expected Time Complexity": None,
}
CALL = ROW | {"input_output": json.dumps({"inputs": [[1, 2]], "outputs": [3], "fn_name": "add"})}

TESTS = (StdioTest(input="1 2\n", output="3\n"),)
LABELS = {
    "difficulty": "EASY",
    "source": "codeforces",
    "name": "A. Sum",
    "url": "https://example.com/a",
    "tags": "['Mathematics']",
    "skill_types": "[]",
}


@pytest.mark.parametrize("form", FORMS)
def test_official_has_the_sets_own_time_limit(tmp_path: Path, form: str) -> None:
    limits = ProblemLimits(cpu_s=4.0, memory_mb=1024)
    imported = import_rows("taco", tmp_path, [ROW, CALL], form=form)

    assert imported.status == 0
    assert imported.problems == [
        StdioProblem(
            kind="stdio", tests=TESTS, checker=TokensChecker(type="tokens", float_absolute=1e-3), limits=limits
        ),
        CallProblem(
            kind="call",
            function="add",
            prelude="lcb",
            loose=True,
            tests=(CallTest(args=(1, 2), expected=3),),
            limits=limits,
        ),
    ]
    assert [line["labels"] for line in imported.mapping] == [LABELS, LABELS | {"function": "add"}]


def test_strict_takes_the_rows_limits(tmp_path: Path) -> None:
    (problem,) = import_rows("taco", tmp_path, [ROW], "--preset", "strict").problems
    assert problem == StdioProblem(kind="stdio", tests=TESTS, limits=ProblemLimits(cpu_s=2.5, memory_mb=256))


@pytest.mark.parametrize(
    ("time", "memory", "limits"),
    [
        ("1 second", "64 megabytes", ProblemLimits(cpu_s=1.0, memory_mb=64)),
        ("500 ms", "1.5 GB", ProblemLimits(cpu_s=0.5, memory_mb=1536)),
        ("2.0 seconds", "4 megabytes", ProblemLimits(cpu_s=2.0, memory_mb=16)),
        (None, None, ProblemLimits(cpu_s=4.0, memory_mb=1024)),
        ("", "", ProblemLimits(cpu_s=4.0, memory_mb=1024)),
        ("soon", "0 megabytes", ProblemLimits(cpu_s=4.0, memory_mb=1024)),
    ],
)
def test_limits_in_words(tmp_path: Path, time: str | None, memory: str | None, limits: ProblemLimits) -> None:
    row = ROW | {"time_limit": time, "memory_limit": memory}
    (problem,) = import_rows("taco", tmp_path, [row], "--preset", "strict").problems
    assert problem.limits == limits


def test_a_row_without_tests_is_skipped(tmp_path: Path) -> None:
    imported = import_rows("taco", tmp_path, [ROW | {"input_output": "{}"}, ROW])
    assert (imported.status, imported.reasons) == (1, [("no tests", "input_output: empty")])
    assert [line["row"] for line in imported.mapping] == [1]
