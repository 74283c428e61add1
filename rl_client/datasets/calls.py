"""Tests that call a function, as several sets have them: whose function it is, and arguments that survive JSON."""

from __future__ import annotations

import re
from typing import Any

from rl_client.datasets.row import RowError, parse_json

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_CLASS_OR_DEF = re.compile(r"^(?P<indent>[ \t]*)(?:async[ \t]+)?(?P<what>class|def)[ \t]+(?P<name>\w+)", re.MULTILINE)


def entry_point(name: str, code: str) -> str:
    """`Class.name` where the set's own code defines the function in a class of its own, else `name`.

    Class `Solution` needs no word: the grader looks there, too. The code is looked over line by line and not parsed: a
    parser may be crashed by what it reads.
    """
    inside = ""
    for match in _CLASS_OR_DEF.finditer(code):
        if not match["indent"]:
            inside = match["name"] if match["what"] == "class" else ""
        elif inside and match["what"] == "def" and match["name"] == name:
            return name if inside == "Solution" else f"{inside}.{name}"
    return name


def function_name(value: Any, where: str) -> str:
    """A name that a function can have. Raises RowError."""
    if not isinstance(value, str) or not _IDENTIFIER.fullmatch(value):
        raise RowError("malformed", f"{where}: no name of a function: {str(value)[:40]!r}")
    return value


def json_lines(text: Any, where: str) -> list[Any]:
    """One JSON value a line, as LiveCodeBench writes arguments. Raises RowError."""
    if not isinstance(text, str):
        raise RowError("malformed", f"{where}: must be a string, not {type(text).__name__}")
    return [
        parse_json(line, f"{where}, line {index + 1}") for index, line in enumerate(text.split("\n")) if line.strip()
    ]


def gradable_calls(tests: list[dict[str, Any]], where: str) -> list[dict[str, Any]]:
    """The tests, where they tell programs apart. Raises RowError.

    One answer may be null; where all are, a function that does nothing would be accepted.
    """
    if all(test["expected"] is None for test in tests):
        raise RowError("no tests", f"{where}: every answer is null")
    return tests


def refuse_integer_keys(value: Any, where: str) -> None:
    """Raise RowError where a dict has keys that JSON made strings of integers.

    APPS and its kin mean integers by them, and turn them back before the call; arguments that travel as JSON cannot
    say so, and the function would be called with something else. What a function returns is compared with its keys
    as strings, so answers may have them.
    """
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            if one and all(re.fullmatch(r"-?[0-9]+", str(key)) for key in one):
                raise RowError("unsupported", f"{where}: a dict with integers as keys, which JSON cannot carry")
            pending.extend(one.values())
        elif isinstance(one, list):
            pending.extend(one)
