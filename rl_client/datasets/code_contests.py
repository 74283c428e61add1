"""CodeContests (deepmind/code_contests).

Source: `contest_problem.proto` and the solution tester of github.com/google-deepmind/code_contests.
"""

from __future__ import annotations

from typing import Any

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.limits import memory_mb_of_bytes, seconds
from rl_client.datasets.row import Row
from rl_client.datasets.stdio import StdioTests, gradable, paired, stdio_test

_SUITES = ("public", "private", "generated")

#: The tester's defaults: 10 s, and 256 MiB with 32 MiB on top.
_CPU_S = 10.0
_MEMORY_MB = 288

_OFFICIAL_COMPARE = {"type": "tokens", "case_sensitive": False, "float_absolute": 1e-5}


def read(row: Row, preset: Preset) -> Entry:
    """One row. `strict` takes the row's own limits where it names them."""
    tests = gradable((test for suite in _SUITES for test in _suite(row, suite)), "public, private and generated tests")
    own = preset == "strict"
    problem = build(
        kind="stdio",
        tests=tests,
        checker={"type": "tokens"} if own else _OFFICIAL_COMPARE,
        limits={
            "cpu_s": (own and seconds(row.values.get("time_limit"))) or _CPU_S,
            "memory_mb": (own and memory_mb_of_bytes(row.number("memory_limit_bytes"))) or _MEMORY_MB,
        },
        **_files(row),
    )
    names = ("source", "difficulty", "cf_rating", "cf_contest_id", "cf_index")
    labels = {name: row.label(name) for name in names if row.label(name) is not None}
    return Entry(problem, row.text("name") or "", labels)


def _suite(row: Row, suite: str) -> StdioTests:
    """A struct of two lists in the published files, a list of structs in the protocol's own JSON."""
    column = f"{suite}_tests"
    if isinstance(row.values.get(column), list):
        return [stdio_test(test, f"{suite}/{index}") for index, test in enumerate(row.rows(column))]
    return paired(row.row(column), "input", "output", suite)


def _files(row: Row) -> dict[str, Any]:
    names = {name: row.text(name) for name in ("input_file", "output_file")}
    return {name: value for name, value in names.items() if value}


READER = Reader(
    name="code-contests",
    title="CodeContests (deepmind/code_contests)",
    columns=(
        "name",
        "source",
        "difficulty",
        "public_tests",
        "private_tests",
        "generated_tests",
        "cf_contest_id",
        "cf_index",
        "cf_rating",
        "time_limit",
        "memory_limit_bytes",
        "input_file",
        "output_file",
    ),
    read=read,
)
