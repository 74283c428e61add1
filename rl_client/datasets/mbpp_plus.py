"""MBPP+ (evalplus/mbppplus): a function from a sentence, and a suite that calls it.

The rows do not name the function. It is the one that the reference solution defines and the basic assertions call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.evalplus import script_problem, suite
from rl_client.datasets.row import Row, RowError
from rl_client.datasets.statements import Statement, StatementReader
from rl_client.datasets.submissions import Submission, SubmissionReader, solutions

_DEFINED = re.compile(r"^def[ \t]+(\w+)", re.MULTILINE)


def read(row: Row, preset: Preset) -> Entry:
    """One row. The presets do not differ: the suite itself says what is equal, and how near."""
    function = _function(row)
    problem = build(**script_problem(suite(row, function), function))
    labels = {"function": function}
    source = row.text("source_file")
    return Entry(problem, str(row.label("task_id")), labels | ({"source_file": source} if source else {}))


def _function(row: Row) -> str:
    asserted = "\n".join(str(line) for line in row.items("test_list"))
    for name in _DEFINED.findall(row.text("code") or ""):
        if re.search(rf"\b{re.escape(name)}\(", asserted):
            return str(name)
    raise RowError("malformed", "code: defines no function that test_list calls")


def submissions(row: Row) -> Iterator[Submission]:
    """The right program."""
    text = row.text("code")
    return solutions([text] if text else [], "code")


def statement(row: Row) -> Statement:
    """The sentence, and the first of the basic assertions, which alone names the function."""
    tests = [line for line in row.items("test_list") if isinstance(line, str)]
    if not tests:
        raise row.fault("test_list", "names no function")
    text = f"{row.needed_text('prompt').rstrip()}\n\nYour function is to pass this test:\n\n{tests[0].strip()}"
    return Statement(text)


READER = Reader(
    name="mbpp-plus",
    title="MBPP+ (evalplus/mbppplus)",
    columns=("task_id", "code", "source_file", "test_list", "test", "plus_input"),
    read=read,
    submissions=SubmissionReader((), submissions),
    statement=StatementReader(("prompt",), statement),
)
