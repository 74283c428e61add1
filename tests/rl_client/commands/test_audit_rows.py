"""Audits of the rows of every set that has programs, by a real grader; and one that goes on where it was left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rl_client.commands.auditing import (
    ADD,
    CPP_ADD,
    contests_plus,
    report,
    rkgrade,
    told_apart,
)
from tests.rl_client.datasets.importing import write
from tests.serving import Server, metric


@pytest.mark.jail
def test_codecontests_plus(tmp_path: Path, grader: Server) -> None:
    rows = [
        contests_plus("good"),
        contests_plus("weak", test_cases=[{"input": "10\n", "output": "1\n"}]),
        contests_plus("empty", test_cases=[]),
    ]
    path, quarantine = tmp_path / "report.jsonl", tmp_path / "quarantine.txt"
    file = write(tmp_path / "rows.parquet", rows)
    done = rkgrade(
        "codecontests-plus", file, "--url", grader.url, "--report", path, "--quarantine", quarantine, "--sources"
    )

    assert done.exit_code == 1
    assert done.stderr.splitlines() == [
        f"rkgrade: {file} row 2: test_cases: no tests",
        "3 rows: 2 audited, 1 skipped",
    ]
    found = {row.key: row for row in report(path)}
    assert told_apart(found["good"]) == (1.0, 1.0, ())
    assert found["good"].verdicts == {
        "correct_submissions": {"accepted": 3},
        "incorrect_submissions": {"wrong_answer": 2},
    }
    assert found["good"].skipped == {"language py2": 1, "no source": 1}
    assert told_apart(found["weak"]) == (1.0, 0.5, ("tnr",))
    (one,) = found["weak"].disagreements
    assert (one.name, one.kind, one.source) == ("incorrect_submissions[1]", "false_positive", "print(4)")
    assert quarantine.read_text().split() == [found["weak"].problem_id]


@pytest.mark.jail
def test_limits_by_language_and_number(tmp_path: Path, grader: Server) -> None:
    path, file = tmp_path / "report.jsonl", write(tmp_path / "rows.jsonl", [contests_plus("a")])
    options = ("--language", "C++17", "--per-label", "1", "--least", "2")
    rkgrade("codecontests-plus", file, "--url", grader.url, "--report", path, *options)

    (row,) = report(path)
    assert (row.correct.labelled, row.correct.graded, row.incorrect.graded) == (4, 1, 0)
    assert (row.tpr, row.skipped["language not asked for"]) == (None, 4)


@pytest.mark.jail
@pytest.mark.parametrize(
    ("name", "row", "verdicts"),
    [
        (
            "code-contests",
            {
                "name": "A",
                "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
                "solutions": {"language": [3, 2, 1], "solution": [ADD, CPP_ADD, "print 3"]},
                "incorrect_solutions": {"language": [3], "solution": ["print(4)"]},
            },
            {"solutions": {"accepted": 2}, "incorrect_solutions": {"wrong_answer": 1}},
        ),
        (
            "apps",
            {
                "problem_id": 1,
                "input_output": json.dumps({"inputs": ["1 2\n"], "outputs": ["3\n"]}),
                "solutions": json.dumps([ADD, "print 3"]),
            },
            {"solutions": {"accepted": 1, "compile_error": 1}},
        ),
        (
            "taco",
            {
                "input_output": json.dumps({"inputs": [[1, 2]], "outputs": [3], "fn_name": "add"}),
                "solutions": json.dumps(["def add(a, b):\n    return a + b\n"]),
            },
            {"solutions": {"accepted": 1}},
        ),
        (
            "deepcoder",
            {
                "tests": json.dumps([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]),
                "solutions": [f"```python\n{ADD}\n```"],
            },
            {"solutions": {"accepted": 1}},
        ),
        (
            "synthetic1",
            {
                "problem_id": "x",
                "verification_info": json.dumps(
                    {
                        "language": "python",
                        "test_cases": [{"type": "stdin_stdout", "input": "1 2\n", "output": "3\n", "fn_name": None}],
                    }
                ),
                "gold_standard_solution": f"```python\n{ADD}\n```",
            },
            {"gold_standard_solution": {"accepted": 1}},
        ),
        (
            "kodcode",
            {
                "question_id": "K1",
                "test_code": "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n",
                "solution": "def add(a, b):\n    return a + b\n",
            },
            {"solution": {"accepted": 1}},
        ),
        (
            "humaneval-plus",
            {
                "task_id": "HumanEval/0",
                "entry_point": "add",
                "prompt": "def add(a, b):\n",
                "canonical_solution": "    return a + b\n",
                "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
            },
            {"canonical_solution": {"accepted": 1}},
        ),
        (
            "mbpp-plus",
            {
                "task_id": 2,
                "code": "def add(a, b):\n    return a + b\n",
                "test_list": ["assert add(1, 2) == 3"],
                "test": "assert add(1, 2) == 3\nassert add(2, 2) == 4\n",
            },
            {"code": {"accepted": 1}},
        ),
    ],
)
def test_every_other_set(
    tmp_path: Path, grader: Server, name: str, row: dict[str, Any], verdicts: dict[str, dict[str, int]]
) -> None:
    path = tmp_path / "report.jsonl"
    done = rkgrade(name, write(tmp_path / "rows.jsonl", [row]), "--url", grader.url, "--report", path)

    assert done.exit_code == 0, done.stdout
    (found,) = report(path)
    assert found.verdicts == verdicts
    assert (found.tpr, found.tnr) == (1.0, 1.0 if name == "code-contests" else None)


@pytest.mark.jail
def test_an_audit_goes_on_where_it_was_left(tmp_path: Path, grader: Server) -> None:
    """The second run grades what is new, and what is otherwise asked for; the third has all of it."""
    path, quarantine = tmp_path / "report.jsonl", tmp_path / "quarantine.txt"
    file = write(tmp_path / "rows.jsonl", [contests_plus(key) for key in "ab"])
    weak = contests_plus("c", test_cases=[{"input": "10\n", "output": "1\n"}])
    more = write(tmp_path / "more.jsonl", [contests_plus("a"), weak, contests_plus("d", time_limit=1001)])

    def audited(*arguments: str | Path) -> tuple[float, str]:
        before = metric(grader.url, "rkgrade_grades_total")
        done = rkgrade("codecontests-plus", *arguments, "--url", grader.url, "--report", path)
        return metric(grader.url, "rkgrade_grades_total") - before, done.stderr.splitlines()[-1]

    # Both rows are the same problem with the same programs.
    assert audited(file) == (5, "2 rows: 1 audited, 0 skipped, 1 known already")
    assert audited(more, "--quarantine", quarantine) == (10, "3 rows: 2 audited, 0 skipped, 1 known already")
    assert audited(file, more) == (0, "5 rows: 0 audited, 0 skipped, 5 known already")
    assert audited(file, "--time-factor", "2.0") == (5, "2 rows: 1 audited, 0 skipped, 1 known already")
    assert quarantine.read_text().split() == [row.problem_id for row in report(path) if row.key == "c"]
