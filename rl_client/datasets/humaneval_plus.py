"""HumanEval+ (evalplus/humanevalplus): a function from its docstring, and a suite that calls it."""

from __future__ import annotations

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.calls import function_name
from rl_client.datasets.evalplus import script_problem, suite
from rl_client.datasets.row import Row


def read(row: Row, preset: Preset) -> Entry:
    """One row. The presets do not differ: the suite itself says what is equal, and how near."""
    script = suite(row)
    function = function_name(row.values.get("entry_point"), "entry_point")
    problem = build(**script_problem(script, function))
    return Entry(problem, row.needed_text("task_id"), {"function": function})


READER = Reader(
    name="humaneval-plus",
    title="HumanEval+ (evalplus/humanevalplus)",
    columns=("task_id", "entry_point", "test", "plus_input"),
    read=read,
)
