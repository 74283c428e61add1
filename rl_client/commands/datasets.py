"""`rkgrade import`: other people's problems, to a grader or into a file. One command for each reader that there is."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from rl_client.commands import sources
from rl_client.commands.ending import GRADER_ERROR, SOME_SKIPPED, USAGE_ERROR, interruptible, stop
from rl_client.commands.progress import bar_of_bytes
from rl_client.commands.sources import Directories, Files, Limit, Offset, PresetOption, Split, Tests, TokenFile
from rl_client.counts import counted
from rl_client.datasets import importing, kattis
from rl_client.datasets.base import DatasetError, Reader, readers
from rl_client.datasets.importing import Account, Candidate, Skipped
from rl_client.datasets.outputs import Output
from rl_client.datasets.sinks import FileSink, GraderSink, NoSink, Sink
from rl_client.errors import GraderError
from service.contract import Problem

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


@app.callback()
def import_() -> None:
    """Turn a data set's problems into the grader's own form. They go to a grader, or into a file."""


@app.command("kattis")
def import_kattis(
    directories: Directories,
    to: To = None,
    token_file: TokenFile = None,
    out: Out = None,
    map_file: Map = None,
    skipped_file: SkippedFile = None,
    dry_run: DryRun = False,
) -> None:
    """Kattis problem packages, each a folder. Without --to and --out they are printed."""
    if to is None and out is None and not dry_run:
        out = Path("-")
    candidates = (Candidate(directory, None, partial(sources.read_package, directory)) for directory in directories)
    _import(candidates, None, to, token_file, out, map_file, skipped_file, dry_run)


def read_kattis(directory: Path) -> Problem:
    """The problem in a Kattis package; ends the command where there is none that can be read."""
    try:
        return kattis.read_package(directory)
    except DatasetError as error:
        stop(USAGE_ERROR, str(error))


def _row_command(reader: Reader) -> Callable[..., None]:
    """The command of a reader of rows."""

    def command(
        files: Files,
        to: To = None,
        token_file: TokenFile = None,
        out: Out = None,
        map_file: Map = None,
        skipped_file: SkippedFile = None,
        preset: PresetOption = "official",
        tests: Tests = None,
        split: Split = None,
        offset: Offset = 0,
        limit: Limit = None,
        dry_run: DryRun = False,
    ) -> None:
        if to is None and out is None and not dry_run:
            stop(USAGE_ERROR, "say where to: --to URL, --out FILE or --dry-run")
        rows = sources.rows(files, reader, preset, tests, split, offset, limit)
        _import(rows.candidates(), rows.total_bytes, to, token_file, out, map_file, skipped_file, dry_run)

    return sources.fitted(command, reader)


for _name, _reader in readers().items():
    app.command(_name)(_row_command(_reader))


def _import(
    candidates: Generator[Candidate, None, None],
    total_bytes: int | None,
    to: str | None,
    token_file: Path | None,
    out: Path | None,
    map_file: Path | None,
    skipped_file: Path | None,
    dry_run: bool,
) -> None:
    """Run an import, say what it came to, and end the command with its status."""
    if [to is not None, out is not None, dry_run].count(True) != 1:
        stop(USAGE_ERROR, "--to, --out and --dry-run exclude each other")
    if to is None and token_file is not None:
        stop(USAGE_ERROR, "--token-file is of use with --to alone")
    to = None if to is None else sources.grader("--to", to)
    token = sources.token(token_file) if to is not None else None
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    try:
        with interruptible("ended; no file was written"), ExitStack() as stack:
            # Files are closed now, not whenever the frames of an error are collected.
            stack.enter_context(closing(candidates))
            mapping = stack.enter_context(Output(map_file)) if map_file is not None else None
            skips = stack.enter_context(Output(skipped_file)) if skipped_file is not None else None
            sink: Sink = NoSink()
            if to is not None:
                sink = stack.enter_context(GraderSink(to, token=token))
            elif out is not None:
                sink = FileSink(stack.enter_context(Output(out)))
            progress = stack.enter_context(bar_of_bytes(console))
            watcher = _Watcher(progress, total_bytes, mapping, skips)
            account = importing.run(candidates, sink, watcher)
    except DatasetError as error:
        stop(USAGE_ERROR, str(error))
    except GraderError as error:
        stop(GRADER_ERROR, str(error))
    _tell(account, dry_run, console)
    raise typer.Exit(SOME_SKIPPED if account.skipped else 0)


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
    lines = [f"{counted(account.rows, 'row')}: {account.imported:,} {words}, {account.skipped.total():,} skipped"]
    if account.imported:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(account.kinds.items()))
        size = f"{counted(account.tests, 'test')}, {account.content_bytes / 2**20:,.1f} MiB"
        lines.append(f"  problems: {len(account.distinct):,} different ({kinds}), {size}")
    if account.skipped:
        lines.append("  skipped: " + ", ".join(f"{count:,} {fault}" for fault, count in account.skipped.most_common()))
    for line in lines:
        if dry_run:
            typer.echo(line)
        else:
            console.print(line)
