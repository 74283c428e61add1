"""Script problems over HTTP: what is taken and refused, and what grading on them comes to."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from service.contract import ScriptProblem, problem_id

pytestmark = pytest.mark.jail

CHECK = "def check(candidate):\n    assert candidate(2, 3) == 5\n"
LONG = CHECK + "    # " + "x" * 100 + "\n    assert candidate(-2, 3) == 1\n"
ADD: dict[str, Any] = {
    "kind": "script",
    "entry_point": "add",
    "tests": [{"script": LONG}, {"script": CHECK, "name": "sample"}],
}
RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return abs(a) + b\n"
SUITE = {
    "kind": "script",
    "runner": "pytest",
    "tests": [{"script": "from solution import add\ndef test_add():\n    assert add(-2, 3) == 1\n"}],
}


def graded(url: str, **request: Any) -> dict[str, Any]:
    answer = httpx.post(f"{url}/grade", json={"language": "python", "problem": ADD} | request, timeout=60)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def test_a_right_and_a_wrong_program(grader_url: str) -> None:
    right = graded(grader_url, source=RIGHT)
    assert (right["verdict"], right["category"], right["rewards"]["R_inf"]) == ("accepted", "correct", 1)
    assert [test["input_length"] for test in right["tests"]] == [len(LONG), len(CHECK)]
    wrong = graded(grader_url, source=WRONG, detail="outputs")
    assert [test["verdict"] for test in wrong["tests"]] == ["wrong_answer", "accepted"]
    assert "assert candidate(-2, 3) == 1" in wrong["tests"][0]["checker_message"]
    assert wrong["rewards"] == {"R_1": None, "R_2": 1, "R_3": 0, "R_inf": 0}


def test_a_failure_tells_nothing_of_the_test_without_being_asked(grader_url: str) -> None:
    result = graded(grader_url, source="def add(a, b):\n    raise ValueError(a)\n")
    assert [test["message"] for test in result["tests"]] == ["raised ValueError"] * 2
    assert {test["checker_message"] for test in result["tests"]} == {None}


def test_words_of_a_programs_that_are_no_text_are_told_as_far_as_they_are(grader_url: str) -> None:
    """Half a surrogate pair fits into no JSON of ours: whoever raised one would have no verdict."""
    result = graded(grader_url, source="def add(a, b):\n    raise ValueError('half \\ud800')\n", detail="outputs")
    assert result["verdict"] == "runtime_error"
    assert result["tests"][0]["checker_message"].rstrip().endswith("ValueError: half ?")


def test_a_suite_and_a_stored_problem(grader_url: str) -> None:
    stored = httpx.put(f"{grader_url}/problems", json=SUITE, timeout=60).json()["id"]
    assert stored == problem_id(ScriptProblem.model_validate(SUITE))
    assert graded(grader_url, problem=stored, source=RIGHT)["verdict"] == "accepted"
    assert graded(grader_url, problem=stored, source=WRONG)["verdict"] == "wrong_answer"
    info = httpx.get(f"{grader_url}/problems/{stored}").json()
    assert (info["kind"], info["runner"], info["entry_point"], info["checker"]) == ("script", "pytest", None, None)


def test_a_broken_script_is_nobodys_wrong_answer(grader_url: str) -> None:
    result = graded(grader_url, problem=ADD | {"tests": [{"script": "assert add(\n"}]}, source=RIGHT)
    assert (result["verdict"], result["category"], result["rewards"]["R_inf"]) == ("checker_error", None, None)


MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no tests": ({"tests": []}, "tests", "at least one test"),
    "an empty script": ({"tests": [{"script": ""}]}, "tests[0].script", "at least 1"),
    "another kind's test": ({"tests": [{"script": "1", "input": "1"}]}, "tests[0].input", "not permitted"),
    "another kind's checker": ({"checker": {"type": "tokens"}}, "checker", "not permitted"),
    "an unknown runner": ({"runner": "nose"}, "runner", "'exec' or 'pytest'"),
    "no name": ({"entry_point": "a b"}, "entry_point", "Give a name of Python's"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_named(grader_url: str, what: str) -> None:
    changes, field, words = MISTAKES[what]
    answer = httpx.put(f"{grader_url}/problems", content=json.dumps(ADD | changes), timeout=60)
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"] == field
    assert words in answer.json()["errors"][0]["detail"]


def test_other_languages_are_refused(grader_url: str) -> None:
    request = {"problem": ADD, "language": "c", "source": "int main() {}"}
    answer = httpx.post(f"{grader_url}/grade", json=request, timeout=60)
    assert answer.status_code == 422
    assert answer.json()["field"] == "language"
