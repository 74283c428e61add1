"""`rkgrade import`: other people's problems, to a grader or into a file. One command for each reader that there is."""

from __future__ import annotations

import inspect
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from rl_client.datasets import importing, kattis
from rl_client.datasets.base import DatasetError, Entry, Reader, readers
from rl_client.datasets.importing import Account, Candidate, Skipped
from rl_client.datasets.outputs import Output
from rl_client.datasets.row import RowError
from rl_client.datasets.rows import read_rows
from rl_client.datasets.sinks import FileSink, GraderSink, NoSink, Sink, SinkError
from service.contract import Problem

SOME_SKIPPED = 1
USAGE_ERROR = 2
GRADER_ERROR = 3

app = typer.Typer(no_args_is_help=True)

To = Annotated[str | None, typer.Option("--to", metavar="URL", help="Put the problems to the grader there.")]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the problems there, one JSON a line; - is stdout.")
]
Map = Annotated[
    Path | None, typer.Option("--map", metavar="FILE", help="Write which row became which problem, one JSON a line.")
]
SkippedFile = Annotated[
    Path | None,
    typer.Option("--skipped", metavar="FILE", help="Write which rows were skipped, one JSON a line."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Read everything, put it nowhere, print counts.")]
Limit = Annotated[int | None, typer.Option("--limit", min=0, help="Read this many rows at most.")]


@app.callback()
def import_() -> None:
    """Turn the problems of other data sets into rkgrade's, for a grader or a file."""


@app.command("kattis")
def import_kattis(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Packages: problem.yaml, data/ ...")],
    to: To = None,
    out: Out = None,
    map_file: Map = None,
    skipped_file: SkippedFile = None,
    dry_run: DryRun = False,
) -> None:
    """Kattis problem packages, each a folder; without --to and --out they are printed."""
    if to is None and out is None and not dry_run:
        out = Path("-")
    candidates = (Candidate(directory, None, partial(_read_package, directory)) for directory in directories)
    _import(candidates, None, to, out, map_file, skipped_file, dry_run)


def read_kattis(directory: Path) -> Problem:
    """The problem in a Kattis package; ends the command where there is none that can be read."""
    try:
        return kattis.read_package(directory)
    except DatasetError as error:
        _stop(USAGE_ERROR, str(error))


def _read_package(directory: Path) -> Entry:
    try:
        return Entry(kattis.read_package(directory), directory.resolve().name)
    except DatasetError as error:
        place = "" if error.path == directory else f"{error.path.relative_to(directory)}: "
        raise RowError("malformed", f"{place}{error.reason}") from None


def _row_command(reader: Reader) -> Callable[..., None]:
    """The command of a reader of rows."""

    def command(
        files: Annotated[
            list[Path], typer.Argument(metavar="FILE...", help="parquet, jsonl (.gz, .zst), arrow or feather.")
        ],
        to: To = None,
        out: Out = None,
        map_file: Map = None,
        skipped_file: SkippedFile = None,
        preset: Annotated[
            Literal["official", "strict"],
            typer.Option(help="official: judge as the set's own grader does; strict: as a contest would."),
        ] = "official",
        tests: Annotated[
            Path | None, typer.Option(metavar="DIR", help="Folder of the tests that the set keeps apart from its rows.")
        ] = None,
        split: Annotated[
            list[str] | None,
            typer.Option(metavar="COLUMN=VALUE", help="Only rows with this value in this column; repeatable."),
        ] = None,
        offset: Annotated[int, typer.Option(min=0, help="Pass over this many rows first.")] = 0,
        limit: Limit = None,
        dry_run: DryRun = False,
    ) -> None:
        where = dict(_condition(one) for one in split or ())
        if to is None and out is None and not dry_run:
            _stop(USAGE_ERROR, "say where to: --to URL, --out FILE or --dry-run")
        columns = (*reader.columns, *where)

        def candidates() -> Generator[Candidate, None, None]:
            behind = 0
            records = (record for file in files for record in read_rows(file, columns))
            at: Path | None = None
            for candidate in importing.candidates_of(
                records, reader, preset, where=where, folder=tests, offset=offset, limit=limit
            ):
                if at is not None and candidate.path != at:
                    behind += at.stat().st_size
                at = candidate.path
                yield Candidate(candidate.path, candidate.number, candidate.read, behind + candidate.done_bytes)

        for file in files:
            if not file.is_file():
                _stop(USAGE_ERROR, f"{file}: no such file")
        if tests is not None and not tests.is_dir():
            _stop(USAGE_ERROR, f"{tests}: no such directory")
        total = sum(file.stat().st_size for file in files)
        _import(candidates(), total, to, out, map_file, skipped_file, dry_run)

    command.__doc__ = f"{reader.title}."
    if reader.join is None:
        shown = inspect.signature(command, eval_str=True)
        kept = [one for name, one in shown.parameters.items() if name != "tests"]
        command.__signature__ = shown.replace(parameters=kept)  # type: ignore[attr-defined]
    return command


for _name, _reader in readers().items():
    app.command(_name)(_row_command(_reader))


def _condition(text: str) -> tuple[str, str]:
    column, equals, value = text.partition("=")
    if not column or not equals:
        _stop(USAGE_ERROR, f"--split needs COLUMN=VALUE, not {text!r}")
    return column, value


def _import(
    candidates: Generator[Candidate, None, None],
    total_bytes: int | None,
    to: str | None,
    out: Path | None,
    map_file: Path | None,
    skipped_file: Path | None,
    dry_run: bool,
) -> None:
    """Run an import, say what it came to, and end the command with its status."""
    if [to is not None, out is not None, dry_run].count(True) != 1:
        _stop(USAGE_ERROR, "--to, --out and --dry-run exclude each other")
    before = signal.signal(signal.SIGTERM, _unwind)
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    try:
        with ExitStack() as stack:
            # Files are closed now, not whenever the frames of an error are collected.
            stack.enter_context(closing(candidates))
            mapping = stack.enter_context(Output(map_file)) if map_file is not None else None
            skips = stack.enter_context(Output(skipped_file)) if skipped_file is not None else None
            sink: Sink = NoSink()
            if to is not None:
                sink = stack.enter_context(GraderSink(to))
            elif out is not None:
                sink = FileSink(stack.enter_context(Output(out)))
            progress = stack.enter_context(_bar(console))
            watcher = _Watcher(progress, total_bytes, mapping, skips)
            account = importing.run(candidates, sink, watcher)
    except DatasetError as error:
        _stop(USAGE_ERROR, str(error))
    except SinkError as error:
        _stop(GRADER_ERROR, str(error))
    except KeyboardInterrupt:
        _stop(128 + signal.SIGINT, "ended; no file was written")
    finally:
        signal.signal(signal.SIGTERM, before)
    _tell(account, dry_run, console)
    raise typer.Exit(SOME_SKIPPED if account.skipped else 0)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class _Watcher:
    """Tells the terminal and the files."""

    def __init__(self, progress: Progress, total: int | None, mapping: Output | None, skips: Output | None) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total)
        self._mapping = mapping
        self._skips = skips

    def imported(self, line: bytes) -> None:
        if self._mapping is not None:
            self._mapping.write_line(line)

    def skipped(self, skipped: Skipped) -> None:
        self._progress.console.print(f"rkgrade: {skipped}")
        if self._skips is not None:
            self._skips.write_line(skipped.as_json())

    def progress(self, candidate: Candidate, account: Account) -> None:
        words = f"{account.imported:,} imported, {account.skipped.total():,} skipped"
        self._progress.update(self._task, completed=candidate.done_bytes, description=words)


def _tell(account: Account, dry_run: bool, console: Console) -> None:
    """The counts: of a dry run on stdout, since they are its result, else on stderr."""
    words = "would be imported" if dry_run else "imported"
    lines = [f"{account.rows:,} rows: {account.imported:,} {words}, {account.skipped.total():,} skipped"]
    if account.imported:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(account.kinds.items()))
        size = f"{account.content_bytes / 2**20:,.1f} MiB"
        lines.append(f"  problems: {len(account.distinct):,} different ({kinds}), {account.tests:,} tests, {size}")
    if account.skipped:
        lines.append("  skipped: " + ", ".join(f"{count:,} {fault}" for fault, count in account.skipped.most_common()))
    for line in lines:
        if dry_run:
            typer.echo(line)
        else:
            console.print(line)


def _unwind(number: int, frame: FrameType | None) -> NoReturn:
    """SIGTERM: unwind, so that no half-written file stays."""
    raise SystemExit(128 + number)


def _stop(code: int, message: str) -> NoReturn:
    print(f"rkgrade: {message}", file=sys.stderr)
    raise typer.Exit(code)
