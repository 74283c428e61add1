"""SYNTHETIC-1 and verifiable-coding-problems (PrimeIntellect), and open-r1/verifiable-coding-problems-python.

Source: the published rows, and the verifier of github.com/PrimeIntellect-ai/genesys for what `official` does. In the
first two, `verification_info` and `metadata` are text of JSON or of Python's literals; in the last they are structs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.calls import entry_point, function_name, gradable_calls, refuse_integer_keys
from rl_client.datasets.limits import memory_mb, memory_mb_of_bytes, seconds
from rl_client.datasets.row import Row, RowError, parse_literal
from rl_client.datasets.stdio import gradable, stdio_test
from rl_client.datasets.submissions import Submission, SubmissionReader, solutions

#: genesys limits no test, but gives 120 s to all of a program's tests together.
_OFFICIAL_CPU_S = 120.0

#: open-r1's reward on the same problems, for rows that name no limit.
_STRICT_CPU_S = 5.0

#: Neither sets one; this keeps one program from taking the machine.
_MEMORY_MB = 1024

_LABELS = ("source", "task_type", "in_source_id")


def read(row: Row, preset: Preset) -> Entry:
    """One row. `strict` takes the row's own limits where it names them."""
    info = _struct(row, "verification_info")
    if info is None:
        raise RowError("no tests", "verification_info: empty")
    fields = _problem(row, info)
    metadata = _struct(row, "metadata") or Row({})
    problem = build(**fields, **_judging(fields["kind"], preset), limits=_limits(metadata, preset))
    labels = {name: row.label(name) for name in _LABELS if row.label(name) is not None}
    labels |= {"language": info.label("language")}
    if "function" in fields:
        labels["function"] = fields["function"]
    return Entry(problem, str(row.label("problem_id") or ""), labels)


def _problem(row: Row, info: Row) -> dict[str, Any]:
    tests = info.rows("test_cases")
    if not tests:
        raise RowError("no tests", "verification_info.test_cases: empty")
    types = {test.text("type") for test in tests}
    if types == {"stdin_stdout"}:
        return {"kind": "stdio", "tests": gradable((stdio_test(test) for test in tests), info.where("test_cases"))}
    if types == {"function_call"}:
        names = {str(test.values.get("fn_name")) for test in tests}
        if len(names) != 1:
            raise RowError("unsupported", f"verification_info.test_cases: of {len(names)} functions")
        language = info.text("language") or "python"
        if language.lower().rstrip("0123456789.") not in ("python", "py"):
            raise info.fault("language", f"calls are made to functions of Python, not of {language}", "unsupported")
        name = function_name(tests[0].values.get("fn_name"), tests[0].where("fn_name"))
        calls = gradable_calls([_call(test) for test in tests], info.where("test_cases"))
        return {"kind": "call", "tests": calls, "function": entry_point(name, row.text("gold_standard_solution") or "")}
    raise RowError("unsupported", f"verification_info.test_cases: of the types {', '.join(sorted(map(str, types)))}")


def _call(test: Row) -> dict[str, Any]:
    args, expected = test.values.get("input"), test.values.get("output")
    if "output" not in test.values:
        raise test.fault("output", "missing")
    if not isinstance(args, list):
        raise test.fault("input", f"must be a list of arguments, not {type(args).__name__}")
    refuse_integer_keys(args, test.where("input"))
    return {"args": args, "expected": expected}


def _judging(kind: str, preset: Preset) -> dict[str, Any]:
    if kind == "call":
        # genesys compares str() of both: 1, 1.0 and True differ, as they do here.
        return {"prelude": "lcb"}
    if preset == "official":
        return {"checker": {"type": "lcb"}, "exit_code": "ignore"}
    return {"checker": {"type": "tokens"}}


def _limits(metadata: Row, preset: Preset) -> dict[str, Any]:
    if preset == "official":
        return {"cpu_s": _OFFICIAL_CPU_S, "memory_mb": _MEMORY_MB}
    memory = memory_mb_of_bytes(metadata.values.get("memory_limit_bytes"))
    return {
        "cpu_s": seconds(metadata.values.get("time_limit")) or _STRICT_CPU_S,
        "memory_mb": memory or memory_mb(metadata.values.get("memory_limit")) or _MEMORY_MB,
    }


def _struct(row: Row, name: str) -> Row | None:
    """A struct, or the text of one."""
    value = row.values.get(name)
    if isinstance(value, str):
        if not value.strip():
            return None
        value = parse_literal(value, name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise row.fault(name, f"must hold an object, not {type(value).__name__}")
    return Row(value, name)


def submissions(row: Row) -> Iterator[Submission]:
    """The right program, where there is one; it may stand in a code fence."""
    text = row.text("gold_standard_solution")
    info = _struct(row, "verification_info") or Row({})
    return solutions([text] if text else [], "gold_standard_solution", info.text("language") or "python")


READER = Reader(
    name="synthetic1",
    title="SYNTHETIC-1 and verifiable-coding-problems",
    columns=("problem_id", "verification_info", "metadata", "gold_standard_solution", *_LABELS),
    read=read,
    submissions=SubmissionReader((), submissions),
)
