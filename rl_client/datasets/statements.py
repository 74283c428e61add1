"""What a model is told of a problem: its statement, as a data set has it. Knows no data set, and no prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rl_client.datasets.row import Row


@dataclass(frozen=True, slots=True)
class Statement:
    """One problem's."""

    text: str
    starter: str = ""
    """Code that an answer is to complete; empty where the answer is a program that reads stdin."""


@dataclass(frozen=True, slots=True)
class StatementReader:
    """How a set's rows hold statements."""

    columns: tuple[str, ...]
    """What `read` looks at beyond the columns of the problem."""
    read: Callable[[Row], Statement]
    """That of one row. Raises RowError."""


def in_column(name: str, starter: str | None = None) -> StatementReader:
    """Of a set that has it in one column as it stands, and what is to be completed in another."""

    def read(row: Row) -> Statement:
        return Statement(row.needed_text(name), (row.text(starter) if starter is not None else None) or "")

    return StatementReader((name,) if starter is None else (name, starter), read)
