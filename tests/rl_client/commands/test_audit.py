"""Audits of Kattis packages with right, wrong and mislabelled programs, by a real grader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rl_client.commands.auditing import (
    ADD,
    CONSTANT,
    CPP_ADD,
    CRASH,
    EXAMPLE,
    SLOW,
    package,
    report,
    rkgrade,
    told_apart,
)
from tests.rl_client.datasets.test_kattis import write_package
from tests.serving import Server


@pytest.mark.jail
def test_the_example_is_sound(tmp_path: Path, grader: Server) -> None:
    path, quarantine = tmp_path / "report.jsonl", tmp_path / "quarantine.txt"
    done = rkgrade("kattis", EXAMPLE, "--url", grader.url, "--report", path, "--quarantine", quarantine)

    assert (done.exit_code, done.stderr) == (0, "1 row: 1 audited, 0 skipped\n")
    (row,) = report(path)
    assert (row.key, row.kind, row.tests, *told_apart(row)) == ("two-sum-count", "stdio", 11, 1.0, 1.0, ())
    assert row.verdicts == {
        "accepted": {"accepted": 1},
        "time_limit_exceeded": {"time_limit": 1},
        "wrong_answer": {"wrong_answer": 1},
    }
    assert row.disagreements == ()
    assert quarantine.read_text() == ""
    assert "1 problem, 0 to quarantine" in done.stdout


@pytest.mark.jail
def test_wrong_labels_are_quarantined_and_named(tmp_path: Path, grader: Server) -> None:
    """A right program that is wrong, a wrong one that is right, and a slow one that is quick and wrong."""
    bad = package(
        tmp_path / "bad",
        {
            "accepted/add.py": ADD,
            "accepted/constant.py": CONSTANT,
            "wrong_answer/add.py": ADD + "\n",
            "wrong_answer/constant.py": CONSTANT,
            "time_limit_exceeded/constant.py": CONSTANT,
            "time_limit_exceeded/slow.py": SLOW,
            "run_time_error/crash.py": CRASH,
            "brute_force/slow.py": SLOW,
            "rejected/crash.py": CRASH,
        },
    )
    good = package(tmp_path / "good", {"accepted/add.py": ADD, "wrong_answer/constant.py": CONSTANT})
    path, quarantine = tmp_path / "report.jsonl", tmp_path / "quarantine.txt"
    done = rkgrade("kattis", good, bad, "--url", grader.url, "--report", path, "--quarantine", quarantine)

    assert done.exit_code == 1
    rows = {row.key: row for row in report(path)}
    assert told_apart(rows["good"]) == (1.0, 1.0, ())
    assert told_apart(rows["bad"]) == (0.5, 6 / 7, ("tpr", "tnr"))
    assert [(one.name, one.kind, one.verdict, one.test) for one in rows["bad"].disagreements] == [
        ("accepted/constant.py", "false_negative", "wrong_answer", "secret/01"),
        ("time_limit_exceeded/constant.py", "unexpected", "wrong_answer", "secret/01"),
        ("wrong_answer/add.py", "false_positive", "accepted", None),
    ]
    assert rows["bad"].verdicts["time_limit_exceeded"] == {"wrong_answer": 1, "time_limit": 1}
    assert rows["bad"].unexpected == 1
    assert quarantine.read_text() == f"{rows['bad'].problem_id}\n"
    assert "2 problems, 1 to quarantine (1 tnr, 1 tpr)" in done.stdout
    assert "wrong programs rejected otherwise than labelled: 1" in done.stdout


CRASHING = "import sys\nif int(sys.stdin.read()) < 9: sys.exit(1)\nsys.exit(42)\n"


@pytest.mark.jail
def test_a_checker_that_crashes_counts_for_nobody(tmp_path: Path, grader: Server) -> None:
    """It exits with 1, outside its protocol, on answers below 9: on the sample of the right program, too."""
    validator = package(
        tmp_path / "p",
        {"accepted/add.py": ADD, "accepted/nine.py": "print(9)", "wrong_answer/constant.py": CONSTANT},
        **{"output_validator/check.py": CRASHING},
    )
    path = tmp_path / "report.jsonl"
    done = rkgrade("kattis", validator, "--url", grader.url, "--report", path)

    assert done.exit_code == 1
    (row,) = report(path)
    assert told_apart(row) == (1.0, None, ("checker_error",))
    assert (row.correct.graded, row.incorrect.graded, row.checker_errors) == (1, 0, 2)
    assert [(one.name, one.kind) for one in row.disagreements] == [
        ("accepted/add.py", "fault"),
        ("wrong_answer/constant.py", "fault"),
    ]

    lax = rkgrade("kattis", validator, "--url", grader.url, "--report", path, "--max-checker-errors", "0.7")
    assert (lax.exit_code, lax.stderr) == (0, "1 row: 0 audited, 0 skipped, 1 known already\n")


@pytest.mark.jail
def test_programs_that_cannot_be_graded_are_counted_apart(tmp_path: Path, grader: Server) -> None:
    odd = package(
        tmp_path / "odd",
        {
            "accepted/add.cpp": CPP_ADD,
            "accepted/broken.cpp": "int main( {}",
            "accepted/cobol.cob": "STOP RUN.",
            "accepted/several/a.py": ADD,
            "accepted/several/b.py": ADD,
            "wrong_answer/broken.py": "print(",
        },
    )
    path = tmp_path / "report.jsonl"
    done = rkgrade("kattis", odd, "--url", grader.url, "--report", path)

    assert done.exit_code == 0
    (row,) = report(path)
    assert told_apart(row) == (1.0, None, ())
    assert (row.correct.labelled, row.correct.graded, row.incorrect.labelled, row.incorrect.graded) == (4, 1, 1, 0)
    assert row.skipped == {"language .cob": 1, "several files": 1}
    assert row.compile_errors == 2
    assert "programs that do not compile: 2" in done.stdout


@pytest.mark.jail
def test_packages_that_are_no_problem_are_skipped(tmp_path: Path, grader: Server) -> None:
    silent = write_package(tmp_path / "silent", {})
    broken = package(tmp_path / "broken", {"accepted/add.py": ADD, "submissions.yaml": "accepted: 7\n"})
    refused = package(tmp_path / "refused", {"accepted/add.py": ADD}, **{"output_validator/check.cpp": "int main( {}"})
    path, skipped = tmp_path / "report.jsonl", tmp_path / "skipped.jsonl"
    done = rkgrade(
        "kattis", silent, broken, refused, tmp_path, "--url", grader.url, "--report", path, "--skipped", skipped
    )

    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1] == "4 rows: 1 audited, 3 skipped"
    lines = [json.loads(line) for line in skipped.read_text().splitlines()]
    reasons = {Path(line["file"]).name: (line["fault"], line["reason"].splitlines()[0]) for line in lines}
    assert reasons["broken"] == ("malformed", "submissions/submissions.yaml: accepted: must hold a map of settings")
    assert reasons[tmp_path.name] == ("malformed", "problem.yaml: missing, so this is no Kattis problem package")
    assert reasons["refused"][0] == "refused"
    assert "checker.source" in reasons["refused"][1]
    (row,) = report(path)
    assert (row.key, *told_apart(row)) == ("silent", None, None, ())
    assert "1 problem with neither rate" in done.stdout
