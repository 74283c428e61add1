"""open-r1/codeforces: the official tests that Codeforces shows in full, generated tests, and checkers in Python.

Source: the set's card and `cf_scoring.py` of github.com/huggingface/open-r1. Generated tests lie in files of their own,
one a contest (`generated_tests/test_cases_0001.parquet`), with the columns `problem_id`, `input` and `output`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.limits import memory_mb, seconds
from rl_client.datasets.row import Row, RowError
from rl_client.datasets.rows import read_rows
from rl_client.datasets.stdio import gradable, stdio_test

#: Where a row names no limit.
_CPU_S = 2.0
_MEMORY_MB = 256

#: Not a column of the set, whose `generated_tests` is a number.
_JOINED = "joined_tests"

_FILES = {"input_file": "input.txt", "output_file": "output.txt"}


def read(row: Row, preset: Preset) -> Entry:
    """One row. `strict` takes no row whose official tests are cut short and not made up for by generated ones."""
    if (row.text("interaction_format") or "").strip():
        raise RowError("unsupported", "interaction_format: an interactive problem, and the set has no interactors")
    if row.flag("executable") is False:
        raise RowError("unsupported", "executable: false, so the set itself does not run programs on it")
    official = [stdio_test(test, f"official/{index}") for index, test in enumerate(row.rows("official_tests"))]
    generated = [stdio_test(test, f"generated/{index}") for index, test in enumerate(row.rows(_JOINED))]
    tests = gradable(official + generated, "official_tests")
    complete = row.flag("official_tests_complete")
    if preset == "strict" and not complete and not generated:
        raise RowError(
            "no tests", f"official_tests: {len(official)} of {row.label('testset_size')}, the rest is not shown"
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


def join(row: Row, folder: Path) -> dict[str, Any]:
    """The generated tests of a row; none where its contest has no file, as for the set's own grader.

    Raises DatasetError where there is one that cannot be read, and RowError where a test cannot be decoded.
    """
    key = row.text("id") or ""
    contest = key.partition("/")[0]
    path = folder / f"test_cases_{contest:0>4}.parquet"
    if not contest.isdecimal() or not path.is_file():
        return {_JOINED: []}
    tests = (record.load() for record in read_rows(path, ("problem_id", "input", "output")))
    return {_JOINED: [test for test in tests if test.get("problem_id") == key]}


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
    title="open-r1/codeforces",
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
    join=join,
)
