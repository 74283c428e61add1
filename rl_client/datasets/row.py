"""One row of a data set, as columns by name, and the words for what is wrong with it.

Each accessor returns what the column must hold or raises a RowError that names the column, so that readers are free of
checks. Knows no data set.
"""

from __future__ import annotations

import ast
import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Fault = Literal["no tests", "undecodable", "malformed", "unsupported", "refused"]
"""
no tests      the row has none, or none that could be graded against
undecodable   what the row holds cannot be turned into text, JSON or numbers
malformed     it can, but is not of the shape that the data set promises
unsupported   a problem that this grader cannot judge as its authors meant
refused       the contract, or the grader it was sent to, does not take it
"""

_MISSING = "missing"


class RowError(Exception):
    """A row that is no problem as it stands. The message is one line."""

    def __init__(self, fault: Fault, detail: str) -> None:
        super().__init__(detail)
        self.fault = fault
        self.detail = " ".join(detail.split())


@dataclass(frozen=True, slots=True)
class Row:
    """A row, or a struct inside one. A column that is absent reads as null."""

    values: Mapping[str, Any]
    path: str = ""
    """Where in the row a struct lies, such as `test_cases[3]`."""

    def text(self, name: str) -> str | None:
        """A string, kept as it is, or null."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise self.fault(name, f"must be a string, not {_kind(value)}")
        return value

    def needed_text(self, name: str) -> str:
        """A string that is not empty."""
        value = self.text(name)
        if not value:
            raise self.fault(name, _MISSING if value is None else "empty")
        return value

    def number(self, name: str) -> float | None:
        """A number, or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.fault(name, f"must be a number, not {_kind(value)}")
        return value

    def flag(self, name: str) -> bool | None:
        """True, False or null."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.fault(name, f"must be true or false, not {_kind(value)}")
        return value

    def items(self, name: str) -> list[Any]:
        """A list; null and an absent column are an empty one."""
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(name, f"must be a list, not {_kind(value)}")
        return value

    def rows(self, name: str) -> list[Row]:
        """A list of structs, or, as the library `datasets` keeps such a list, a struct of lists of one length; null and
        an absent column are an empty one."""
        if isinstance(struct := self.values.get(name), dict):
            return self._transposed(name, struct)
        found = []
        for index, value in enumerate(self.items(name)):
            if not isinstance(value, dict):
                raise self.fault(f"{name}[{index}]", f"must be a struct, not {_kind(value)}")
            found.append(Row(value, self.where(f"{name}[{index}]")))
        return found

    def _transposed(self, name: str, struct: dict[str, Any]) -> list[Row]:
        columns = Row(struct, self.where(name))
        lists = {key: columns.items(key) for key, items in struct.items() if items is not None}
        first = next(iter(lists), "")
        for key, items in lists.items():
            if len(items) != len(lists[first]):
                raise columns.fault(first, f"{len(lists[first])} of them, but {len(items)} {key}")
        rows = zip(*lists.values(), strict=True)
        return [Row(dict(zip(lists, one, strict=True)), f"{columns.path}[{index}]") for index, one in enumerate(rows)]

    def row(self, name: str) -> Row | None:
        """A struct, or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.fault(name, f"must be a struct, not {_kind(value)}")
        return Row(value, self.where(name))

    def json(self, name: str) -> Any:
        """What a column of JSON text stands for; in copies of a set it may stand there itself. Null and blank text are
        None."""
        if isinstance(value := self.values.get(name), (dict, list)):
            return value
        text = self.text(name)
        if text is None or not text.strip():
            return None
        return parse_json(text, self.where(name))

    def label(self, name: str) -> str | int | float | bool | None:
        """A value to be passed on for people and programs to read; what is no scalar, or no number of JSON's, is left
        out."""
        value = self.values.get(name)
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value if isinstance(value, (str, int, float, bool)) else None

    def where(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def fault(self, name: str, detail: str, fault: Fault = "malformed") -> RowError:
        """The error that says what is wrong with a column."""
        return RowError(fault, f"{self.where(name)}: {detail}")


def parse_json(text: str, where: str) -> Any:
    """JSON as the data sets write it: Python's, with NaN and numbers of any length a str() takes. Raises RowError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise RowError("undecodable", f"{where}: JSON nested too deeply") from None
    except ValueError as error:
        raise RowError("undecodable", f"{where}: not JSON: {error}") from None


def parse_literal(text: str, where: str) -> Any:
    """JSON, or what Python's `repr` makes of such data. Raises RowError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            # Of escapes in others' strings, which mean what they always did.
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise RowError("undecodable", f"{where}: neither JSON nor a literal of Python") from None


def _kind(value: object) -> str:
    return type(value).__name__
