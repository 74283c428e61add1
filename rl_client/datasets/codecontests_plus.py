"""CodeContests+ (ByteDance-Seed/Code-Contests-Plus), the configurations `1x` to `5x`.

Source: arXiv 2506.05817 and the columns of the published files. Checkers are written with testlib. Limits are those of
the original judge, in milliseconds and megabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.limits import memory_mb, milliseconds
from rl_client.datasets.row import Row, RowError
from rl_client.datasets.statements import in_column
from rl_client.datasets.stdio import gradable, stdio_test
from rl_client.datasets.submissions import Submission, SubmissionReader, submission

#: Where a row names no limit.
_CPU_S = 2.0
_MEMORY_MB = 256

#: What the set's own tool, SandboxFusion, does without checkers: no case, and close numbers are equal.
_OFFICIAL_COMPARE = {"type": "tokens", "case_sensitive": False, "float_relative": 1e-5}


def read(row: Row, preset: Preset) -> Entry:
    """One row of `ccplus_Nx`."""
    tests = gradable((stdio_test(test) for test in row.rows("test_cases")), "test_cases")
    problem = build(
        kind="stdio",
        tests=tests,
        checker=_checker(row, preset),
        limits={
            "cpu_s": milliseconds(row.number("time_limit")) or _CPU_S,
            "memory_mb": memory_mb(row.number("memory_limit")) or _MEMORY_MB,
        },
    )
    names = ("source", "title", "true_positive_rate", "true_negative_rate")
    labels = {name: row.label(name) for name in names if name in row.values}
    return Entry(problem, str(row.label("id") or ""), labels)


def _checker(row: Row, preset: Preset) -> dict[str, Any]:
    source = row.text("checker")
    if source and source.strip():
        return {"type": "testlib", "language": "cpp", "source": source}
    if preset == "strict":
        raise RowError("unsupported", "checker: missing, so it is not known which outputs are right")
    return _OFFICIAL_COMPARE


def submissions(row: Row) -> Iterator[Submission]:
    """Right and wrong programs; their text is `code`, in some copies of the set `solution`."""
    for column, correct in (("correct_submissions", True), ("incorrect_submissions", False)):
        for index, one in enumerate(row.rows(column)):
            text = one.values.get("code") or one.values.get("solution")
            yield submission(f"{column}[{index}]", column, correct, one.text("language") or "", text)


READER = Reader(
    name="codecontests-plus",
    title="CodeContests+ (ByteDance-Seed/Code-Contests-Plus)",
    columns=(
        "source",
        "id",
        "title",
        "time_limit",
        "memory_limit",
        "checker",
        "test_cases",
        "true_positive_rate",
        "true_negative_rate",
    ),
    read=read,
    submissions=SubmissionReader(("correct_submissions", "incorrect_submissions"), submissions),
    statement=in_column("description"),
)
