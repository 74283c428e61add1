"""Tests of stdin and stdout, as several sets have them: checked, and in the wire's form."""

from __future__ import annotations

from collections.abc import Iterable

from rl_client.datasets.row import Row, RowError

StdioTests = list[dict[str, str]]


def stdio_test(row: Row, name: str | None = None) -> dict[str, str]:
    """One test of a struct with `input` and `output`. Raises RowError."""
    test = {} if name is None else {"name": name}
    for column in ("input", "output"):
        value = row.values.get(column)
        if not isinstance(value, str):
            found = "missing" if value is None else f"must be a string, not {type(value).__name__}"
            raise RowError("malformed", f"{row.path}: {column}: {found}")
        test[column] = value
    return test


def gradable(tests: Iterable[dict[str, str]], where: str) -> StdioTests:
    """The tests, where there are any and they tell programs apart. Raises RowError.

    One empty answer may be right; where all are empty, a program that does nothing would be accepted.
    """
    found = list(tests)
    if not found:
        raise RowError("no tests", f"{where}: no tests")
    if not any(test["output"].strip() for test in found):
        raise RowError("no tests", f"{where}: every answer is empty")
    return found
