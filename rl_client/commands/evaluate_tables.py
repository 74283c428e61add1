"""How a report of an evaluation looks in a terminal. A report in, tables and lines out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from rl_client.counts import counted

if TYPE_CHECKING:
    from rl_client.evaluate.report import Report, Stratum
    from rl_client.evaluate.statistics import Estimate

_RATES = {
    "correct": "solve rate",
    "optimization_failure": "optimization failures",
    "correctness_failure": "correctness failures",
    "format_error": "format errors",
}


def tell(report: Report) -> None:
    """Print it to stdout."""
    # A row stays a row, however many difficulties there are: a terminal wraps it, a file keeps it.
    out = Console(highlight=False, markup=False, soft_wrap=True, width=1000)
    out.print(rates(report.strata))
    out.print()
    for line in totals(report):
        out.print(line)


def rates(strata: Sequence[Stratum]) -> Table:
    """A row for each rate, a column for each stratum."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for one in strata:
        table.add_column("all" if one.difficulty is None else one.difficulty, justify="right")

    def row(name: str, cells: Iterator[str]) -> None:
        table.add_row(name, *cells)

    row("problems", (f"{one.problems:,}" for one in strata))
    row("solved", (f"{one.solved:,}" for one in strata))
    row("samples", (f"{one.samples:,}" for one in strata))
    for name, words in _RATES.items():
        row(words, (shown(one.categories[name]) for one in strata))
    # Above the longest input of a stratum its R_k is R_inf, which has a row of its own.
    for rung in strata[0].rewards:
        row(rung, (shown(one.rewards.get(rung, one.rewards["R_inf"])) for one in strata))
    for k in strata[0].pass_at:
        row(f"pass@{k}", (shown(one.pass_at[k]) for one in strata))
    return table


def totals(report: Report) -> Iterator[str]:
    """The counts, a line each."""
    if report.strata[0].solve_rate.low is not None:
        yield f"{report.level:.0%} intervals: {report.resamples:,} resamples of the problems"
    else:
        yield "no intervals: they take two problems"
    yield f"{counted(report.samples, 'sample')}, {counted(report.programs, 'different program')}"
    for count, thing, words in (
        (report.faults, "sample", "at which the grader failed: in no rate; begin again, to grade them again"),
        (report.provoked, "sample", "that brought a checker down: correctness failures"),
        (report.prompts_too_long, "sample", "whose prompt the model has no room for: format errors"),
        (report.cut_off, "sample", "cut off by the model's bounds"),
        (report.problems_without_samples, "problem", "without a sample: in no rate"),
    ):
        if count:
            yield f"  {counted(count, thing)} {words}"
    costs = report.costs
    if costs.requests:
        prompt, completion = (
            "?" if count is None else f"{count:,}" for count in (costs.prompt_tokens, costs.completion_tokens)
        )
        taken = f"{counted(costs.requests, 'request')} of {costs.sampling_s:,.1f} s in all"
        yield f"{taken}: {prompt} tokens read, {completion} written"
    if costs.calls:
        yield f"{counted(costs.turns, 'turn')}, {counted(costs.calls, 'call')} of tools"
    yield f"grades took {costs.grading_s:,.1f} s in all, of which some was waiting for workers"


def shown(rate: Estimate) -> str:
    """A mean with its interval, where it has one; what rounds to nothing has no sign."""
    if rate.mean is None:
        return "null"
    if rate.low is None or rate.high is None:
        return f"{rate.mean:z.3f}"
    return f"{rate.mean:z.3f} [{rate.low:z.3f}, {rate.high:z.3f}]"
