"""`rkgrade audit`: a data set's own right and wrong programs, graded. One command for each set that has such."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress as Bar

from rl_client.audit.choosing import Choice
from rl_client.audit.report import Report
from rl_client.audit.rows import ProblemRow, Thresholds
from rl_client.audit.run import Audit, Progress, Settings
from rl_client.audit.summary import Summary, summarize
from rl_client.client import Grader
from rl_client.commands import audit_tables, sources
from rl_client.commands.ending import GRADER_ERROR, SOME_SKIPPED, USAGE_ERROR, interruptible, stop
from rl_client.commands.progress import bar_of_bytes
from rl_client.commands.sources import Directories, Files, Limit, Offset, PresetOption, Split, Tests, TokenFile
from rl_client.counts import counted
from rl_client.datasets.base import DatasetError, Reader, readers
from rl_client.datasets.importing import Candidate, Skipped
from rl_client.datasets.outputs import Output
from rl_client.errors import GraderError
from rl_client.languages import ids_by_name
from rl_client.patience import PATIENCE_S
from rl_client.workers import Workers

app = typer.Typer(no_args_is_help=True)

_KATTIS = "Kattis packages: the programs in their submissions/."

_Share = partial(typer.Option, min=0.0, max=1.0)

Url = Annotated[str, typer.Option("--url", help="The grader.")]
ReportFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Add a JSON line for each problem; what it has is not graded again."),
]
Quarantine = Annotated[
    Path | None, typer.Option("--quarantine", metavar="FILE", help="Write the ids of problems to keep from training.")
]
SkippedFile = Annotated[
    Path | None, typer.Option("--skipped", metavar="FILE", help="Write which rows were skipped, one JSON a line.")
]
PerLabel = Annotated[
    int, typer.Option("--per-label", min=0, help="Programs of each label and problem at most, drawn by hash; 0: all.")
]
Language = Annotated[list[str] | None, typer.Option("--language", help="Only programs in this language; repeatable.")]
TimeFactor = Annotated[float, typer.Option(min=0.01, max=100, help="Multiplies the CPU limits.")]
MinTpr = Annotated[float, _Share("--min-tpr", help="Quarantine problems with a lower true positive rate.")]
MinTnr = Annotated[float, _Share("--min-tnr", help="Quarantine problems with a lower true negative rate.")]
Least = Annotated[int, typer.Option("--least", min=1, help="Programs of a side below which its rate is null.")]
MaxCheckerErrors = Annotated[
    float,
    _Share("--max-checker-errors", help="Quarantine problems whose checker fails on a greater share of programs."),
]
Concurrency = Annotated[int, typer.Option(min=1, max=1024, help="Programs on their way to the grader at once.")]
Seconds = Annotated[
    float, typer.Option("--patience", min=0, help="Seconds for which a busy or absent grader is asked again.")
]
WithSources = Annotated[bool, typer.Option("--sources", help="Keep the programs that disagree in the report.")]


@dataclass(frozen=True, slots=True)
class _Options:
    """What all sets' commands take."""

    url: str
    token: str | None
    report: Path | None
    quarantine: Path | None
    skipped: Path | None
    per_label: int
    languages: list[str]
    time_factor: float
    thresholds: Thresholds
    concurrency: int
    patience_s: float
    sources: bool


@app.callback()
def audit() -> None:
    """Name the problems of a data set that are not to be trusted. Grades the right and wrong programs that it has."""


def _command(reader: Reader | None) -> Callable[..., None]:
    """The command of a set of rows; without a reader, that of Kattis packages."""

    def command(
        paths: Files,
        url: Url = "http://127.0.0.1:8000",
        token_file: TokenFile = None,
        report: ReportFile = None,
        quarantine: Quarantine = None,
        skipped_file: SkippedFile = None,
        preset: PresetOption = "official",
        tests: Tests = None,
        split: Split = None,
        offset: Offset = 0,
        limit: Limit = None,
        per_label: PerLabel = 20,
        language: Language = None,
        time_factor: TimeFactor = 1.0,
        min_tpr: MinTpr = 0.9,
        min_tnr: MinTnr = 0.9,
        least: Least = 1,
        max_checker_errors: MaxCheckerErrors = 0.0,
        concurrency: Concurrency = 8,
        patience_s: Seconds = PATIENCE_S,
        with_sources: WithSources = False,
    ) -> None:
        options = _Options(
            url=sources.grader("--url", url),
            token=sources.token(token_file),
            report=report,
            quarantine=quarantine,
            skipped=skipped_file,
            per_label=per_label,
            languages=language or [],
            time_factor=time_factor,
            thresholds=Thresholds(min_tpr, min_tnr, least, max_checker_errors),
            concurrency=concurrency,
            patience_s=patience_s,
            sources=with_sources,
        )
        if reader is None:
            read = partial(sources.read_package, submissions=True)
            _audit((Candidate(path, None, partial(read, path)) for path in paths), None, options)
        else:
            rows = sources.rows(paths, reader, preset, tests, split, offset, limit)
            _audit(rows.candidates(submissions=True), rows.total_bytes, options)

    if reader is None:
        return sources.without(command, *sources.OF_ROWS, paths=Directories, doc=_KATTIS)
    return sources.fitted(command, reader)


