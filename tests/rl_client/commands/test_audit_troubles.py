"""Audits by graders in trouble, audits that are ended, and commands that cannot be followed."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from rl_client import patience
from rl_client.audit import run
from service.contract import Verdict, parse_problem, problem_id
from tests.rl_client.answering import Asked, answering
from tests.rl_client.audit.results import result
from tests.rl_client.commands.auditing import (
    contests_plus,
    report,
    rkgrade,
)
from tests.rl_client.datasets.importing import write
from tests.serving import RKGRADE

LANGUAGES = [{"id": "python", "name": "Python", "version": "3", "aliases": ["py3"], "suffix": ".py"}]
ROWS = [
    contests_plus(
        f"p{number}",
        time_limit=1000 + number,
        correct_submissions=[{"language": "py3", "code": f"print({number})"}],
        incorrect_submissions=[],
    )
    for number in range(6)
]


class Gone:
    """A grader that accepts some programs, and then answers nothing but 503."""

    def __init__(self, accepts: int) -> None:
        self._left = accepts
        self._lock = threading.Lock()
        self.grades = 0

    def __call__(self, one: Asked) -> tuple[int, dict[str, str], object]:
        match one.path:
            case "/health/live":
                return 200, {}, {}
            case "/languages":
                return 200, {}, LANGUAGES
            case "/problems":
                return 201, {}, {"id": problem_id(parse_problem(one.body))}
        with self._lock:
            self._left -= 1
            if self._left < 0:
                return 503, {}, {}
            self.grades += 1
        return 200, {}, json.loads(result(Verdict.ACCEPTED).model_dump_json())


def test_a_grader_that_goes_away_ends_the_audit_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "FIRST_DELAY_S", 0.01)
    path, quarantine = tmp_path / "report.jsonl", tmp_path / "quarantine.txt"
    file = write(tmp_path / "rows.jsonl", ROWS)
    with answering(Gone(4)) as url:
        options = ("--quarantine", quarantine, "--concurrency", "2", "--patience", "0.1")
        done = rkgrade("codecontests-plus", file, "--url", url, "--report", path, *options)
    assert done.exit_code == 3
    assert "did not take POST /grade for 0 s: it answers 503" in done.stderr
    assert done.stderr.endswith("; what was done is in the report\n")
    assert len(report(path)) == 4
    assert not quarantine.exists()

    healthy = Gone(100)
    with answering(healthy) as url:
        again = rkgrade("codecontests-plus", file, "--url", url, "--report", path)
    assert (again.exit_code, again.stderr) == (0, "6 rows: 2 audited, 0 skipped, 4 known already\n")
    assert (len(report(path)), healthy.grades) == (6, 2)


def test_a_grader_that_forgot_the_problem_is_given_it_again(tmp_path: Path) -> None:
    stored: list[bytes] = []
    known = Gone(100)

    def forgetful(one: Asked) -> tuple[int, dict[str, str], object]:
        if one.path == "/problems":
            stored.append(one.body)
        if one.path == "/grade" and len(stored) == 1:
            return 404, {}, {"type": "urn:rkgrade:error:not-found", "detail": "no such problem"}
        return known(one)

    path = tmp_path / "report.jsonl"
    with answering(forgetful) as url:
        done = rkgrade("codecontests-plus", write(tmp_path / "r.jsonl", ROWS[:1]), "--url", url, "--report", path)
    assert (done.exit_code, len(stored), known.grades) == (0, 2, 1)


def test_a_program_that_the_grader_refuses_is_counted(tmp_path: Path) -> None:
    known = Gone(100)

    def picky(one: Asked) -> tuple[int, dict[str, str], object]:
        return (413, {}, {"detail": "too large"}) if one.path == "/grade" else known(one)

    path = tmp_path / "report.jsonl"
    with answering(picky) as url:
        done = rkgrade("codecontests-plus", write(tmp_path / "r.jsonl", ROWS[:1]), "--url", url, "--report", path)
    (row,) = report(path)
    assert (done.exit_code, row.tpr, row.skipped) == (0, None, {"refused: too large": 1})


def test_no_more_than_so_many_problems_or_bytes_are_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each grade waits until the grader has been told of every problem that could come before it: just one."""
    monkeypatch.setattr(run, "IN_FLIGHT_BYTES", 1)
    lock, under_way, most = threading.Lock(), 0, 0
    known = Gone(100)

    def counting(one: Asked) -> tuple[int, dict[str, str], object]:
        nonlocal under_way, most
        with lock:
            under_way += one.path == "/problems"
            most = max(most, under_way)
            under_way -= one.path == "/grade"
        return known(one)

    with answering(counting) as url:
        done = rkgrade("codecontests-plus", write(tmp_path / "rows.jsonl", ROWS), "--url", url)
    assert (done.exit_code, most, known.grades) == (0, 1, 6)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_an_audit_that_is_ended_waits_for_nobody_and_keeps_what_was_done(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    hanging, over = threading.Event(), threading.Event()
    known = Gone(2)

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        answer = known(one)
        if answer[0] == 503:
            hanging.set()
            over.wait(60)
        return answer

    path, file = tmp_path / "report.jsonl", write(tmp_path / "rows.jsonl", ROWS)
    with answering(reply) as url:
        command = [str(RKGRADE), "audit", "codecontests-plus", str(file), "--url", url, "--report", str(path)]
        process = subprocess.Popen([*command, "--concurrency", "1"], stderr=subprocess.PIPE)
        try:
            assert hanging.wait(60)
            process.send_signal(number)
            process.communicate(timeout=30)
        finally:
            process.kill()
            over.set()
    assert process.returncode == status
    assert len(report(path)) == 2


# ---------------------------------------------------------------------------------------------------------------
# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["absent.jsonl"], "absent.jsonl: no such file"),
        (["--url", "grader:8000"], "--url is 'grader:8000', and an address is written as http://grader:8000"),
        (["--split", "source"], "--split needs COLUMN=VALUE, not 'source'"),
        (["--report", "absent/report"], "absent/report: No such file or directory"),
        (["--quarantine", "absent/q"], "absent/q: No such file or directory"),
        (["--language", "cobol"], "--language: the grader has no 'cobol'; it has python"),
    ],
)
def test_a_command_that_cannot_be_followed(tmp_path: Path, options: list[str], message: str) -> None:
    file = write(tmp_path / "rows.jsonl", ROWS)
    with answering(Gone(100)) as url:
        done = rkgrade("codecontests-plus", file, "--url", url, *options)
    assert (done.exit_code, done.stderr) == (2, f"rkgrade: {message}\n")


