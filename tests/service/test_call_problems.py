"""Call problems over HTTP: what is taken and refused, and what grading on them comes to."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from service.contract import CallProblem, CallTest, describe, parse_problem, problem_id

pytestmark = pytest.mark.jail

PAIRS: dict[str, Any] = {
    "kind": "call",
    "function": "Solution.pairs",
    "prelude": "leetcode",
    "tests": [
        {"args": [[1, 5, 3, 3], 6], "expected": 2, "name": "sample"},
        {"args": [[], 0], "expected": 0},
        {"args": [list(range(400)), 399], "expected": 200},
    ],
}
RIGHT = """
class Solution:
    def pairs(self, values: List[int], target: int) -> int:
        seen, count = Counter(), 0
        for value in values:
            count += seen[target - value]
            seen[value] += 1
        return count
"""
WRONG = RIGHT.replace("return count", "return min(count, 100)")


def graded(url: str, **request: Any) -> dict[str, Any]:
    answer = httpx.post(f"{url}/grade", json={"language": "python", "problem": PAIRS} | request, timeout=60)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def refused(url: str, changes: dict[str, Any], path: str = "/problems") -> tuple[str, str]:
    body: dict[str, Any] = PAIRS | changes if path == "/problems" else changes
    content = json.dumps(body)
    method = httpx.put if path == "/problems" else httpx.post
    answer = method(f"{url}{path}", content=content, timeout=60)
    assert answer.status_code == 422, answer.text
    return answer.json()["field"], answer.json()["errors"][0]["detail"]


@pytest.mark.parametrize("language", ["python", "py3", "python-exec"])
def test_a_right_and_a_wrong_program(grader_url: str, language: str) -> None:
    right = graded(grader_url, language=language, source=RIGHT)
    assert (right["verdict"], right["category"], right["rewards"]["R_inf"]) == ("accepted", "correct", 1)
    # Lengths of the arguments' JSON without white space: [[1,5,3,3],6], [[],0], and the long one's.
    assert [test["input_length"] for test in right["tests"]] == [13, 6, 1497]
    wrong = graded(grader_url, language=language, source=WRONG, detail="outputs")
    assert [test["verdict"] for test in wrong["tests"]] == ["accepted", "accepted", "wrong_answer"]
    assert wrong["tests"][2]["checker_message"] == "100 in place of 200"
    assert wrong["rewards"] == {"R_1": 1, "R_2": 1, "R_3": 1, "R_4": 0, "R_inf": 0}


def test_a_stored_problem_and_a_completion(grader_url: str) -> None:
    stored = httpx.put(f"{grader_url}/problems", json=PAIRS, timeout=60).json()["id"]
    assert stored == problem_id(CallProblem.model_validate(PAIRS))
    result = graded(grader_url, problem=stored, completion=f"Count them.\n```python\n{RIGHT}```\n")
    assert (result["verdict"], result["problem_id"]) == ("accepted", stored)
    info = httpx.get(f"{grader_url}/problems/{stored}").json()
    assert (info["kind"], info["function"], info["checker"]["type"]) == ("call", "Solution.pairs", "plain")
    assert info["tests"][0] == {
        "index": 0,
        "name": "sample",
        "input_bytes": 13,
        "input_chars": 13,
        "output_bytes": 1,
        "points": None,
        "group": None,
    }


def test_a_failure_tells_nothing_of_the_test_without_being_asked(grader_url: str) -> None:
    source = "class Solution:\n    def pairs(self, values, target):\n        raise ValueError(values)\n"
    result = graded(grader_url, source=source)
    assert [test["message"] for test in result["tests"]] == ["raised ValueError"] * 3
    assert {test["checker_message"] for test in result["tests"]} == {None}
    shown = graded(grader_url, source=source, detail="outputs")
    assert shown["tests"][0]["stderr_tail"].endswith("ValueError: [1, 5, 3, 3]\n")


def test_how_values_are_compared(grader_url: str) -> None:
    problem = {
        "kind": "call",
        "function": "f",
        "tests": [{"args": [0.1], "expected": 0.3}, {"args": [1], "expected": 3.0}, {"args": [True], "expected": 3}],
    }
    source = "def f(x):\n    return x + x + x\n"

    def verdicts(**settings: Any) -> list[bool]:
        result = graded(grader_url, problem=problem | settings, source=source)
        return [test["verdict"] == "accepted" for test in result["tests"]]

    near = {"type": "plain", "float_absolute": 1e-9}
    assert verdicts() == [False, False, True]
    assert verdicts(loose=True) == [False, True, True]
    assert verdicts(checker=near) == [True, False, True]
    assert verdicts(checker=near, loose=True) == [True, True, True]


@pytest.mark.parametrize("language", ["c", "cpp", "g++"])
def test_languages_whose_functions_cannot_be_called_are_refused(grader_url: str, language: str) -> None:
    request = {"problem": PAIRS, "language": language, "source": "int main() {}"}
    field, detail = refused(grader_url, request, "/grade")
    assert field == "language"
    assert detail.startswith("call problems are for python, python-exec, not for c")
    stored = httpx.put(f"{grader_url}/problems", json=PAIRS, timeout=60).json()["id"]
    assert refused(grader_url, request | {"problem": stored}, "/grade")[0] == "language"
    batch = {"items": [{"problem": PAIRS, "language": "python", "source": RIGHT}, request]}
    assert refused(grader_url, batch, "/grade/batch")[0] == "items[1].language"


def with_test(**fields: Any) -> dict[str, Any]:
    return {"tests": [PAIRS["tests"][0], {"args": [], "expected": 0} | fields]}


MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no tests": ({"tests": []}, "tests", "at least one test"),
    "no function": ({"function": ""}, "function", "Give a name of Python's"),
    "no name": ({"function": "a b"}, "function", "Give a name of Python's"),
    "a path": ({"function": "a.b.c"}, "function", "Give a name of Python's"),
    "an unknown prelude": ({"prelude": "codeforces"}, "prelude", "'none', 'lcb' or 'leetcode'"),
    "loose as a word": ({"loose": "yes"}, "loose", "valid boolean"),
    "another kind's checker": ({"checker": {"type": "tokens"}}, "checker.type", "'plain'"),
    "a negative tolerance": ({"checker": {"type": "plain", "float_absolute": -1}}, "checker.float_absolute", "greater"),
    "arguments by name": (with_test(args={"x": 1}), "tests[1].args", "valid array"),
    "another kind's test": (with_test(input="1"), "tests[1].input", "not permitted"),
    "an argument that is not finite": (with_test(args=[[1.0, float("inf")]]), "tests[1].args", "No JSON"),
    "an expected value that is not finite": (with_test(expected=float("nan")), "tests[1].expected", "No JSON"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_named(grader_url: str, what: str) -> None:
    changes, field, words = MISTAKES[what]
    found, detail = refused(grader_url, changes)
    assert found == field
    assert words in detail


def test_an_expected_value_must_be_there() -> None:
    answer = {"kind": "call", "function": "f", "tests": [{"args": []}]}
    with pytest.raises(ValueError, match="expected"):
        parse_problem(json.dumps(answer))


@pytest.mark.parametrize(
    "value", ["\ud800", {"\udfff": 1}, 10**5000, float("-inf")], ids=["text", "key", "digits", "infinity"]
)
def test_what_json_cannot_say_is_refused_from_python_too(value: Any) -> None:
    with pytest.raises(ValueError, match="args"):
        CallTest(args=(value,), expected=0)


def test_values_keep_their_types_in_a_problems_identity() -> None:
    ids = {
        problem_id(parse_problem(json.dumps(PAIRS | with_test(expected=value)))) for value in (1, 1.0, True, "1", [1])
    }
    assert len(ids) == 5
    spaced = json.dumps(PAIRS, indent=2)
    explicit = json.dumps(PAIRS | {"loose": False, "checker": {"type": "plain"}})
    assert problem_id(parse_problem(spaced)) == problem_id(parse_problem(explicit))


def test_lengths_are_those_of_compact_json() -> None:
    test = CallTest(args=("grün", {"a": [1.0, None]}), expected="ü")
    assert (test.given, test.wanted) == ('["grün",{"a":[1.0,null]}]', '"ü"')
    info = describe(CallProblem(kind="call", function="f", tests=(test,))).tests[0]
    assert (info.input_bytes, info.input_chars, info.output_bytes) == (26, 25, 4)
