"""Tests of stdin and stdout, as several sets have them: checked, and in the wire's form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rl_client.datasets.row import Row, RowError

StdioTests = list[dict[str, str]]


def stdio_test(row: Row, name: str | None = None) -> dict[str, str]:
    """One test of a struct with `input` and `output`. Raises RowError."""
    return _test(row.values.get("input"), row.values.get("output"), row.path, name)


def paired(row: Row | None, inputs: str, outputs: str, name: str | None = None) -> StdioTests:
    """Tests of a struct of two lists; none of a struct that is null. Raises RowError."""
    if row is None:
        return []
    given, wanted = row.items(inputs), row.items(outputs)
    if len(given) != len(wanted):
        raise row.fault(inputs, f"{len(given)} of them, but {len(wanted)} {outputs}")
    return [
        _test(one, other, row.where(f"{inputs}[{index}]"), None if name is None else f"{name}/{index}")
        for index, (one, other) in enumerate(zip(given, wanted, strict=True))
    ]


def _test(given: Any, wanted: Any, where: str, name: str | None) -> dict[str, str]:
    for value, column in ((given, "input"), (wanted, "output")):
        if not isinstance(value, str):
            found = "missing" if value is None else f"must be a string, not {type(value).__name__}"
            raise RowError("malformed", f"{where}: {column}: {found}")
    return {"input": given, "output": wanted} | ({} if name is None else {"name": name})


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