def test_a_file_that_breaks_off_keeps_what_was_done(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.parquet", ROWS)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(whole.read_bytes()[:-30])
    path = tmp_path / "report.jsonl"
    with answering(Gone(100)) as url:
        done = rkgrade("codecontests-plus", whole, broken, "--url", url, "--report", path, "--concurrency", "1")
    assert done.exit_code == 2
    assert str(broken) in done.stderr
    assert len(report(path)) >= len(ROWS) - 1


def test_rows_that_are_malformed_are_reported_and_the_rest_audited(tmp_path: Path) -> None:
    rows = [ROWS[0], ROWS[1] | {"correct_submissions": 7}, ROWS[2] | {"time_limit": "x"}, ROWS[3]]
    path, skipped = tmp_path / "report.jsonl", tmp_path / "skipped.jsonl"
    file = write(tmp_path / "rows.jsonl", rows)
    with answering(Gone(100)) as url:
        done = rkgrade("codecontests-plus", file, "--url", url, "--report", path, "--skipped", skipped)
    assert done.exit_code == 1
    assert [json.loads(line)["reason"] for line in skipped.read_text().splitlines()] == [
        "correct_submissions: must be a list, not int",
        "time_limit: must be a number, not str",
    ]
    assert sorted(row.key for row in report(path)) == ["p0", "p3"]
