"""How an audit looks in a terminal. Pure: a summary in, tables and lines out."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from rl_client.audit.rows import ProblemRow, SideRow
from rl_client.audit.summary import Side, Summary
from rl_client.counts import counted

_KINDS = {
    "false_negative": "right programs rejected",
    "false_positive": "wrong programs accepted",
    "unexpected": "wrong programs rejected otherwise than labelled",
    "compile_error": "programs that do not compile",
    "fault": "faults of the grader or of a checker",
}


def quarantined(summary: Summary) -> Table:
    """A row for each quarantined problem, up to a bound."""
    table = _table("problem", "right", "TPR", "wrong", "TNR", "checker errors", "quarantined for")
    for row in summary.worst:
        table.add_row(
            _name(row),
            _counts(row.correct),
            _rate(row.tpr),
            _counts(row.incorrect),
            _rate(row.tnr),
            str(row.checker_errors or ""),
            ", ".join(row.quarantine),
        )
    return table


def verdicts(summary: Summary) -> Table:
    """What the programs of each label came to."""
    names = sorted({verdict for counts in summary.verdicts.values() for verdict in counts})
    table = _table("label", *names)
    for label, counts in sorted(summary.verdicts.items()):
        table.add_row(label, *(f"{counts[name]:,}" if counts[name] else "" for name in names))
    return table


def totals(summary: Summary) -> Iterator[str]:
    """The counts, a line each."""
    yield f"{counted(summary.problems, 'problem')}, {summary.quarantined:,} to quarantine" + _listed(summary.reasons)
    yield "  TPR " + _side(summary.correct, "right", "accepted")
    yield "  TNR " + _side(summary.incorrect, "wrong", "rejected")
    if summary.without_rate:
        yield f"  {counted(summary.without_rate, 'problem')} with neither rate: nothing is known there"
    for kind, words in _KINDS.items():
        if summary.kinds[kind]:
            yield f"  {words}: {summary.kinds[kind]:,}"
    if summary.skipped:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in summary.skipped.most_common(8))
        more = "" if len(summary.skipped) <= 8 else ", ..."
        yield f"  programs not graded: {counts}{more}"


def _side(side: Side, what: str, agreed: str) -> str:
    of = f"{side.agreed:,} of {side.graded:,} {what} programs {agreed}, {side.labelled:,} in the set"
    return f"{_rate(side.pooled)} ({of}; mean of {counted(side.rates, 'problem')}: {_rate(side.mean)})"


def _listed(reasons: dict[str, int]) -> str:
    return f" ({', '.join(f'{count:,} {reason}' for reason, count in sorted(reasons.items()))})" if reasons else ""


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _name(row: ProblemRow) -> str:
    return row.key or (row.file if row.row is None else f"{row.file} row {row.row}")


def _counts(side: SideRow) -> str:
    return f"{side.agreed} of {side.graded}"


def _rate(rate: float | None) -> str:
    return "null" if rate is None else f"{rate:.3f}"
