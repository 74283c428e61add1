"""KodCode-V1 (KodCode/KodCode-V1): a solution and a suite for pytest that imports from it.

Source: the published rows, and the rewards of github.com/rllm-org/rllm for the time limit.
"""

from __future__ import annotations

import re

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.row import Row, RowError

#: rLLM gives so much to each test function, to be used by any of them.
_S_PER_TEST = 5.0
_MOST_S = 300.0

#: Nobody sets one; this keeps one program from taking the machine.
_MEMORY_MB = 1024

_TEST = re.compile(r"^[ \t]*def test", re.MULTILINE)
_IMPORTED = re.compile(r"^[ \t]*(?:from[ \t]+solution[ \t]+import|import[ \t]+solution)\b", re.MULTILINE)


def read(row: Row, preset: Preset) -> Entry:
    """One row. The presets do not differ: a suite passes or it does not."""
    script = row.text("test_code")
    if script is None or not script.strip():
        raise RowError("no tests", "test_code: empty")
    count = len(_TEST.findall(script))
    if count == 0:
        raise RowError("no tests", "test_code: defines no test function")
    if not _IMPORTED.search(script):
        raise RowError("malformed", "test_code: imports nothing from the solution")
    problem = build(
        kind="script",
        runner="pytest",
        tests=[{"script": script}],
        limits={"cpu_s": min(_S_PER_TEST * count, _MOST_S), "memory_mb": _MEMORY_MB},
    )
    labels = {name: row.label(name) for name in ("style", "subset") if row.label(name) is not None}
    functions = [info.label("function_name") for info in row.rows("test_info")]
    if functions:
        labels["function"] = functions[0]
    return Entry(problem, row.text("question_id") or "", labels)


READER = Reader(
    name="kodcode",
    title="KodCode-V1 (KodCode/KodCode-V1)",
    columns=("question_id", "style", "subset", "test_code", "test_info"),
    read=read,
)
