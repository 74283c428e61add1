"""Problems in the grader's own form, a row each, with what a model is told of them: one's own.

    {"key": "sum", "statement": "Print the sum of ...", "difficulty": "easy", "problem": {"kind": "stdio", ...}}

`problem` is what `PUT /problems` takes. `starter`, code that an answer is to complete, and
`difficulty` may be left out.
"""

from __future__ import annotations

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.row import Row
from rl_client.datasets.statements import in_column


def read(row: Row, preset: Preset) -> Entry:
    """One row. The presets do not differ: the problem itself says how it is judged."""
    fields = row.json("problem")
    if not isinstance(fields, dict):
        raise row.fault("problem", "missing" if fields is None else f"must be an object, not {type(fields).__name__}")
    difficulty = row.label("difficulty")
    return Entry(build(**fields), row.needed_text("key"), {} if difficulty is None else {"difficulty": difficulty})


READER = Reader(
    name="problems",
    title="Problems in the grader's own form, a JSON line each",
    columns=("key", "difficulty", "problem"),
    read=read,
    statement=in_column("statement", "starter"),
)
