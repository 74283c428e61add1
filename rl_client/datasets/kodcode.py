"""KodCode (KodCode/KodCode-V1, and what was chosen from it): a suite for pytest, or texts to be read and printed.

Source: the published rows (`test`, in what its pipeline writes `test_code`), the pipeline of
github.com/KodCode-AI/kodcode, whose runner gives a suite the solution's names, and the rewards of
github.com/rllm-org/rllm for the time limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.input_output import stdio_problem
from rl_client.datasets.row import Row, RowError, parse_literal
from rl_client.datasets.submissions import Submission, SubmissionReader, solutions
from rl_client.datasets.suites import asserts, parsed

#: rLLM gives so much to each test function, to be used by any of them.
_S_PER_TEST = 5.0
_MOST_S = 300.0

#: Nobody sets one; this keeps one program from taking the machine.
_MEMORY_MB = 1024

#: The column with the tests, as published and as the pipeline writes it.
_COLUMNS = ("test", "test_code")

_TEST = re.compile(r"^[ \t]*def test", re.MULTILINE)
_IMPORTED = re.compile(r"^[ \t]*(?:from[ \t]+solution[ \t]+import|import[ \t]+solution)\b", re.MULTILINE)

#: What many suites do without, and their runners put before them.
_IMPORT = "from solution import *\n"


def read(row: Row, preset: Preset) -> Entry:
    """One row. The presets do not differ: a suite passes or it does not, and texts are compared as they stand."""
    column = next((name for name in _COLUMNS if row.values.get(name) is not None), _COLUMNS[0])
    text = row.text(column)
    if text is None or not text.strip():
        raise RowError("no tests", f"{column}: empty")
    fields = _online_judge(text, column) if row.text("style") == "online_judge" else _suite(text, column)
    labels = {name: row.label(name) for name in ("style", "subset") if row.label(name) is not None}
    function = _function(row.values.get("test_info"))
    return Entry(build(**fields), row.text("question_id") or "", labels | ({"function": function} if function else {}))


def _suite(script: str, column: str) -> dict[str, Any]:
    count = len(_TEST.findall(script))
    if count == 0:
        raise RowError("no tests", f"{column}: defines no test function")
    if not _IMPORTED.search(script):
        script = _IMPORT + script
    if not asserts(parsed(script, column)):
        raise RowError("no tests", f"{column}: asserts nothing")
    return {
        "kind": "script",
        "runner": "pytest",
        "tests": [{"script": script}],
        "limits": {"cpu_s": min(_S_PER_TEST * count, _MOST_S), "memory_mb": _MEMORY_MB},
    }


def _online_judge(text: str, column: str) -> dict[str, Any]:
    """Two lists of texts, as a literal of Python."""
    content = parse_literal(text, column)
    if not isinstance(content, dict):
        raise RowError("malformed", f"{column}: must hold an object, not {type(content).__name__}")
    return stdio_problem(Row(content, column), "stdin", "stdout") | {
        "checker": {"type": "lines"},
        "limits": {"cpu_s": _S_PER_TEST, "memory_mb": _MEMORY_MB},
    }


def _function(infos: Any) -> str | None:
    """The name of the first function that is tested, where the row tells."""
    first = infos[0] if isinstance(infos, list) and infos else None
    name = first.get("function_name") if isinstance(first, dict) else None
    return name if isinstance(name, str) else None


def submissions(row: Row) -> Iterator[Submission]:
    """The right program."""
    text = row.text("solution")
    return solutions([text] if text else [], "solution")


READER = Reader(
    name="kodcode",
    title="KodCode-V1 (KodCode/KodCode-V1, KodCode-Light-RL-10K)",
    columns=("question_id", "style", "subset", *_COLUMNS, "test_info"),
    read=read,
    submissions=SubmissionReader(("solution",), submissions),
)
