"""What an audit shows in a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.table import Table

from rl_client.audit.rows import Thresholds
from rl_client.audit.summary import summarize
from rl_client.commands.audit_tables import quarantined, totals, verdicts
from tests.rl_client.audit.results import row

USUAL = Thresholds(min_tpr=0.9, min_tnr=0.9, least=1, max_checker_errors=0.0)

SUMMARY = summarize(
    [
        row(
            "B",
            right=(1, 2),
            wrong=(0, 0),
            checker_errors=1,
            verdicts={"right": {"accepted": 1, "wrong_answer": 1}, "wrong": {"checker_error": 1}},
            skipped={"language py2": 1234},
        ),
        row("", row=7, right=(0, 0), wrong=(0, 3)),
    ],
    USUAL,
)


def lines(table: Table) -> list[str]:
    out = StringIO()
    Console(file=out, width=120).print(table)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_quarantined_problems_by_name_or_place() -> None:
    assert lines(quarantined(SUMMARY)) == [
        "problem right TPR wrong TNR checker errors quarantined for",
        "B 1 of 2 0.500 0 of 0 null 1 tpr, checker_error",
        "rows.jsonl row 7 0 of 0 null 0 of 3 0.000 tnr",
    ]


def test_verdicts_by_label() -> None:
    assert lines(verdicts(SUMMARY)) == ["label accepted checker_error wrong_answer", "right 1 1", "wrong 1"]


def test_totals() -> None:
    assert list(totals(SUMMARY)) == [
        "2 problems, 2 to quarantine (1 checker_error, 1 tnr, 1 tpr)",
        "  TPR 0.500 (1 of 2 right programs accepted, 2 in the set; mean of 1 problem: 0.500)",
        "  TNR 0.000 (0 of 3 wrong programs rejected, 3 in the set; mean of 1 problem: 0.000)",
        "  programs not graded: 1,234 language py2",
    ]


def test_nothing_known_says_null() -> None:
    assert list(totals(summarize([], USUAL)))[1].startswith("  TPR null (0 of 0 ")
