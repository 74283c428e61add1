"""How a report of an ensemble looks in a terminal. A report in, tables and lines out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from rl_client.commands.evaluate_tables import shown
from rl_client.counts import counted

if TYPE_CHECKING:
    from rl_client.ensemble.report import Report

#: Problems that are named; the JSON has all.
_NAMED = 10


def tell(report: Report) -> None:
    """Print it to stdout."""
    # A row stays a row, however many checkpoints there are: a terminal wraps it, a file keeps it.
    out = Console(highlight=False, markup=False, soft_wrap=True, width=1000)
    out.print(members(report))
    out.print()
    for line in comparison(report):
        out.print(line)
    out.print()
    out.print(jaccard(report))
    for line in turnover(report):
        out.print(line)


def members(report: Report) -> Table:
    """A row for each checkpoint."""
    table = _table("")
    for name in ("alpha", "samples", "solved", "only here", f"pass@{report.budget}", "share", "best in folds"):
        table.add_column(name, justify="right")
    for one in report.members:
        fewest, most = one.samples
        table.add_row(
            one.name,
            "" if one.alpha is None else f"{one.alpha:g}",
            f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}",
            f"{one.solved:,}",
            f"{one.only_here:,}",
            shown(one.pass_at),
            f"{one.share:,}",
            f"{one.best_of_folds} of {report.splits * report.folds}",
        )
    return table


def comparison(report: Report) -> Iterator[str]:
    """The pool, the best single checkpoint, and what the difference says."""
    how = "uniform"
    if report.allocating == "optimised":
        tried = "all tried" if report.search == "exact" else "looked for one by one"
        how = f"optimised on the other folds, allocations {tried}"
    of = f", {' and '.join(report.difficulties)}" if report.difficulties else ""
    yield f"pass@{report.budget} on {counted(report.problems, 'problem')}{of}"
    yield f"  {shown(report.pool)} pool, {how}"
    yield f"  {shown(report.best)} best single checkpoint, chosen on the other folds"
    yield f"  {shown(report.best_seen)} the one that looks best on the same problems: too high"
    yield report.words
    yield f"  {shown(report.gain_seen)} over the one that looks best on the same problems: too low"
    for warning in report.warnings:
        yield f"warning: {warning}"
    folds = f"{report.splits} splits into {report.folds} folds"
    yield f"{report.level:.0%} intervals: {report.resamples:,} resamples of the problems; {folds}"


def jaccard(report: Report) -> Table:
    """Of each two checkpoints, and what chance alone would make of it."""
    names = [one.name for one in report.members]
    table = _table("Jaccard (by chance alone)")
    for name in names:
        table.add_column(name, justify="right")
    for number, name in enumerate(names):
        pairs = zip(report.turnover.jaccard[number], report.turnover.jaccard_by_chance[number], strict=True)
        table.add_row(name, *("" if at == number else _pair(*pair) for at, pair in enumerate(pairs)))
    return table


def turnover(report: Report) -> Iterator[str]:
    """What only extrapolated checkpoints solve, and how far verdicts can be trusted."""
    solved = sum(bool(one.solved_by) for one in report.turnover.problems)
    yield f"{solved:,} of {report.problems:,} problems are solved by some checkpoint"
    extrapolated = report.turnover.extrapolated
    if extrapolated is not None:
        keys = extrapolated.problems
        yield (
            f"{len(keys):,} by extrapolated ones alone ({extrapolated.by_chance:.1f} by chance alone)"
            + (f": {_named(keys)}" if keys else "")
        )
    flaky = report.flakiness
    if flaky.rate is None:
        yield "flaky verdicts: null, nothing was run twice"
    else:
        yield (
            f"flaky verdicts: {flaky.rate:.2%}, {flaky.differing:,} of {flaky.programs:,} programs that were run more "
            f"than once; correct but once {flaky.flip_rate:.2%}, {flaky.flipping:,}"
        )
    if flaky.known:
        yield f"  {counted(flaky.known, 'grading')} known to the grader, and not run: evaluate --fresh has them run"


def _named(keys: Sequence[str]) -> str:
    more = len(keys) - _NAMED
    return ", ".join(keys[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _pair(found: float | None, by_chance: float | None) -> str:
    return "null" if found is None or by_chance is None else f"{found:.2f} ({by_chance:.2f})"


def _table(corner: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(corner)
    return table
