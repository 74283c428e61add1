"""CodeContests (deepmind/code_contests).

Source: `contest_problem.proto` and the solution tester of github.com/google-deepmind/code_contests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.limits import memory_mb_of_bytes, seconds
from rl_client.datasets.row import Row
from rl_client.datasets.statements import in_column
from rl_client.datasets.stdio import StdioTests, gradable, stdio_test
from rl_client.datasets.submissions import Submission, SubmissionReader, submission

_SUITES = ("public", "private", "generated")

#: The tester's defaults: 10 s, and 256 MiB with 32 MiB on top.
_CPU_S = 10.0
_MEMORY_MB = 288

_OFFICIAL_COMPARE = {"type": "tokens", "case_sensitive": False, "float_absolute": 1e-5}


#: By the protocol's numbers; its JSON has the names of the enumeration.
_LANGUAGES = ("unknown", "py2", "cpp", "py3", "java")
_NAMES = dict(zip(("UNKNOWN_LANGUAGE", "PYTHON", "CPP", "PYTHON3", "JAVA"), _LANGUAGES, strict=True))


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
    return [stdio_test(test, f"{suite}/{index}") for index, test in enumerate(row.rows(f"{suite}_tests"))]


def _files(row: Row) -> dict[str, Any]:
    names = {name: row.text(name) for name in ("input_file", "output_file")}
    return {name: value for name, value in names.items() if value}


def submissions(row: Row) -> Iterator[Submission]:
    """Right and wrong programs."""
    for column, correct in (("solutions", True), ("incorrect_solutions", False)):
        for index, one in enumerate(row.rows(column)):
            language = _language(one.values.get("language"))
            yield submission(f"{column}[{index}]", column, correct, language, one.values.get("solution"))


def _language(value: Any) -> str:
    if isinstance(value, int) and 0 <= value < len(_LANGUAGES):
        return _LANGUAGES[value]
    return _NAMES.get(str(value), str(value))


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
    submissions=SubmissionReader(("solutions", "incorrect_solutions"), submissions),
    statement=in_column("description"),
)
