"""The wire contract: what is accepted, what is refused and by which field, and what a problem is known by."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from sandbox.verdicts import Verdict
from service.contract import (
    MAX_BATCH_ITEMS,
    MAX_SOURCE_CHARS,
    MAX_TESTS,
    PROBLEMS,
    BatchRequest,
    CallProblem,
    ExactChecker,
    GradeRequest,
    GradeResult,
    PointGroup,
    ProblemInfo,
    ProblemLimits,
    StdioProblem,
    StdioTest,
    TokensChecker,
    canonical_chunks,
    describe,
    effective_limits,
    field_path,
    input_length,
    mistakes,
    parse_problem,
    problem_id,
)

ID = "sha256:" + "0123456789abcdef" * 4
TESTS = [{"input": "1 2\n", "output": "3\n"}]
PROBLEM = {"kind": "stdio", "tests": TESTS}
REQUEST = {"problem": PROBLEM, "language": "python", "source": "print(3)"}

LONE_SURROGATE = json.loads(r'"a\ud800"')


def refused(model: type[BaseModel] | TypeAdapter[Any], sent: object) -> dict[str, str]:
    """Field path -> message of each mistake."""
    validate = model.validate_python if isinstance(model, TypeAdapter) else model.model_validate
    with pytest.raises(ValidationError) as caught:
        validate(sent)
    return dict(mistakes(caught.value))


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


POINTED = {"input": "", "output": "", "points": 1, "group": "a"}
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


def test_a_request_has_the_defaults_of_the_contract() -> None:
    request = GradeRequest.model_validate({"problem": ID, "language": "cpp", "completion": "no code"})

    assert request.model_dump() == {
        "problem": ID,
        "language": "cpp",
        "source": None,
        "completion": "no code",
        "extraction": "last_fence",
        "limits": {"cpu_s": None, "wall_s": None, "memory_mb": None, "output_mb": None, "processes": None},
        "time_factor": 1.0,
        "stop": "never",
        "taxonomy": "first_failure",
        "length_unit": "bytes",
        "detail": "verdicts",
        "id": None,
    }


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"problem": "sha256:abc"}, "problem"),
        ({"problem": ID + "\n"}, "problem"),
        ({"problem": ID.upper()}, "problem"),
        ({"problem": None}, "problem"),
        ({"problem": 7}, "problem"),
        ({"language": ""}, "language"),
        ({"language": "x" * 65}, "language"),
        ({"source": LONE_SURROGATE}, "source"),
        ({"source": "x" * (4 * 2**20 + 1)}, "source"),
        ({"source": None, "completion": LONE_SURROGATE}, "completion"),
        ({"extraction": "best"}, "extraction"),
        ({"limits": {"cpu_s": float("nan")}}, "limits.cpu_s"),
        ({"limits": {"memory_gb": 1}}, "limits.memory_gb"),
        ({"time_factor": float("inf")}, "time_factor"),
        ({"time_factor": 0}, "time_factor"),
        ({"time_factor": 1000}, "time_factor"),
        ({"time_factor": "2"}, "time_factor"),
        ({"stop": "always"}, "stop"),
        ({"taxonomy": "lenient"}, "taxonomy"),
        ({"length_unit": "lines"}, "length_unit"),
        ({"detail": "all"}, "detail"),
        ({"id": "x" * 513}, "id"),
        ({"id": LONE_SURROGATE}, "id"),
        ({"timeout": 3}, "timeout"),
    ],
)
def test_a_malformed_request_is_refused_with_the_one_field_at_fault(change: dict[str, Any], field: str) -> None:
    assert list(refused(GradeRequest, REQUEST | change)) == [field]


def test_source_and_completion_exclude_each_other_and_an_empty_program_is_a_program() -> None:
    both_or_neither = dict.fromkeys(
        ("source", "completion"), "Give exactly one of `source` and `completion`, as a string"
    )

    assert refused(GradeRequest, REQUEST | {"completion": ""}) == both_or_neither
    assert refused(GradeRequest, {"problem": ID, "language": "c"}) == both_or_neither
    assert GradeRequest.model_validate(REQUEST | {"source": ""}).source == ""


@pytest.mark.parametrize("taxonomy", ["any_wrong", "strict"])
def test_rules_that_need_every_test_refuse_to_stop_early(taxonomy: str) -> None:
    early = REQUEST | {"taxonomy": taxonomy, "stop": "first_failure"}

    assert refused(GradeRequest, early) == {
        "taxonomy": f"The rule `{taxonomy}` needs every test to be run: set `stop` to `never`"
    }
    assert GradeRequest.model_validate(early | {"stop": "never"}).taxonomy == taxonomy


def test_a_batch_is_bounded_and_names_the_item_at_fault() -> None:
    by_id = {"problem": ID, "language": "c", "source": ""}

    assert list(refused(BatchRequest, {"items": []})) == ["items"]
    assert list(refused(BatchRequest, {"items": [by_id] * (MAX_BATCH_ITEMS + 1)})) == ["items"]
    assert list(refused(BatchRequest, {"items": [by_id, REQUEST | {"problem": {"kind": "stdio"}}]})) == [
        "items[1].problem.tests",
    ]
    assert len(BatchRequest.model_validate({"items": [by_id, by_id]}).items) == 2


def test_values_are_frozen() -> None:
    request = GradeRequest.model_validate(REQUEST)

    with pytest.raises(ValidationError, match="frozen"):
        request.language = "c"


def test_a_field_path_keeps_fields_that_are_named_like_union_tags() -> None:
    assert field_path(("problem", "inline", "checker", "tokens", "case_sensitive")) == (
        "problem.checker.case_sensitive"
    )
    assert field_path(("items", 3, "tokens", "inline")) == "items[3].tokens.inline"
    assert field_path(("stdio", "tests", 0, "stdio")) == "tests[0].stdio"
    assert field_path(("problem", "inline", "stdio", "tests")) == "problem.tests"
    assert field_path(()) == ""


def test_length_is_that_of_the_stored_input_in_bytes_or_in_code_points() -> None:
    assert (input_length("", "bytes"), input_length("", "chars")) == (0, 0)
    assert (input_length(" 1\r\n", "bytes"), input_length(" 1\r\n", "chars")) == (4, 4)
    assert (input_length("é漢\U0001f600", "bytes"), input_length("é漢\U0001f600", "chars")) == (9, 3)


def limits_of(problem: dict[str, Any], **request: Any) -> dict[str, Any]:
    asked = GradeRequest.model_validate(REQUEST | request)
    return effective_limits(ProblemLimits.model_validate(problem), asked).model_dump(exclude_defaults=True)


def test_overrides_replace_single_limits_and_the_factor_multiplies_the_cpu_limit() -> None:
    assert limits_of({}) == {}
    assert limits_of({"cpu_s": 3, "memory_mb": 64}) == {"cpu_s": 3.0, "memory_mb": 64}
    assert limits_of({"cpu_s": 3, "memory_mb": 64}, limits={"memory_mb": 128, "processes": 1}) == {
        "cpu_s": 3.0,
        "memory_mb": 128,
        "processes": 1,
    }
    assert limits_of({"cpu_s": 3}, limits={"cpu_s": 5}, time_factor=2.5) == {"cpu_s": 12.5}
    assert limits_of({"cpu_s": 3}, time_factor=0.5) == {"cpu_s": 1.5}


def test_the_factor_takes_the_problems_wall_limit_along_but_not_the_requests() -> None:
    assert limits_of({"wall_s": 4.0}, time_factor=3) == {"cpu_s": 6.0, "wall_s": 12.0}
    assert limits_of({"wall_s": 4.0}, time_factor=3, limits={"wall_s": 5}) == {"cpu_s": 6.0, "wall_s": 5.0}


def test_a_factor_cannot_carry_a_limit_past_its_bound() -> None:
    with pytest.raises(ValidationError) as caught:
        limits_of({"cpu_s": 10}, time_factor=100)

    assert [error["loc"] for error in caught.value.errors()] == [("cpu_s",)]


def test_canonical_json_is_sorted_compact_utf8_without_defaults() -> None:
    problem = PROBLEMS.validate_python(
        {
            "tests": [{"output": "é\n", "input": '"\t', "name": None}],
            "limits": {"memory_mb": 256, "cpu_s": 3},
            "kind": "stdio",
            "exit_code": "strict",
            "checker": {"type": "exact"},
        }
    )
    canonical = (
        '{"checker":{"type":"exact"},"kind":"stdio","limits":{"cpu_s":3.0},'
        '"tests":[{"input":"\\"\\t","output":"é\\n"}]}'
    ).encode()

    assert b"".join(canonical_chunks(problem)) == canonical
    assert problem_id(problem) == "sha256:" + hashlib.sha256(canonical).hexdigest()
    assert parse_problem(canonical) == problem


@pytest.mark.parametrize("text", ["x", "\n", '"', "é", "\x00", "\U0001f600"])
def test_canonical_json_is_what_the_json_module_writes_and_comes_in_small_pieces(text: str) -> None:
    long = text * (2**20 + 3) + "end"
    problems = [
        {"kind": "stdio", "tests": [{"input": long, "output": text, "points": 0.1, "group": text}],
         "groups": {"b": {"scoring": "sum"}, text: {"scoring": "min", "depends": ["b"]}}},
        {"kind": "call", "function": "f", "tests": [
            {"args": [{"b": [], "a": {}, text: [1, -0.0, 1e300, 10**30, True, None]}, long], "expected": [[]]}]},
    ]  # fmt: skip
    problems[0]["tests"].append({"input": "", "output": "", "points": 1.0, "group": "b"})  # type: ignore[attr-defined]
    for sent in problems:
        problem = PROBLEMS.validate_python(sent)
        pieces = list(canonical_chunks(problem))
        whole = json.dumps(
            problem.model_dump(exclude_defaults=True), ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
        assert b"".join(pieces) == whole.encode()
        assert max(map(len, pieces)) <= 6 * 2**20


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"source": "x" * (MAX_SOURCE_CHARS + 1)},
         {"source": f"String should have at most {MAX_SOURCE_CHARS} characters, not {MAX_SOURCE_CHARS + 1}"}),
        ({"source": None}, dict.fromkeys(("source", "completion"),
         "Give exactly one of `source` and `completion`, as a string")),
        ({"completion": ""}, dict.fromkeys(("source", "completion"),
         "Give exactly one of `source` and `completion`, as a string")),
        ({"problem": {"kind": "stdio", "tests": [{"input": "", "output": "", "name": "n" * 257}]}},
         {"problem.tests[0].name": "String should have at most 256 characters, not 257"}),
        ({"problem": {"kind": "stdio", "tests": [{"input": "", "output": ""}],
                      "checker": {"type": "kattis", "language": "cpp"}}},
         dict.fromkeys(("problem.checker.source", "problem.checker.files"),
                       "Give exactly one of `source` and `files`")),
        ({"problem": {"kind": "stdio", "tests": [{"input": "", "output": ""}],
                      "checker": {"type": "kattis", "language": "cpp", "source": "", "flags": [""] * 65}}},
         {"problem.checker.flags": "Tuple should have at most 64 items after validation, not 65"}),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_the_words_of_what_was_sent(changed: dict[str, Any], said: dict[str, str]) -> None:
    sent = {"problem": ID, "language": "python", "source": "pass"} | changed
    with pytest.raises(ValidationError) as caught:
        GradeRequest.model_validate_json(json.dumps(sent))
    assert dict(mistakes(caught.value)) == said


@pytest.mark.parametrize(
    ("problem", "identifier"),
    [
        (PROBLEM, "sha256:b1701230d977eb79e6eb4a9c6f5a1aaa2247d8d5e2983b02cb28fef1b03e341b"),
        (
            {
                "kind": "stdio",
                "tests": [{"input": "é 1\n", "output": "2\n", "name": "one"}, {"input": "", "output": ""}],
                "checker": {"type": "tokens", "float_absolute": 1e-6},
                "limits": {"cpu_s": 3, "memory_mb": 512},
                "exit_code": "ignore",
            },
            "sha256:6ead2bdf1d305850f26ccb39b98579b1d4fe27cecbe07602e7815367a9d22766",
        ),
    ],
)
def test_ids_given_out_once_stay_what_they_are(problem: dict[str, Any], identifier: str) -> None:
    assert problem_id(PROBLEMS.validate_python(problem)) == identifier


def test_the_id_rests_on_what_a_problem_means_not_on_how_it_was_sent() -> None:
    def identify(**fields: Any) -> str:
        return problem_id(PROBLEMS.validate_python(PROBLEM | fields))

    spelled_out = {"cpu_s": 2, "wall_s": None, "memory_mb": 256, "output_mb": 64, "processes": 64}

    assert identify() == identify(limits=spelled_out, checker={"type": "tokens"}, exit_code="strict")
    different = [
        identify(),
        identify(checker={"type": "exact"}),
        identify(checker={"type": "lcb"}),
        identify(checker={"type": "tokens", "case_sensitive": False}),
        identify(limits={"cpu_s": 2.5}),
        identify(exit_code="ignore"),
        identify(input_file="input.txt"),
        identify(output_file="input.txt"),
        identify(tests=[TESTS[0] | {"points": 1}]),
        identify(tests=[POINTED], groups={"a": SUM}),
        identify(tests=[POINTED], groups={"a": {"scoring": "min"}}),
        identify(tests=TESTS * 2),
        identify(tests=[TESTS[0] | {"name": "a"}]),
        identify(tests=[TESTS[0] | {"input": "1 2"}]),
    ]
    assert len(set(different)) == len(different)


def test_the_id_of_a_hundred_megabytes_takes_seconds_at_most() -> None:
    line = "12345 67890 é\n"
    tests = [{"input": line * 65_536, "output": line} for _ in range(100)]
    problem = PROBLEMS.validate_python({"kind": "stdio", "tests": tests})

    began = time.process_time()
    identity = problem_id(problem)

    assert time.process_time() - began < 5
    assert len(identity) == len(ID)


def test_a_description_holds_counts_and_lengths_but_no_data() -> None:
    problem = StdioProblem(
        kind="stdio",
        tests=(
            StdioTest(input="secret é", output="hidden", name="one", points=2.5, group="g"),
            StdioTest(input="", output="é"),
        ),
        checker=ExactChecker(type="exact"),
        groups={"g": PointGroup(scoring="min")},
        input_file="a.in",
    )

    info = describe(problem)

    assert info.model_dump(exclude={"limits"}) == {
        "id": problem_id(problem),
        "kind": "stdio",
        "test_count": 2,
        "longest_input_bytes": 9,
        "tests": (
            {
                "index": 0,
                "name": "one",
                "input_bytes": 9,
                "input_chars": 8,
                "output_bytes": 6,
                "points": 2.5,
                "group": "g",
            },
            {
                "index": 1,
                "name": None,
                "input_bytes": 0,
                "input_chars": 0,
                "output_bytes": 2,
                "points": None,
                "group": None,
            },
        ),
        "checker": {"type": "exact"},
        "exit_code": "strict",
        "groups": {"g": {"scoring": "min", "depends": ()}},
        "input_file": "a.in",
        "output_file": None,
        "function": None,
        "runner": None,
        "entry_point": None,
        "interactor": None,
        "passes": 1,
    }
    assert info.limits == problem.limits
    assert "secret" not in info.model_dump_json()
    assert "hidden" not in info.model_dump_json()


RESULT: dict[str, Any] = {
    "id": "step-1",
    "index": None,
    "problem_id": ID,
    "language": "python",
    "verdict": "time_limit",
    "category": "optimization_failure",
    "taxonomy": "first_failure",
    "first_failure_length": 12,
    "rewards": {"R_1": 1, "R_2": 0, "R_inf": 0},
    "groups": [
        {"k": 1, "tests": 1, "passed": 1, "failed": 0, "skipped": 0},
        {"k": 2, "tests": 2, "passed": 1, "failed": 1, "skipped": 0},
    ],
    "tests": [
        {"index": 0, "input_length": 4, "verdict": "accepted", "cpu_s": 0.01, "exit_code": 0},
        {"index": 1, "input_length": 12, "verdict": "time_limit", "cpu_s": 2.0, "signal": 9, "reruns": 1},
    ],
    "compile": None,
    "timing": {"queue_s": 0.0, "compile_s": 0.0, "run_s": 2.1, "total_s": 2.2},
    "grader": {"version": "0.1.0", "sandbox": "nsjail 3.6", "language_version": "3.11.2", "secure": True},
}


def test_a_result_survives_the_way_over_the_wire() -> None:
    result = GradeResult.model_validate(RESULT)

    assert GradeResult.model_validate_json(result.model_dump_json()) == result
    assert list(result.rewards) == ["R_1", "R_2", "R_inf"]
    assert result.tests[1].verdict is Verdict.TIME_LIMIT
    assert (result.tests[1].reruns, result.tests[1].stdout_tail) == (1, None)


def test_a_submission_without_run_tests_has_a_verdict_of_its_own() -> None:
    for verdict in ("compile_error", "format_error"):
        assert GradeResult.model_validate(RESULT | {"verdict": verdict}).verdict == verdict
    assert list(refused(GradeResult, RESULT | {"rewards": {"R_1": 2}})) == ["rewards.R_1"]


def test_an_older_client_reads_a_newer_graders_result() -> None:
    newer = RESULT | {"added_later": 1, "timing": RESULT["timing"] | {"added_later": 1}}

    assert GradeResult.model_validate(newer) == GradeResult.model_validate(RESULT)


@pytest.mark.parametrize("model", [StdioProblem, CallProblem, GradeRequest])
def test_the_examples_in_the_documentation_are_valid(model: type[BaseModel]) -> None:
    examples = model.model_json_schema()["examples"]

    assert examples
    for example in examples:
        model.model_validate(example)


@pytest.mark.parametrize("model", [BatchRequest, GradeResult, ProblemInfo])
def test_every_model_and_field_is_described(model: type[BaseModel]) -> None:
    schema = model.model_json_schema()
    objects = [schema, *(item for item in schema["$defs"].values() if item.get("type") == "object")]
    undescribed = [
        f"{item['title']}.{name}"
        for item in objects
        for name, field in item["properties"].items()
        if not field.get("description")
    ]

    assert all(item.get("description") for item in objects)
    assert undescribed == []


def test_contract_and_scoring_need_nothing_of_the_server() -> None:
    program = (
        "import sys; import service.contract, service.scoring, service.extraction\n"
        "server = {'fastapi', 'starlette', 'uvicorn', 'redis', 'rq', 'typer', 'fcntl', 'pydantic_settings'}\n"
        "print(sorted(server & set(sys.modules)))"
    )

    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert found.stdout == "[]\n"
