"""open-r1/codeforces: the official tests that Codeforces shows in full, and generated checkers in Python.

Source: the set's card and `cf_scoring.py` of github.com/huggingface/open-r1. The set's generated tests lie in files of
their own, which are not read.
"""

from __future__ import annotations

from typing import Any

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.limits import memory_mb, seconds
from rl_client.datasets.row import Row, RowError
from rl_client.datasets.stdio import gradable, stdio_test

#: Where a row names no limit.
_CPU_S = 2.0
_MEMORY_MB = 256

_FILES = {"input_file": "input.txt", "output_file": "output.txt"}


def read(row: Row, preset: Preset) -> Entry:
    """One row. `strict` takes no row whose official tests are cut short."""
    if (row.text("interaction_format") or "").strip():
        raise RowError("unsupported", "interaction_format: an interactive problem, and the set has no interactors")
    if row.flag("executable") is False:
        raise RowError("unsupported", "executable: false, so the set itself does not run programs on it")
    tests = gradable((stdio_test(test) for test in row.rows("official_tests")), "official_tests")
    complete = row.flag("official_tests_complete")
    if preset == "strict" and not complete:
        raise RowError(
            "no tests", f"official_tests: {len(tests)} of {row.label('testset_size')}, the rest is not shown"
        )
    problem = build(
        kind="stdio",
        tests=tests,
        checker=_checker(row),
        limits={
            "cpu_s": seconds(row.number("time_limit")) or _CPU_S,
            "memory_mb": memory_mb(row.number("memory_limit")) or _MEMORY_MB,
        },
        **_mode(row),
    )
    labels = {name: row.label(name) for name in ("rating", "official_tests_complete") if name in row.values}
    return Entry(problem, row.text("id") or "", labels)


def _checker(row: Row) -> dict[str, Any]:
    source = row.text("generated_checker")
    return {"type": "python", "source": source} if source and source.strip() else {"type": "tokens"}


def _mode(row: Row) -> dict[str, str]:
    match row.text("input_mode"):
        case None | "stdio":
            return {}
        case "file":
            return _FILES
        case mode:
            raise row.fault("input_mode", f"must be stdio or file, not {mode[:40]!r}")


READER = Reader(
    name="codeforces",
    title="open-r1/codeforces, official tests",
    columns=(
        "id",
        "time_limit",
        "memory_limit",
        "interaction_format",
        "rating",
        "testset_size",
        "official_tests",
        "official_tests_complete",
        "input_mode",
        "generated_checker",
        "executable",
    ),
    read=read,
)
