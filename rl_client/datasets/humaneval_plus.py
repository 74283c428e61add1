"""HumanEval+ (evalplus/humanevalplus): a function from its docstring, and a suite that calls it."""

from __future__ import annotations

from collections.abc import Iterator

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.calls import function_name
from rl_client.datasets.evalplus import script_problem, suite
from rl_client.datasets.row import Row
from rl_client.datasets.statements import Statement, StatementReader
from rl_client.datasets.submissions import Submission, SubmissionReader, solutions


def read(row: Row, preset: Preset) -> Entry:
    """One row. The presets do not differ: the suite itself says what is equal, and how near."""
    function = function_name(row.values.get("entry_point"), "entry_point")
    problem = build(**script_problem(suite(row, function), function))
    return Entry(problem, row.needed_text("task_id"), {"function": function})


def submissions(row: Row) -> Iterator[Submission]:
    """The right program: the prompt, which ends within a function, and the rest of that function."""
    prompt, rest = row.text("prompt") or "", row.text("canonical_solution")
    return solutions([prompt + rest] if rest else [], "canonical_solution")


def statement(row: Row) -> Statement:
    """The prompt is code, which ends within a function."""
    return Statement("Complete this function, as its docstring has it.", row.needed_text("prompt"))


READER = Reader(
    name="humaneval-plus",
    title="HumanEval+ (evalplus/humanevalplus)",
    columns=("task_id", "entry_point", "test", "plus_input"),
    read=read,
    submissions=SubmissionReader(("prompt", "canonical_solution"), submissions),
    statement=StatementReader(("prompt",), statement),
)
