"""Checkers that are programs, over HTTP: taken, refused, at fault, and never a reward that nobody earned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.contract import parse_problem, problem_id
from tests.conftest import Serve
from tests.service.test_bad_input import assert_refused
from tests.serving import serving

pytestmark = pytest.mark.jail

CHECKERS = Path(__file__).parents[1] / "sandbox" / "checkers"
DEEDS = {"type": "testlib", "source": (CHECKERS / "deeds.cpp").read_text()}
KATTIS = {
    "type": "kattis",
    "language": "python",
    "files": {
        "main.py": "import sys\nfrom rule import holds\nsys.exit(42 if holds(sys.stdin.read()) else 43)\n",
        "rule.py": "import sys\n\ndef holds(text):\n    return text.split() == [sys.argv[4]]\n",
    },
    "flags": ["5"],
}
PYTHON = {"type": "python", "source": "import sys\nprint(int(open(sys.argv[3]).read().strip() == '5'))\n"}

#: Compiling one of testlib's checkers, on a busy machine.
PATIENCE_S = 120

BROKEN = [
    ({"type": "testlib", "source": "int main() { return undeclared; }"}, "source", "undeclared"),
    ({"type": "testlib", "source": ""}, "source", "main"),
    ({"type": "kattis", "language": "cpp", "source": "int main() {"}, "source", "error"),
    ({"type": "kattis", "language": "cpp", "files": {"a.cpp": "int f();", "b.h": ""}}, "files", "main"),
    ({"type": "kattis", "language": "python", "files": {"a.py": "", "b.py": ""}}, "files", "main.py"),
    ({"type": "kattis", "language": "cobol", "source": "x"}, "language", "cobol"),
    ({"type": "python", "source": "def f(:"}, "source", "SyntaxError"),
]

MALFORMED = [
    ({"type": "testlib"}, "source"),
    ({"type": "testlib", "source": "x", "language": "rust"}, "language"),
    ({"type": "testlib", "source": "x", "partial": "perhaps"}, "partial"),
    ({"type": "python", "source": "x", "full_score": 0}, "full_score"),
    ({"type": "python", "source": "x", "flags": []}, "flags"),
    ({"type": "kattis", "source": "x"}, "language"),
    ({"type": "kattis", "language": "cpp"}, "source"),
    ({"type": "kattis", "language": "cpp", "source": "x", "files": {"a": "x"}}, "source"),
    ({"type": "kattis", "language": "cpp", "source": "x", "flags": ["a\0b"]}, "flags[0]"),
]


def problem_of(checker: dict[str, Any], *inputs: str, answer: str = "5") -> dict[str, Any]:
    tests = [{"input": given, "output": answer} for given in inputs or ("-\n5\n",)]
    return {"kind": "stdio", "tests": tests, "checker": checker}


def put(url: str, problem: dict[str, Any]) -> httpx.Response:
    return httpx.put(f"{url}/problems", json=problem, timeout=PATIENCE_S)


def graded(url: str, problem: object, **fields: Any) -> dict[str, Any]:
    request = {"problem": problem, "language": "python", "source": "input(); print(input())"} | fields
    answer = httpx.post(f"{url}/grade", json=request, timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


@pytest.fixture(scope="module")
def hurried(grader_data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose checkers get half a second."""
    log = tmp_path_factory.mktemp("hurried") / "log"
    with serving(grader_data_dir, log, "--workers", "1", "--checker-cpu-s", "0.5") as server:
        yield server.url


@pytest.mark.parametrize("checker", [DEEDS, KATTIS, PYTHON], ids=lambda checker: checker["type"])
def test_a_stored_problem_is_judged_by_its_own_program(grader_url: str, checker: dict[str, Any]) -> None:
    stored = put(grader_url, problem_of(checker, "integer\n5\n", "integer\n6\n"))
    assert stored.status_code in (200, 201), stored.text
    result = graded(grader_url, stored.json()["id"])
    assert [test["verdict"] for test in result["tests"]] == ["accepted", "wrong_answer"]
    assert (result["verdict"], result["category"]) == ("wrong_answer", "correctness_failure")


def test_what_a_checker_said_is_shown_only_on_request(grader_url: str) -> None:
    problem = problem_of(DEEDS, "integer\n6\n")
    (hidden,) = graded(grader_url, problem)["tests"]
    (shown,) = graded(grader_url, problem, detail="outputs")["tests"]
    assert (hidden["checker_message"], hidden["message"]) == (None, "")
    assert shown["checker_message"] == "wrong answer 6 is not 5"


