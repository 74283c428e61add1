"""What commands that read data sets share: the options that choose rows, and the rows themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rl_client import address
from rl_client.commands.ending import USAGE_ERROR, stop
from rl_client.datasets import importing, kattis
from rl_client.datasets.base import DatasetError, Entry, Preset, Reader
from rl_client.datasets.importing import Candidate
from rl_client.datasets.kattis_submissions import read_submissions
from rl_client.datasets.row import RowError
from rl_client.datasets.rows import read_rows
from rl_client.errors import TokenError
from rl_client.token import VARIABLE, read_token

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="parquet, jsonl (.gz, .zst), arrow or feather.")]
Directories = Annotated[list[Path], typer.Argument(metavar="DIR...", help="Packages: problem.yaml, data/ ...")]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help=f"Holds the token that the grader asks for; else {VARIABLE}."),
]
PresetOption = Annotated[
    Literal["official", "strict"],
    typer.Option("--preset", help="official: judge as the set's own grader does; strict: as a contest would."),
]
Tests = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of the tests that the set keeps apart from its rows.")
]
Split = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=VALUE", help="Only rows with this value in this column; repeatable."),
]
Offset = Annotated[int, typer.Option(min=0, help="Pass over this many rows first.")]
Limit = Annotated[int | None, typer.Option("--limit", min=0, help="Read this many rows at most.")]


#: The options that choose rows, or how they are read: they mean nothing to packages.
OF_ROWS = ("preset", "tests", "split", "offset", "limit")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of files, as the options choose them."""

    files: list[Path]
    reader: Reader
    preset: Preset
    tests: Path | None
    where: dict[str, str]
    offset: int
    limit: int | None

    @property
    def total_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.files)

    def candidates(self, *, submissions: bool = False, statements: bool = False) -> Generator[Candidate, None, None]:
        """With `done_bytes` over all files. `submissions`, `statements`: with those that the rows hold."""
        columns = (*self.reader.columns, *self.where)
        if submissions and self.reader.submissions is not None:
            columns += self.reader.submissions.columns
        if statements and self.reader.statement is not None:
            columns += self.reader.statement.columns
        behind = 0
        records = (record for file in self.files for record in read_rows(file, columns))
        at: Path | None = None
        for one in importing.candidates_of(
            records,
            self.reader,
            self.preset,
            where=self.where,
            folder=self.tests,
            offset=self.offset,
            limit=self.limit,
            submissions=submissions,
            statements=statements,
        ):
            if at is not None and one.path != at:
                behind += at.stat().st_size
            at = one.path
            yield Candidate(one.path, one.number, one.read, behind + one.done_bytes)


def rows(
    files: list[Path],
    reader: Reader,
    preset: Preset,
    tests: Path | None,
    split: list[str] | None,
    offset: int,
    limit: int | None,
) -> Rows:
    """Ends the command where the options cannot be followed."""
    where = dict(_condition(one) for one in split or ())
    for file in files:
        if not file.is_file():
            stop(USAGE_ERROR, f"{file}: no such file")
    if tests is not None and not tests.is_dir():
        stop(USAGE_ERROR, f"{tests}: no such directory")
    return Rows(files, reader, preset, tests, where, offset, limit)


def fitted(command: Callable[..., None], reader: Reader) -> Callable[..., None]:
    """The command of a reader, without an option that means nothing to it."""
    return without(command, *(() if reader.join else ("tests",)), doc=f"{reader.title}.")


def without(command: Callable[..., None], *options: str, doc: str, **annotations: Any) -> Callable[..., None]:
    """The command without some of its options, which stay at their defaults, and with others explained otherwise."""
    shown = inspect.signature(command, eval_str=True)
    kept = [
        one.replace(annotation=annotations.get(name, one.annotation))
        for name, one in shown.parameters.items()
        if name not in options
    ]
    command.__signature__ = shown.replace(parameters=kept)  # type: ignore[attr-defined]
    command.__doc__ = doc
    return command


def read_package(directory: Path, *, submissions: bool = False) -> Entry:
    """The problem in a Kattis package. Raises RowError."""
    try:
        problem = kattis.read_package(directory)
        programs = tuple(read_submissions(directory)) if submissions else ()
    except DatasetError as error:
        place = "" if error.path == directory else f"{error.path.relative_to(directory)}: "
        raise RowError("malformed", f"{place}{error.reason}") from None
    return Entry(problem, directory.resolve().name, submissions=programs)


def token(file: Path | None) -> str | None:
    """The grader's token; ends the command where it cannot be had."""
    try:
        return read_token(file)
    except TokenError as error:
        stop(USAGE_ERROR, str(error))


def grader(option: str, url: str) -> str:
    """Where the grader is, as `option` says; ends the command where that is no address."""
    try:
        return address.checked(url, option)
    except ValueError as error:
        stop(USAGE_ERROR, str(error))


def _condition(text: str) -> tuple[str, str]:
    column, equals, value = text.partition("=")
    if not column or not equals:
        stop(USAGE_ERROR, f"--split needs COLUMN=VALUE, not {text!r}")
    return column, value
