"""The programs in rows, in the shape of each set, and what is expected of verdicts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from rl_client.datasets.base import readers
from rl_client.datasets.row import Row, RowError
from rl_client.datasets.submissions import Expectation, Submission
from service.contract import TestRow, Verdict

BOTH = [
    Submission("correct_submissions[0]", "correct_submissions", True, "py3", "print(1)"),
    Submission("correct_submissions[1]", "correct_submissions", True, "cpp", "int main() {}"),
    Submission("incorrect_submissions[0]", "incorrect_submissions", False, "java", "class Main {}"),
]


def read(name: str, row: dict[str, Any]) -> list[Submission]:
    reader = readers()[name].submissions
    assert reader is not None
    return list(reader.read(Row(row)))


def right(label: str, *sources: str, language: str = "python") -> list[Submission]:
    return [Submission(f"{label}[{i}]", label, True, language, source) for i, source in enumerate(sources)]


def test_which_sets_have_programs_and_that_their_columns_are_read() -> None:
    columns = {
        name: set(reader.columns) | set(reader.submissions.columns)
        for name, reader in readers().items()
        if reader.submissions is not None
    }
    assert set(columns) == {
        "apps",
        "code-contests",
        "codecontests-plus",
        "deepcoder",
        "humaneval-plus",
        "kodcode",
        "mbpp-plus",
        "synthetic1",
        "taco",
    }
    assert {"correct_submissions", "incorrect_submissions"} <= columns["codecontests-plus"]
    assert {"solutions", "incorrect_solutions"} <= columns["code-contests"]
    assert {"gold_standard_solution", "verification_info"} <= columns["synthetic1"]
    assert {"prompt", "canonical_solution"} <= columns["humaneval-plus"]
    assert {"code"} <= columns["mbpp-plus"]
    assert {"solution"} <= columns["kodcode"]
    assert all("solutions" in columns[name] for name in ("apps", "taco", "deepcoder"))


@pytest.mark.parametrize("text", ["code", "solution"])
def test_codecontests_plus(text: str) -> None:
    row = {
        "correct_submissions": [
            {"language": "py3", text: "print(1)"},
            {"language": "cpp", text: "int main() {}"},
        ],
        "incorrect_submissions": [{"language": "java", text: "class Main {}"}],
    }
    assert read("codecontests-plus", row) == BOTH
    assert read("codecontests-plus", {"correct_submissions": None}) == []


def test_code_contests_in_the_published_form_and_in_the_protocols_own() -> None:
    published = {
        "solutions": {"language": [3, 2, 1], "solution": ["print(1)", "int main() {}", "print 1"]},
        "incorrect_solutions": {"language": [4, 0], "solution": ["class Main {}", "?"]},
    }
    protocol = {
        "solutions": [
            {"language": "PYTHON3", "solution": "print(1)"},
            {"language": "CPP", "solution": "int main() {}"},
            {"language": "PYTHON", "solution": "print 1"},
        ],
        "incorrect_solutions": [
            {"language": "JAVA", "solution": "class Main {}"},
            {"language": "UNKNOWN_LANGUAGE", "solution": "?"},
        ],
    }
    expected = [
        Submission("solutions[0]", "solutions", True, "py3", "print(1)"),
        Submission("solutions[1]", "solutions", True, "cpp", "int main() {}"),
        Submission("solutions[2]", "solutions", True, "py2", "print 1"),
        Submission("incorrect_solutions[0]", "incorrect_solutions", False, "java", "class Main {}"),
        Submission("incorrect_solutions[1]", "incorrect_solutions", False, "unknown", "?"),
    ]
    assert read("code-contests", published) == expected
    assert read("code-contests", protocol) == expected


@pytest.mark.parametrize("name", ["apps", "taco", "deepcoder"])
def test_lists_of_right_programs_as_json(name: str) -> None:
    assert read(name, {"solutions": json.dumps(["a", "b"])}) == right("solutions", "a", "b")
    for empty in ("", "[]", None):
        assert read(name, {"solutions": empty}) == []


def test_right_programs_in_columns_of_their_own() -> None:
    info = json.dumps({"language": "python", "test_cases": []})
    assert read("deepcoder", {"solutions": ["a"]}) == right("solutions", "a")
    assert read("kodcode", {"solution": "a"}) == right("solution", "a")
    assert read("mbpp-plus", {"code": "a"}) == right("code", "a")
    assert read("synthetic1", {"gold_standard_solution": "a", "verification_info": info}) == right(
        "gold_standard_solution", "a"
    )
    assert read("humaneval-plus", {"prompt": "def f():\n", "canonical_solution": "    return 1\n"}) == right(
        "canonical_solution", "def f():\n    return 1\n"
    )


@pytest.mark.parametrize(
    ("name", "row", "words"),
    [
        ("codecontests-plus", {"correct_submissions": "x"}, "correct_submissions: must be a list, not str"),
        ("codecontests-plus", {"incorrect_submissions": [1]}, "incorrect_submissions[0]: must be a struct, not int"),
        (
            "code-contests",
            {"solutions": {"language": [1], "solution": []}},
            "solutions.language: 1 of them, but 0 solution",
        ),
        ("apps", {"solutions": "{]"}, "solutions: not JSON"),
        ("apps", {"solutions": '{"a": 1}'}, "solutions: must hold a list, not dict"),
        ("deepcoder", {"solutions": 7}, "solutions: must be a string, not int"),
        ("kodcode", {"solution": 7}, "solution: must be a string, not int"),
    ],
)
def test_a_column_of_another_shape_is_an_error_of_the_row(name: str, row: dict[str, Any], words: str) -> None:
    with pytest.raises(RowError) as error:
        read(name, row)
    assert words in error.value.detail


def test_one_program_that_is_none_leaves_the_others() -> None:
    rows = [{"language": "py3", "code": None}, {"language": "py3", "code": " "}, {"language": "py3", "code": "a"}]
    found = read("codecontests-plus", {"correct_submissions": rows})
    assert [one.unusable for one in found] == ["no source", "no source", ""]


def rows(**verdicts: Verdict) -> list[TestRow]:
    return [
        TestRow(index=index, name=name.replace("_", "/"), input_length=1, verdict=verdict)
        for index, (name, verdict) in enumerate(verdicts.items())
    ]


AC, WA, TLE = Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.TIME_LIMIT


@pytest.mark.parametrize(
    ("tests", "objection"),
    [
        (rows(secret_1=AC, secret_2=TLE), None),
        (rows(secret_1=AC, secret_2=AC), "no test came to time_limit"),
        (rows(secret_1=TLE, secret_2=WA), "secret/2 came to wrong_answer"),
        (rows(sample_1=WA, secret_2=TLE), "sample/1 came to wrong_answer"),
    ],
)
def test_expectations_of_all_tests(tests: list[TestRow], objection: str | None) -> None:
    assert Expectation(frozenset({AC, TLE}), frozenset({TLE})).objection(tests) == objection


def test_expectations_of_some_tests_and_of_none() -> None:
    secret = Expectation(frozenset({AC, TLE}), frozenset({TLE}), re.compile("secret/.*"))
    assert secret.objection(rows(sample_1=WA, secret_2=TLE)) is None
    assert secret.objection(rows(sample_1=WA)) is None