@pytest.mark.parametrize(
    ("scoring", "verdict"),
    [
        ({}, "wrong_answer"),
        ({"partial": "reject"}, "wrong_answer"),
        ({"partial": "accept"}, "accepted"),
        ({"partial": "score"}, "wrong_answer"),
        ({"partial": "score", "full_score": 0.5}, "accepted"),
    ],
)
def test_points_are_reported_and_accepted_as_the_problem_says(
    grader_url: str, scoring: dict[str, Any], verdict: str
) -> None:
    (test,) = graded(grader_url, problem_of(DEEDS | scoring, "points 0.5\n\n"))["tests"]
    assert (test["verdict"], test["score"]) == (verdict, 0.5 / scoring.get("full_score", 1))


@pytest.mark.parametrize(("checker", "part", "reason"), BROKEN)
def test_a_checker_of_no_use_is_refused_when_it_is_sent_and_never_stored(
    grader_url: str, checker: dict[str, Any], part: str, reason: str
) -> None:
    problem = problem_of(checker)
    refused = assert_refused(put(grader_url, problem), 422, "invalid-request", f"checker.{part}")
    assert reason in refused["detail"]
    identifier = problem_id(parse_problem(json.dumps(problem)))
    assert httpx.get(f"{grader_url}/problems/{identifier}").status_code == 404


@pytest.mark.parametrize(("checker", "part", "reason"), BROKEN)
def test_the_same_within_a_grade(grader_url: str, checker: dict[str, Any], part: str, reason: str) -> None:
    request = {"problem": problem_of(checker), "language": "python", "source": "print(5)"}
    answer = httpx.post(f"{grader_url}/grade", json=request, timeout=PATIENCE_S)
    refused = assert_refused(answer, 422, "invalid-request", f"problem.checker.{part}")
    assert reason in refused["detail"]


@pytest.mark.parametrize(("checker", "part"), MALFORMED)
def test_a_malformed_checker_names_the_field(grader_url: str, checker: dict[str, Any], part: str) -> None:
    assert_refused(put(grader_url, problem_of(checker)), 422, "invalid-request", f"checker.{part}")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("loop", "used more than 0.5 s of CPU time"),
        ("sleep", "had not ended after 2 s"),
        ("segfault", "died of signal 11"),
        ("fail", "gave up: FAIL"),
        ("flood", "wrote more than 1"),
        ("allocate", ""),
        ("exit 99", "exited with status 99"),
    ],
)
def test_a_checkers_fault_is_nobodys_reward_and_the_service_goes_on(hurried: str, given: str, message: str) -> None:
    problem = problem_of(DEEDS, f"{given}\n5\n", "integer\n5\n", "integer  \n5\n")
    result = graded(hurried, problem, detail="outputs")
    assert result["verdict"] == "checker_error"
    assert result["category"] is None
    assert set(result["rewards"].values()) == {None}
    assert result["first_failure_length"] is None
    assert result["tests"][0]["verdict"] == "checker_error"
    assert message in result["tests"][0]["checker_message"]
    assert graded(hurried, problem_of({"type": "tokens"}))["verdict"] == "accepted"


def test_a_hundred_megabytes_of_feedback_are_the_validators_fault(hurried: str) -> None:
    flood = "import sys\nopen(sys.argv[3] + 'judgemessage.txt', 'w').write('x' * (100 << 20))\nsys.exit(42)\n"
    result = graded(hurried, problem_of({"type": "kattis", "language": "python", "source": flood}))
    assert (result["verdict"], result["category"]) == ("checker_error", None)
    assert graded(hurried, problem_of(KATTIS))["verdict"] == "accepted"


def test_a_checker_decides_on_clean_runs_only(grader_url: str) -> None:
    result = graded(grader_url, problem_of(DEEDS, "integer\n5\n"), source="input(); print(input()); exit(1)")
    assert result["verdict"] == "runtime_error"


def test_what_may_be_known_of_such_a_problem(grader_url: str) -> None:
    identifier = put(grader_url, problem_of(KATTIS)).json()["id"]
    assert httpx.get(f"{grader_url}/problems/{identifier}").json()["checker"] == KATTIS | {
        "source": None,
        "full_score": 1.0,
    }


def test_without_testlib_its_checkers_are_refused_and_others_are_not(serve: Serve, tmp_path: Path) -> None:
    with serve("--workers", "1", "--testlib", str(tmp_path / "testlib.h")) as server:
        refused = assert_refused(put(server.url, problem_of(DEEDS)), 422, "invalid-request", "checker")
        assert "testlib.h is not installed here" in refused["detail"]
        assert graded(server.url, problem_of(PYTHON))["verdict"] == "accepted"
