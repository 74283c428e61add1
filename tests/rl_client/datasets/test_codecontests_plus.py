"""CodeContests+: testlib checkers, limits in milliseconds and megabytes, rows without tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.contract import ProblemLimits, StdioProblem, StdioTest, TestlibChecker, TokensChecker
from tests.rl_client.datasets.importing import FORMS, import_files, import_rows, verdicts
from tests.serving import Server

CHECKER = '#include "testlib.h"\nint main(int c, char** v) { registerTestlibCmd(c, v); quitf(_ok, "fine"); }\n'

ROW: dict[str, Any] = {
    "source": "Codeforces",
    "id": "847_J",
    "title": "Students Initiation",
    "description": "Gifts.",
    "time_limit": 1500,
    "memory_limit": 256,
    "validator": "int main() {}",
    "generator": "int main() {}",
    "generator_cmd": "./gen 1",
    "checker": CHECKER,
    "correct_submissions": [{"language": "py3", "code": "print(1)"}],
    "incorrect_submissions": [{"language": "cpp", "code": "int main() {}"}],
    "test_cases": [{"input": "3\n", "output": "1\n"}, {"input": "4\n", "output": ""}],
    "true_positive_rate": 0.93,
    "true_negative_rate": 0.88,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("preset", ["official", "strict"])
def test_the_rows_own_checker_and_limits_are_used(tmp_path: Path, form: str, preset: str) -> None:
    imported = import_rows("codecontests-plus", tmp_path, [ROW], "--preset", preset, form=form)

    assert imported.status == 0
    assert imported.problems == [
        StdioProblem(
            kind="stdio",
            tests=(StdioTest(input="3\n", output="1\n"), StdioTest(input="4\n", output="")),
            checker=TestlibChecker(type="testlib", language="cpp", source=CHECKER),
            limits=ProblemLimits(cpu_s=1.5, memory_mb=256),
        )
    ]
    (line,) = imported.mapping
    assert (line["row"], line["key"], line["kind"], line["tests"]) == (0, "847_J", "stdio", 2)
    assert line["labels"] == {
        "source": "Codeforces",
        "title": "Students Initiation",
        "true_positive_rate": 0.93,
        "true_negative_rate": 0.88,
    }


def test_a_list_of_structs_may_be_kept_as_a_struct_of_lists(tmp_path: Path) -> None:
    kept = {name: [test[name] for test in ROW["test_cases"]] for name in ("input", "output")}
    problems = import_rows("codecontests-plus", tmp_path, [ROW | {"test_cases": kept}]).problems
    assert problems == import_rows("codecontests-plus", tmp_path, [ROW]).problems


def test_without_a_checker_official_compares_as_the_sets_tool(tmp_path: Path) -> None:
    (problem,) = import_rows("codecontests-plus", tmp_path, [ROW | {"checker": ""}]).problems
    assert isinstance(problem, StdioProblem)
    assert problem.checker == TokensChecker(type="tokens", case_sensitive=False, float_relative=1e-5)


def test_a_label_that_json_has_no_number_for_is_null(tmp_path: Path) -> None:
    (line,) = import_rows("codecontests-plus", tmp_path, [ROW | {"true_positive_rate": float("nan")}]).mapping
    assert line["labels"]["true_positive_rate"] is None


def test_without_limits_the_usual_ones_hold(tmp_path: Path) -> None:
    row = ROW | {"time_limit": None, "memory_limit": 0}
    (problem,) = import_rows("codecontests-plus", tmp_path, [row]).problems
    assert problem.limits == ProblemLimits(cpu_s=2.0, memory_mb=256)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"test_cases": []}, ("no tests", "test_cases: no tests")),
        ({"test_cases": None}, ("no tests", "test_cases: no tests")),
        (
            {"test_cases": [{"input": "3\n", "output": None}]},
            ("malformed", "test_cases[0]: output: missing"),
        ),
        ({"test_cases": [{"output": "3\n"}]}, ("malformed", "test_cases[0]: input: missing")),
        ({"test_cases": ["3\n"]}, ("malformed", "test_cases[0]: must be a struct, not str")),
        ({"test_cases": "3\n"}, ("malformed", "test_cases: must be a list, not str")),
        ({"time_limit": "1500"}, ("malformed", "time_limit: must be a number, not str")),
        (
            {"time_limit": 10**400},
            ("refused", "limits.cpu_s: Input should be less than or equal to 300"),
        ),
        (
            {"time_limit": 1_000_000},
            ("refused", "limits.cpu_s: Input should be less than or equal to 300"),
        ),
        ({"checker": 7}, ("malformed", "checker: must be a string, not int")),
        (
            {"checker": None},
            ("unsupported", "checker: missing, so it is not known which outputs are right"),
        ),
        (
            {"test_cases": [{"input": "\ud800", "output": "1"}]},
            (
                "refused",
                "tests[0].input: Lone surrogate at character 0: the string has no UTF-8 form",
            ),
        ),
    ],
)
def test_what_is_no_problem_is_skipped(tmp_path: Path, change: dict[str, Any], reason: tuple[str, str]) -> None:
    imported = import_rows("codecontests-plus", tmp_path, [ROW | change, ROW], "--preset", "strict", form="jsonl")

    assert (imported.status, imported.reasons) == (1, [reason])
    assert [line["row"] for line in imported.mapping] == [1]
    assert len(imported.problems) == 1


def test_a_text_that_is_no_utf8_spoils_its_row_alone(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([ROW, ROW])
    bad = pa.array([b"fine", b"\xff\xfe"], pa.binary()).view(pa.string())
    table = table.set_column(table.schema.get_field_index("checker"), "checker", bad)
    pq.write_table(table, tmp_path / "rows.parquet")

    imported = import_files("codecontests-plus", tmp_path, tmp_path / "rows.parquet")

    assert imported.reasons == [("undecodable", "a column is not UTF-8: invalid start byte")]
    assert len(imported.problems) == 1


#: Any number between 1 and the input's is right.
BETWEEN = """
#include "testlib.h"
int main(int argc, char** argv) {
    registerTestlibCmd(argc, argv);
    int most = inf.readInt(), got = ouf.readInt();
    if (got < 1 || got > most) quitf(_wa, "out of bounds");
    quitf(_ok, "fine");
}
"""


@pytest.mark.jail
def test_a_grader_judges_an_imported_row_by_its_checker(tmp_path: Path, grader: Server) -> None:
    programs = ("print(input())", "print(2)", "print(4)")
    found = verdicts("codecontests-plus", tmp_path, ROW | {"checker": BETWEEN}, grader.url, *programs)
    assert found == ["accepted", "accepted", "wrong_answer"]
