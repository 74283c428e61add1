"""How one result looks in a terminal: verdicts by input size, rewards and category. Pure: results in, tables out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rich.table import Table
from rich.text import Text

from sandbox.verdicts import LIMIT_VERDICTS, Verdict
from service.contract import GradeResult, TestRow


def verdict_style(verdict: str) -> str:
    """Green for accepted, yellow for limits, dim for what did not run, red for the rest."""
    if verdict == Verdict.ACCEPTED:
        return "green"
    if verdict == Verdict.SKIPPED:
        return "dim"
    return "yellow" if verdict in LIMIT_VERDICTS else "red"


def headline(result: GradeResult) -> Text:
    """Program, language, verdict and category in one line, with the score where there is one."""
    line = Text.assemble(
        (plain(result.id or ""), "bold"), f" ({result.language}): ", (result.verdict, verdict_style(result.verdict))
    )
    line.append(f", {result.category or 'no category: the grader failed'}")
    if result.first_failure_length is not None:
        line.append(f", first at input length {result.first_failure_length:,}")
    if not result.grader.secure:
        line.append(", ")
        line.append("insecure: without control groups limits can be evaded, and memory is not measured", "bold red")
    if result.score is not None:
        most = math.fsum(row.max_points for row in result.point_groups)
        line.append(f", score {result.score:g} of {most:g}")
    return line


def by_input_size(result: GradeResult) -> Table:
    """One row for each power of ten: the tests between it and the one before, and the R_k that they end.

    Figures are the most that any of these tests used.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("input length")
    for name in ("tests", "passed"):
        table.add_column(name, justify="right")
    table.add_column("failed")
    for name in ("max cpu", "max memory", "R_k"):
        table.add_column(name, justify="right")
    bounds = [0, *(10**group.k for group in result.groups)]
    for (low, high), group in zip(pairwise(bounds), result.groups, strict=True):
        tests = [test for test in result.tests if low <= test.input_length < high]
        if tests:
            table.add_row(
                f"{low:,} to {high - 1:,}",
                str(len(tests)),
                str(sum(test.verdict is Verdict.ACCEPTED for test in tests)),
                _failures(tests),
                _most((test.cpu_s for test in tests), "{:.3f} s"),
                _most((None if m is None else m / 2**20 for m in (t.memory_bytes for t in tests)), "{:.1f} MiB")
                if result.grader.secure
                else "-",
                _reward(f"R_{group.k}", result),
            )
    table.add_row(
        "all",
        str(len(result.tests)),
        str(sum(t.verdict is Verdict.ACCEPTED for t in result.tests)),
        "",
        "",
        "",
        _reward("R_inf", result),
    )
    return table


def details(result: GradeResult) -> Iterator[Text]:
    """What the compiler said, and the messages and outputs of tests that failed, where the result has them."""
    if result.compile is not None and not result.compile.ok:
        yield Text(plain(result.compile.message.rstrip()), style="dim")
    for test in result.tests:
        if test.verdict in (Verdict.ACCEPTED, Verdict.SKIPPED):
            continue
        said = [
            ("checker", test.checker_message),
            ("output", test.output_tail),
            ("stdout", test.stdout_tail),
            ("stderr", test.stderr_tail),
        ]
        if any(text for _, text in said):
            yield Text.assemble(
                (plain(test.name or f"test {test.index}"), "bold"), f": {test.verdict} {plain(test.message)}".rstrip()
            )
            for name, text in said:
                for line in (text or "").rstrip().splitlines():
                    yield Text(f"  {name}: {plain(line)}", style="dim")


def plain(text: str) -> str:
    """What a stranger wrote, with its control characters as escapes: a terminal would do as they say, and could be told
    to show another verdict."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def _failures(tests: Sequence[TestRow]) -> Text:
    counts = Counter(test.verdict for test in tests if test.verdict is not Verdict.ACCEPTED)
    parts = [Text(f"{count} {verdict}", verdict_style(verdict)) for verdict, count in counts.most_common()]
    return Text(", ").join(parts)


def _most(values: Iterator[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    return form.format(max(known)) if known else ""


def _reward(name: str, result: GradeResult) -> str:
    value = result.rewards[name]
    return f"{name} = {'null' if value is None else value}"
