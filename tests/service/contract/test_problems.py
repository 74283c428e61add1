"""What is accepted as a problem, and what is refused by which field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from service.contract import (
    MAX_TESTS,
    PROBLEMS,
    GradeRequest,
    ProblemLimits,
    StdioProblem,
    StdioTest,
    TokensChecker,
    canonical_chunks,
    input_length,
    mistakes,
    parse_problem,
)
from tests.service.contract.samples import LONE_SURROGATE, POINTED, PROBLEM, REQUEST, TESTS, refused


def test_a_problem_needs_only_its_kind_and_tests() -> None:
    assert PROBLEMS.validate_python(PROBLEM) == StdioProblem(
        kind="stdio",
        tests=(StdioTest(input="1 2\n", output="3\n", name=None),),
        checker=TokensChecker(type="tokens", case_sensitive=True, float_absolute=None, float_relative=None),
        limits=ProblemLimits(cpu_s=2.0, wall_s=None, memory_mb=256, output_mb=64, processes=64),
        exit_code="strict",
    )


@pytest.mark.parametrize(
    "checker",
    [
        {"type": "tokens"},
        {"type": "tokens", "case_sensitive": False, "float_absolute": 1e-6, "float_relative": 1e-6},
        {"type": "exact"},
        {"type": "lines"},
        {"type": "lcb"},
    ],
)
def test_checkers_are_told_apart_by_their_type(checker: dict[str, Any]) -> None:
    problem = PROBLEMS.validate_python(PROBLEM | {"checker": checker})

    assert problem.checker.model_dump(exclude_defaults=True) == checker


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "riddle"}, "kind"),
        ({"kind": 7}, "kind"),
        ({"kind": None}, "kind"),
        ({"tests": []}, "tests"),
        ({"tests": TESTS * (MAX_TESTS + 1)}, "tests"),
        ({"tests": [*TESTS, {"input": 5, "output": ""}]}, "tests[1].input"),
        ({"tests": [{"input": ""}]}, "tests[0].output"),
        ({"tests": [{"input": "", "output": "", "args": []}]}, "tests[0].args"),
        ({"tests": [{"input": LONE_SURROGATE, "output": ""}]}, "tests[0].input"),
        ({"tests": [{"input": "", "output": LONE_SURROGATE}]}, "tests[0].output"),
        ({"tests": [{"input": "", "output": "", "name": LONE_SURROGATE}]}, "tests[0].name"),
        ({"checker": {"type": "guess"}}, "checker.type"),
        ({"checker": {}}, "checker.type"),
        ({"checker": {"type": "exact", "case_sensitive": False}}, "checker.case_sensitive"),
        ({"checker": {"type": "tokens", "case_sensitive": "no"}}, "checker.case_sensitive"),
        ({"checker": {"type": "tokens", "float_absolute": -1e-9}}, "checker.float_absolute"),
        ({"checker": {"type": "tokens", "float_relative": float("inf")}}, "checker.float_relative"),
        ({"limits": {"cpu_s": float("nan")}}, "limits.cpu_s"),
        ({"limits": {"cpu_s": float("inf")}}, "limits.cpu_s"),
        ({"limits": {"cpu_s": 0}}, "limits.cpu_s"),
        ({"limits": {"cpu_s": 301}}, "limits.cpu_s"),
        ({"limits": {"cpu_s": "2"}}, "limits.cpu_s"),
        ({"limits": {"cpu_s": True}}, "limits.cpu_s"),
        ({"limits": {"cpu_s": None}}, "limits.cpu_s"),
        ({"limits": {"wall_s": -1.0}}, "limits.wall_s"),
        ({"limits": {"memory_mb": 15}}, "limits.memory_mb"),
        ({"limits": {"memory_mb": 10**6}}, "limits.memory_mb"),
        ({"limits": {"memory_mb": 256.5}}, "limits.memory_mb"),
        ({"limits": {"output_mb": 0}}, "limits.output_mb"),
        ({"limits": {"processes": 0}}, "limits.processes"),
        ({"limits": {"cpu_ms": 2}}, "limits.cpu_ms"),
        ({"exit_code": "lenient"}, "exit_code"),
        ({"functon": "f"}, "functon"),
    ],
)
def test_a_malformed_problem_is_refused_with_the_one_field_at_fault(change: dict[str, Any], field: str) -> None:
    assert list(refused(PROBLEMS, PROBLEM | change)) == [field]
    assert list(refused(GradeRequest, REQUEST | {"problem": PROBLEM | change})) == [f"problem.{field}"]


@pytest.mark.parametrize("field", ["input_file", "output_file"])
@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "/etc/passwd",
        "a/b",
        "a\\b",
        ".hidden",
        "-f",
        "a,b",
        "a=b",
        "a b",
        "a\n",
        "a\0",
        "é",
        "x" * 65,
        7,
    ],
)
def test_a_file_is_named_by_one_plain_component(field: str, name: object) -> None:
    assert list(refused(PROBLEMS, PROBLEM | {field: name})) == [field]


def test_input_and_output_are_two_files() -> None:
    same = {"input_file": "data.txt", "output_file": "data.txt"}

    assert refused(PROBLEMS, PROBLEM | same) == {"output_file": "Input and output are two files"}
    problem = PROBLEMS.validate_python(PROBLEM | same | {"output_file": "DATA.TXT"})
    assert (problem.input_file, problem.output_file) == ("data.txt", "DATA.TXT")


SUM = {"scoring": "sum"}


@pytest.mark.parametrize(
    ("tests", "groups", "mistake"),
    [
        ([POINTED], {}, ("tests[0].group", "No such group in `groups` of the problem")),
        ([POINTED, POINTED | {"points": None}], {"a": SUM}, ("tests[1].points", "A test in a group needs points")),
        ([POINTED], {"a": SUM, "b": SUM}, ("groups.b", "No test is in this group")),
        (
            [POINTED],
            {"a": SUM | {"depends": ["z"]}},
            ("groups.a.depends[0]", "No such group in `groups` of the problem"),
        ),
        ([POINTED], {"a": SUM | {"depends": ["a"]}}, ("groups.a.depends", "The group depends on itself")),
        ([POINTED], {"a": {}}, ("groups.a.scoring", "Field required")),
        ([POINTED], {"a": {"scoring": "max"}}, ("groups.a.scoring", "Input should be 'sum' or 'min'")),
        ([POINTED | {"points": -1}], {"a": SUM}, ("tests[0].points", "Input should be greater than or equal to 0")),
        ([POINTED | {"points": "1"}], {"a": SUM}, ("tests[0].points", "Input should be a valid number")),
        ([POINTED | {"points": float("nan")}], {"a": SUM}, ("tests[0].points", "Input should be a finite number")),
    ],
)
def test_groups_that_do_not_hold_together_are_refused_where_they_can_be_mended(
    tests: list[Any], groups: dict[str, Any], mistake: tuple[str, str]
) -> None:
    problem = {"kind": "stdio", "tests": tests, "groups": groups}

    assert list(refused(PROBLEMS, problem).items()) == [mistake]
    assert list(refused(GradeRequest, REQUEST | {"problem": problem})) == [f"problem.{mistake[0]}"]


def test_a_circle_of_groups_is_refused() -> None:
    tests = [POINTED | {"group": name} for name in "abc"]
    groups = {name: SUM | {"depends": [other]} for name, other in ("ab", "bc", "ca")}

    [(field, sentence)] = refused(PROBLEMS, {"kind": "stdio", "tests": tests, "groups": groups}).items()

    assert field in {"groups.a.depends", "groups.b.depends", "groups.c.depends"}
    assert sentence == "The group depends on itself"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_json_should_not_hold_are_refused_with_their_field(number: str) -> None:
    body = f'{{"kind": "stdio", "tests": [{{"input": "", "output": ""}}], "limits": {{"cpu_s": {number}}}}}'

    with pytest.raises(ValidationError) as caught:
        parse_problem(body)

    assert [field for field, _ in mistakes(caught.value)] == ["limits.cpu_s"]


def test_a_kind_that_is_missing_or_unknown_is_named_with_those_there_are() -> None:
    assert refused(PROBLEMS, {"tests": TESTS}) == {"kind": "Field required"}
    [(field, sentence)] = refused(PROBLEMS, PROBLEM | {"kind": "riddle"}).items()
    assert field == "kind"
    assert sentence.startswith("Input should be one of 'stdio'")


@pytest.mark.parametrize("sent", [None, 7, [], "no id"])
def test_what_is_no_object_is_no_problem(sent: object) -> None:
    assert list(refused(PROBLEMS, sent)) == [""]


def test_text_beyond_ascii_and_control_characters_are_data_like_any_other() -> None:
    text = "\x00\ufeff\r\n é 漢 \U0001f600 \ufffe"
    problem = PROBLEMS.validate_python(PROBLEM | {"tests": [{"input": text, "output": text}]})

    assert problem.tests[0].input == problem.tests[0].output == text
    assert json.loads(b"".join(canonical_chunks(problem)))["tests"] == [{"input": text, "output": text}]


def test_length_is_that_of_the_stored_input_in_bytes_or_in_code_points() -> None:
    assert (input_length("", "bytes"), input_length("", "chars")) == (0, 0)
    assert (input_length(" 1\r\n", "bytes"), input_length(" 1\r\n", "chars")) == (4, 4)
    assert (input_length("é漢\U0001f600", "bytes"), input_length("é漢\U0001f600", "chars")) == (9, 3)
