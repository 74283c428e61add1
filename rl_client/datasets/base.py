"""What every dataset reader shares: what a reader is, the error it raises, and reading text that must survive.

A reader turns rows (or packages) of others' problems into `service.contract.Problem`. It knows nothing of files and
formats, which `rows` reads, nor of where problems go, which `sinks` knows. A new data set is one module in this folder
that holds a `READER`; nothing else names it.

    DatasetError   a file, or a whole package, that cannot be read as it stands
    RowError       one row that is no problem; the rows beside it may well be
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rl_client import datasets
from rl_client.datasets.row import Row
from rl_client.datasets.statements import Statement, StatementReader
from rl_client.datasets.submissions import Submission, SubmissionReader
from service.contract import PROBLEMS, Problem

Preset = Literal["official", "strict"]
"""`official`: as the set's own grader judges; `strict`: as a contest judge would. docs/datasets.md has the table."""

Label = str | int | float | bool | None


class DatasetError(Exception):
    """A data set that cannot be read as it stands. The message is one line and names the file at fault."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Entry:
    """One problem of a data set."""

    problem: Problem
    key: str
    """What the data set calls it, such as `847_J`; empty where it has no name."""
    labels: Mapping[str, Label] = field(default_factory=dict)
    """What the set knows of it beside the problem: difficulty, source ..."""
    submissions: tuple[Submission, ...] = ()
    """Programs that the set says are right or wrong; read only where they are asked for."""
    statement: Statement | None = None
    """What a model is told of it; read only where it is asked for."""


@dataclass(frozen=True, slots=True)
class Reader:
    """One data set whose problems are rows."""

    name: str
    """On the command line: `rkgrade import NAME`."""
    title: str
    columns: tuple[str, ...]
    """All that `read` looks at; the files' other columns are never read."""
    read: Callable[[Row, Preset], Entry]
    """One row's problem. Raises RowError, and pydantic.ValidationError where the contract refuses the problem."""
    join: Callable[[Row, Path], Mapping[str, Any]] | None = None
    """Of a set that keeps tests apart from its rows: further columns of a row, from the folder that holds them."""
    submissions: SubmissionReader | None = None
    """Of a set that has right, or wrong, programs in its rows."""
    statement: StatementReader | None = None
    """Of a set whose rows say what a model is to do."""


def build(**fields: Any) -> Problem:
    """The problem with these fields, as the wire has them. Raises pydantic.ValidationError."""
    return PROBLEMS.validate_python(fields)


def readers() -> dict[str, Reader]:
    """Every reader in this folder, by its name."""
    found: dict[str, Reader] = {}
    for module in pkgutil.iter_modules(datasets.__path__):
        reader = getattr(importlib.import_module(f"{datasets.__name__}.{module.name}"), "READER", None)
        if isinstance(reader, Reader):
            found[reader.name] = reader
    return dict(sorted(found.items()))


def read_text(path: Path) -> str:
    """The file's content, byte for byte: no newline is translated, no byte-order mark dropped.

    Raises DatasetError where the file cannot be read or is not UTF-8, the only encoding that JSON carries.
    """
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise DatasetError(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise DatasetError(path, f"not UTF-8: {error.reason} at byte {error.start}") from error
