"""TACO (BAAI/TACO): stdin problems, and calls of functions, in APPS' form.

Source: the columns of the published files, and the grader in github.com/FlagOpen/TACO for what `official` does.
"""

from __future__ import annotations

from rl_client.datasets.apps import STATEMENT, judging
from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.input_output import read_input_output
from rl_client.datasets.limits import memory_mb, seconds
from rl_client.datasets.row import Row
from rl_client.datasets.submissions import LISTED

_CPU_S = 4.0

#: Its grader sets none; this keeps one program from taking the machine.
_MEMORY_MB = 1024

_LABELS = ("difficulty", "source", "name", "url", "tags", "skill_types")


def read(row: Row, preset: Preset) -> Entry:
    """One row. `strict` takes the row's own limits where it names them."""
    fields = read_input_output(row)
    own = preset == "strict"
    limits = {
        "cpu_s": (own and seconds(row.values.get("time_limit"))) or _CPU_S,
        "memory_mb": (own and memory_mb(row.values.get("memory_limit"))) or _MEMORY_MB,
    }
    problem = build(**fields, **judging(fields["kind"], preset, "strict"), limits=limits)
    labels = {name: row.label(name) for name in _LABELS if row.label(name) is not None}
    if "function" in fields:
        labels["function"] = fields["function"]
    return Entry(problem, "", labels)


READER = Reader(
    name="taco",
    title="TACO (BAAI/TACO)",
    columns=("input_output", "time_limit", "memory_limit", *_LABELS),
    read=read,
    submissions=LISTED,
    statement=STATEMENT,
)
