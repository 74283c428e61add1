"""APPS (codeparrot/apps): stdin problems, and calls of functions.

Source: the columns of the published files, and `testing_util.py` of github.com/hendrycks/apps for what `official` does.
"""

from __future__ import annotations

from typing import Any

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.input_output import read_input_output
from rl_client.datasets.row import Row
from rl_client.datasets.statements import in_column
from rl_client.datasets.submissions import LISTED

_CPU_S = 4.0

#: Its grader sets none; this keeps one program from taking the machine.
_MEMORY_MB = 1024


def read(row: Row, preset: Preset) -> Entry:
    """One row."""
    fields = read_input_output(row) | {"limits": {"cpu_s": _CPU_S, "memory_mb": _MEMORY_MB}}
    problem = build(**fields, **judging(fields["kind"], preset, "ignore" if preset == "official" else "strict"))
    labels = {name: row.label(name) for name in ("difficulty", "url") if name in row.values}
    if "function" in fields:
        labels["function"] = fields["function"]
    return Entry(problem, _key(row), labels)


def _key(row: Row) -> str:
    number = row.label("problem_id")
    return "" if number is None else str(number)


def judging(kind: str, preset: Preset, exit_code: str) -> dict[str, Any]:
    """How answers are compared, in APPS as in TACO.

    The sets' grader tries ever laxer comparisons, in the end that of sets of tokens rounded to three decimals. The
    nearest that keeps order and number of tokens is a tolerance of that size.
    """
    if kind == "call":
        return {"loose": preset == "official", "prelude": "lcb"}
    tolerance = {"float_absolute": 1e-3} if preset == "official" else {}
    return {"checker": {"type": "tokens"} | tolerance, "exit_code": exit_code}


#: In APPS as in TACO.
STATEMENT = in_column("question", "starter_code")

READER = Reader(
    name="apps",
    title="APPS (codeparrot/apps)",
    columns=("problem_id", "input_output", "difficulty", "url"),
    read=read,
    submissions=LISTED,
    statement=STATEMENT,
)
