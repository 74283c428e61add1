"""The report on disk: added to line by line, read again, and never written by two at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_client.audit.report import Report
from rl_client.datasets.base import DatasetError
from tests.rl_client.audit.results import row


def test_lines_are_there_at_once_and_are_known_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    with Report(path) as report:
        assert not report.has("audit of A")
        report.add(row("A"))
        report.add(row("B"))
        assert len(path.read_text().splitlines()) == 2
    with Report(path) as report:
        assert (report.has("audit of A"), report.has("audit of C"), len(report)) == (True, False, 2)
        report.add(row("C"))
        assert list(report.rows()) == [row("A"), row("B"), row("C")]


def test_the_last_line_of_a_problem_counts(tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    newer = row("A", audit="newer", tests=7)
    with Report(path) as report:
        for one in (row("A"), row("B"), newer):
            report.add(one)
        assert list(report.rows()) == [row("B"), newer]
    with Report(path) as report:
        assert list(report.rows()) == [row("B"), newer]


def test_what_the_grader_failed_at_is_not_done(tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    with Report(path) as report:
        report.add(row("A", internal_errors=1))
        assert not report.has("audit of A")
        report.add(row("A"))
    with Report(path) as report:
        assert report.has("audit of A")


@pytest.mark.parametrize("cut", [1, 40])
def test_a_line_that_was_cut_off_is_taken_away(tmp_path: Path, cut: int) -> None:
    """`cut` 1 leaves a whole line but for its end."""
    path = tmp_path / "report.jsonl"
    with Report(path) as report:
        report.add(row("A"))
        report.add(row("B"))
    path.write_bytes(path.read_bytes()[:-cut])
    with Report(path) as report:
        assert (report.has("audit of A"), report.has("audit of B")) == (True, False)
        report.add(row("C"))
    with Report(path) as report:
        assert list(report.rows()) == [row("A"), row("C")]


def test_a_file_that_is_no_report_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(row().model_dump_json() + '\n{"key": 1}\n')
    before = path.read_bytes()
    with pytest.raises(DatasetError, match="line 2 is none of an audit's report"), Report(path):
        pass
    assert path.read_bytes() == before


def test_two_audits_do_not_write_the_same_report(tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    with Report(path), pytest.raises(DatasetError, match="another audit is writing it"), Report(path):
        pass


def test_without_a_file_it_is_kept_for_the_time_being() -> None:
    with Report(None) as report:
        report.add(row("A"))
        assert list(report.rows()) == [row("A")]


@pytest.mark.parametrize("name", ["absent/report.jsonl", "."])
def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError) as error, Report(tmp_path / name):
        pass
    assert str(error.value).startswith(f"{tmp_path / name}: ")
