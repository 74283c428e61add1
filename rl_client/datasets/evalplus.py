"""What HumanEval+ and MBPP+ share: one suite of assertions a row, as EvalPlus publishes it beside its own files.

Source: the rows of evalplus/humanevalplus and evalplus/mbppplus, and github.com/evalplus/evalplus for the limits.
EvalPlus' own files (`HumanEvalPlus.jsonl.gz`) hold inputs without answers, which the reference solution is run for;
an import runs nothing, so they are refused.
"""

from __future__ import annotations

from typing import Any

from rl_client.datasets.row import Row, RowError
from rl_client.datasets.suites import asserts, defines, parsed, uses

#: EvalPlus caps all inputs of a program at 60 s together, and its memory at 4 GB.
LIMITS = {"cpu_s": 60.0, "memory_mb": 4096}


def suite(row: Row, function: str) -> str:
    """The column `test`, which tests the function. Raises RowError."""
    if "plus_input" in row.values:
        raise RowError("unsupported", "plus_input: inputs without answers; the published rows with `test` have both")
    text = row.text("test")
    if text is None or not text.strip():
        raise RowError("no tests", "test: empty")
    tree = parsed(text, "test")
    if not asserts(tree):
        raise RowError("no tests", "test: asserts nothing")
    if not (defines(tree, "check") or uses(tree, function)):
        raise RowError("no tests", f"test: neither defines check nor uses {function}")
    return text


def script_problem(script: str, function: str) -> dict[str, Any]:
    """The fields of the problem: one test, the whole suite. A `check` that it defines is called with the function."""
    return {
        "kind": "script",
        "runner": "exec",
        "entry_point": function,
        "tests": [{"script": script}],
        "limits": LIMITS,
    }
