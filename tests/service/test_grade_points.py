"""Files, points and groups over HTTP: asked for in a problem, found again in its description and in results."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.service.test_bad_input import assert_refused
from tests.service.test_grade import grade

pytestmark = pytest.mark.jail

FILES = {"input_file": "input.txt", "output_file": "output.txt"}
COPY = "open('output.txt', 'wb').write(open('input.txt', 'rb').read())"

#: Right where the input has fewer than 3 characters; the tests get longer.
SHORT = "text = input()\nprint(text if len(text) < 3 else '')\n"


@pytest.fixture
def pointed() -> dict[str, Any]:
    """Print the input: a sum group of two tests, a min group of two that depends on it, a test without a group."""
    rows = [("a", 10, "small"), ("bb", 20, "small"), ("ccc", 40, "large"), ("dddd", 40, "large"), ("eeeee", 7, None)]
    return {
        "problem": {
            "kind": "stdio",
            "tests": [
                {"input": f"{text}\n", "output": text, "points": points, "group": group} for text, points, group in rows
            ],
            "groups": {"small": {"scoring": "sum"}, "large": {"scoring": "min", "depends": ["small"]}},
        },
        "language": "python",
        "source": "print(input())",
    }


def points(result: dict[str, Any]) -> tuple[float | None, dict[str | None, float | None]]:
    return result["score"], {row["group"]: row["points"] for row in result["point_groups"]}


def test_points_are_earned_by_group_and_rewards_stay_what_they_are(grader_url: str, pointed: dict[str, Any]) -> None:
    result = grade(grader_url, pointed)
    assert (result["verdict"], result["score"]) == ("accepted", 77)
    assert result["point_groups"] == [
        {"group": "large", "scoring": "min", "tests": 2, "points": 40, "max_points": 40},
        {"group": "small", "scoring": "sum", "tests": 2, "points": 30, "max_points": 30},
        {"group": None, "scoring": "sum", "tests": 1, "points": 7, "max_points": 7},
    ]

    result = grade(grader_url, pointed | {"source": SHORT})
    assert points(result) == (30, {"large": 0, "small": 30, None: 0})
    assert result["rewards"] == {"R_1": 0, "R_inf": 0}


def test_a_judge_that_stopped_leaves_open_what_it_did_not_see(grader_url: str, pointed: dict[str, Any]) -> None:
    result = grade(grader_url, pointed | {"source": SHORT, "stop": "first_failure"})
    assert points(result) == (None, {"large": 0, "small": 30, None: None})


def test_without_a_program_the_score_is_nothing_and_without_points_there_is_none(
    grader_url: str, pointed: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    unfenced = {key: value for key, value in pointed.items() if key != "source"} | {"completion": "none"}
    assert points(grade(grader_url, unfenced)) == (0, {"large": 0, "small": 0, None: 0})
    broken = grade(grader_url, pointed | {"source": "print("})
    assert (broken["verdict"], broken["score"]) == ("compile_error", 0)
    plain = grade(grader_url, a_plus_b)
    assert (plain["score"], plain["point_groups"]) == (None, [])


def test_files_are_given_and_taken(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    a_plus_b["problem"] |= FILES | {"tests": [{"input": "é\r\n", "output": "é\r\n"}], "checker": {"type": "exact"}}

    right = grade(grader_url, a_plus_b | {"source": COPY})
    assert right["verdict"] == "accepted"
    assert right["tests"][0]["input_length"] == 4
    by_stdin = grade(grader_url, a_plus_b | {"source": "print(input())"})
    assert by_stdin["verdict"] == "runtime_error"
    nothing = grade(grader_url, a_plus_b | {"source": "print(open('input.txt').read(), end='')"})
    assert nothing["verdict"] == "wrong_answer"
    assert nothing["tests"][0]["message"] == "left no plain, readable file output.txt"


def test_a_stored_problem_tells_its_files_points_and_groups(grader_url: str, pointed: dict[str, Any]) -> None:
    identifier = httpx.put(f"{grader_url}/problems", json=pointed["problem"] | FILES).json()["id"]
    known = httpx.get(f"{grader_url}/problems/{identifier}").json()

    assert {key: known[key] for key in FILES} == FILES
    assert known["groups"] == {
        "small": {"scoring": "sum", "depends": []},
        "large": {"scoring": "min", "depends": ["small"]},
    }
    assert [(test["points"], test["group"]) for test in known["tests"]] == [
        (10, "small"),
        (20, "small"),
        (40, "large"),
        (40, "large"),
        (7, None),
    ]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("input_file", {"input_file": "../input.txt"}),
        ("output_file", {"output_file": ".."}),
        ("output_file", {"input_file": "a", "output_file": "a"}),
        ("tests[0].group", {"groups": {}}),
        ("groups.small.depends", {"groups": {"small": {"scoring": "sum", "depends": ["small"]}}}),
    ],
)
def test_what_does_not_hold_together_is_refused_by_its_field(
    grader_url: str, field: str, change: dict[str, Any]
) -> None:
    test = {"input": "", "output": "", "points": 1, "group": "small"}
    problem = {"kind": "stdio", "tests": [test], "groups": {"small": {"scoring": "sum"}}} | change

    assert_refused(httpx.put(f"{grader_url}/problems", json=problem), 422, "invalid-request", field)