app.command("kattis")(_command(None))
for _name, _reader in readers().items():
    if _reader.submissions is not None:
        app.command(_name)(_command(_reader))


def _audit(candidates: Generator[Candidate, None, None], total_bytes: int | None, options: _Options) -> None:
    """Run an audit, say what it came to, and end the command with its status."""
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    kept = "ended; what was done is in the report" if options.report is not None else "ended"
    try:
        with interruptible(kept), ExitStack() as stack:
            stack.enter_context(closing(candidates))
            report = stack.enter_context(Report(options.report))
            skips = stack.enter_context(Output(options.skipped)) if options.skipped is not None else None
            quarantine = stack.enter_context(Output(options.quarantine)) if options.quarantine is not None else None
            grader = stack.enter_context(
                Grader(
                    options.url,
                    token=options.token,
                    connections=options.concurrency,
                    patience_s=options.patience_s,
                )
            )
            grader.check()
            settings = _settings(grader, options)
            workers = stack.enter_context(Workers(options.concurrency))
            watcher = _Watcher(stack.enter_context(bar_of_bytes(console)), total_bytes, report, skips)
            progress = Audit(grader, workers, settings, report.has, watcher).run(candidates)
            summary = summarize(report.rows(), options.thresholds)
            if quarantine is not None:
                kept_out = (row.problem_id for row in report.rows() if options.thresholds.reasons(row))
                for identifier in dict.fromkeys(kept_out):
                    quarantine.write_line(identifier.encode())
    except DatasetError as error:
        stop(USAGE_ERROR, str(error))
    except GraderError as error:
        stop(GRADER_ERROR, f"{error}{'' if options.report is None else '; what was done is in the report'}")
    _tell(summary, progress, console)
    raise typer.Exit(SOME_SKIPPED if summary.quarantined or progress.skipped else 0)


def _settings(grader: Grader, options: _Options) -> Settings:
    """Ends the command where a language is asked for that the grader does not have."""
    languages = grader.languages()
    names = ids_by_name(languages)
    for name in options.languages:
        if name.lower() not in names:
            known = ", ".join(sorted(one.id for one in languages))
            stop(USAGE_ERROR, f"--language: the grader has no {name!r}; it has {known}")
    wanted = frozenset(names[name.lower()] for name in options.languages)
    return Settings(
        choice=Choice(options.per_label or None, wanted or None, options.time_factor),
        thresholds=options.thresholds,
        names=names,
        sources=options.sources,
        problems_at_once=options.concurrency,
    )


class _Watcher:
    """Tells the report, the terminal and the file of skipped rows."""

    def __init__(self, bar: Bar, total: int | None, report: Report, skips: Output | None) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=total)
        self._report = report
        self._skips = skips

    def audited(self, row: ProblemRow) -> None:
        self._report.add(row)

    def skipped(self, skipped: Skipped) -> None:
        self._bar.console.print(f"rkgrade: {skipped}")
        if self._skips is not None:
            self._skips.write_line(skipped.as_json())

    def progress(self, done_bytes: int, progress: Progress) -> None:
        words = f"{counted(progress.audited, 'problem')}, {counted(progress.graded, 'program')}"
        words += f", {progress.quarantined:,} to quarantine"
        self._bar.update(self._task, completed=done_bytes, description=words)


def _tell(summary: Summary, progress: Progress, console: Console) -> None:
    """The rows' fate on stderr; what the audit came to, over the whole report, on stdout."""
    words = f"{counted(progress.rows, 'row')}: {progress.audited:,} audited, {progress.skipped.total():,} skipped"
    console.print(f"{words}, {progress.known:,} known already" if progress.known else words)
    out = Console(highlight=False, markup=False, soft_wrap=True)
    if summary.worst:
        out.print(audit_tables.quarantined(summary))
        out.print()
    if summary.verdicts:
        out.print(audit_tables.verdicts(summary))
        out.print()
    for line in audit_tables.totals(summary):
        out.print(line)
