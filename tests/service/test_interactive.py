"""Interactive problems and those of several passes over HTTP: graded, refused, and never a reward nobody earned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from service.contract import parse_problem, problem_id
from tests.sandbox.conversations import LINEAR, RIGHT
from tests.service.test_bad_input import assert_refused

pytestmark = pytest.mark.jail

INTERACTORS = Path(__file__).parents[1] / "sandbox" / "interactors"

KATTIS = {"type": "kattis", "language": "cpp", "source": (INTERACTORS / "guess.cpp").read_text()}
CARELESS = {"type": "kattis", "language": "python", "source": (INTERACTORS / "guess.py").read_text()}
FAULTY = {"type": "kattis", "language": "python", "source": (INTERACTORS / "faulty.py").read_text()}
TESTLIB = {"type": "testlib", "source": (INTERACTORS / "guess_testlib.cpp").read_text()}
COUNT = {"type": "testlib", "source": (INTERACTORS / "count_testlib.cpp").read_text()}
PASSES = {"type": "kattis", "language": "python", "source": (INTERACTORS / "passes.py").read_text()}

#: Compiling one of testlib's programs, on a busy machine.
PATIENCE_S = 120

FORGETS = "import sys\nsys.stdout.write('1\\n')\nsys.stdin.readline()\n"


def guessing(interactor: dict[str, Any], *secrets: int, **fields: Any) -> dict[str, Any]:
    tests = [{"input": f"{secret}\n", "output": "20"} for secret in secrets]
    return {
        "kind": "interactive",
        "tests": tests,
        "interactor": interactor,
        "limits": {"cpu_s": 0.5, "wall_s": 1.5},
    } | fields


def graded(url: str, problem: object, source: str, **fields: Any) -> dict[str, Any]:
    request = {"problem": problem, "language": "python", "source": source} | fields
    answer = httpx.post(f"{url}/grade", json=request, timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def verdicts(result: dict[str, Any]) -> list[str]:
    return [test["verdict"] for test in result["tests"]]


@pytest.mark.parametrize(
    ("interactor", "checker"),
    [(KATTIS, None), (CARELESS, None), (TESTLIB, COUNT)],
    ids=["kattis", "careless", "testlib"],
)
def test_a_stored_problem_is_graded(
    grader_url: str, interactor: dict[str, Any], checker: dict[str, Any] | None
) -> None:
    problem = guessing(interactor, 7, 123456, checker=checker)
    stored = httpx.put(f"{grader_url}/problems", json=problem, timeout=PATIENCE_S)
    assert stored.status_code in (200, 201), stored.text
    identifier = stored.json()["id"]

    right = graded(grader_url, identifier, RIGHT)
    assert (right["verdict"], right["category"], verdicts(right)) == ("accepted", "correct", ["accepted"] * 2)
    assert right["rewards"] == {"R_1": 1, "R_inf": 1}
    assert [test["input_length"] for test in right["tests"]] == [2, 7]

    counts = graded(grader_url, identifier, LINEAR)
    assert (counts["category"], verdicts(counts)) == ("correctness_failure", ["accepted", "wrong_answer"])

    silent = graded(grader_url, identifier, FORGETS, stop="first_failure")
    assert (silent["verdict"], silent["category"]) == ("idle", "optimization_failure")
    assert silent["tests"][0]["message"].startswith("the program used 0.0")

    broken = graded(grader_url, identifier, "1 / 0")
    assert (broken["verdict"], broken["category"]) == ("runtime_error", "correctness_failure")


def test_what_the_interactor_said_is_shown_only_on_request(grader_url: str) -> None:
    (hidden,) = graded(grader_url, guessing(KATTIS, 123456), LINEAR)["tests"]
    (shown,) = graded(grader_url, guessing(KATTIS, 123456), LINEAR, detail="outputs")["tests"]
    assert (hidden["message"], hidden["checker_message"]) == (
        "the interactor rejected, then the program exited with status 1",
        None,
    )
    assert shown["checker_message"] == "too many guesses"


@pytest.mark.parametrize("deed", ["exits 0", "dies", "raises"])
def test_a_fault_of_the_interactor_gives_no_reward(grader_url: str, deed: str) -> None:
    problem = {"kind": "interactive", "interactor": FAULTY, "tests": [{"input": deed}]}
    for source in ("input()", "pass"):
        result = graded(grader_url, problem, source)
        assert (result["verdict"], result["category"]) == ("checker_error", None), (source, result)
        assert set(result["rewards"].values()) == {None}


def test_a_compiled_program_talks_too(grader_url: str) -> None:
    source = '#include <cstdio>\nint main() { puts("7"); fflush(stdout); return getchar() == 61 ? 0 : 1; }'
    assert graded(grader_url, guessing(KATTIS, 7), source, language="cpp")["verdict"] == "accepted"


@pytest.mark.parametrize("kind", ["stdio", "interactive"])
def test_passes(grader_url: str, kind: str) -> None:
    talks = kind == "interactive"
    program = PASSES | {"flags": ["talk"]} if talks else PASSES
    problem = {
        "kind": kind,
        "tests": [{"input": "4", "output": "3"}],
        "interactor" if talks else "checker": program,
        "passes": 5,
    }
    right = graded(grader_url, problem, "print(2 * int(input()))", detail="outputs")
    assert right["verdict"] == "accepted"
    assert right["tests"][0]["score"] == 5
    assert right["tests"][0]["checker_message"].splitlines()[-1] == "64 to 128"
    wrong = graded(grader_url, problem, "n = int(input())\nprint(2 * n if n < 20 else n)")
    assert wrong["verdict"] == "wrong_answer"
    short = graded(grader_url, problem | {"passes": 2}, "print(2 * int(input()))")
    assert (short["verdict"], short["category"]) == ("checker_error", None)


REFUSED = [
    ({"interactor": None}, "interactor"),
    ({"interactor": {"type": "cobol"}}, "interactor.type"),
    ({"interactor": {"language": "cpp", "source": "x"}}, "interactor.type"),
    ({"interactor": {"type": "kattis", "language": "cpp"}}, "interactor.source"),
    ({"interactor": {"type": "testlib"}}, "interactor.source"),
    ({"interactor": {"type": "kattis", "source": "x"}}, "interactor.language"),
    ({"interactor": KATTIS | {"flags": ["a\0b"]}}, "interactor.flags[0]"),
    ({"checker": COUNT}, "checker"),
    ({"checker": {"type": "tokens"}}, "checker.type"),
    ({"interactor": TESTLIB, "passes": 2}, "passes"),
    ({"passes": 0}, "passes"),
    ({"passes": 101}, "passes"),
    ({"tests": []}, "tests"),
    ({"tests": [{"output": ""}]}, "tests[0].input"),
]


@pytest.mark.parametrize(("change", "field"), REFUSED, ids=[field for _, field in REFUSED])
def test_a_malformed_problem_is_refused_at_its_field(grader_url: str, change: dict[str, Any], field: str) -> None:
    problem = {name: value for name, value in (guessing(KATTIS, 7) | change).items() if value is not None}
    assert_refused(httpx.put(f"{grader_url}/problems", json=problem), 422, "invalid-request", field)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"interactor": {"type": "kattis", "language": "cpp", "source": "int main() {"}}, "interactor.source"),
        ({"interactor": {"type": "kattis", "language": "cobol", "source": "x"}}, "interactor.language"),
        ({"interactor": {"type": "testlib", "source": "int main() { return x; }"}}, "interactor.source"),
        ({"interactor": TESTLIB, "checker": {"type": "testlib", "source": "int main("}}, "checker.source"),
    ],
)
def test_a_program_that_does_not_compile_is_refused_and_not_stored(
    grader_url: str, change: dict[str, Any], field: str
) -> None:
    problem = guessing(KATTIS, 7) | change
    answer = httpx.put(f"{grader_url}/problems", json=problem, timeout=PATIENCE_S)
    assert_refused(answer, 422, "invalid-request", field)
    identifier = problem_id(parse_problem(httpx.Request("PUT", grader_url, json=problem).content))
    assert httpx.get(f"{grader_url}/problems/{identifier}").status_code == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"checker": {"type": "tokens"}}, "passes"),
        ({"checker": {"type": "testlib", "source": "x"}}, "passes"),
        ({"input_file": "in.txt"}, "passes"),
        ({"output_file": "out.txt"}, "passes"),
    ],
)
def test_passes_are_for_kattis_validators_of_stdout(grader_url: str, change: dict[str, Any], field: str) -> None:
    problem = {"kind": "stdio", "tests": [{"input": "4", "output": "3"}], "checker": PASSES, "passes": 2} | change
    assert_refused(httpx.put(f"{grader_url}/problems", json=problem), 422, "invalid-request", field)


def test_a_stored_problem_is_described_without_its_data(grader_url: str) -> None:
    identifier = httpx.put(f"{grader_url}/problems", json=guessing(KATTIS, 617283), timeout=PATIENCE_S).json()["id"]
    described = httpx.get(f"{grader_url}/problems/{identifier}")
    assert described.json()["kind"] == "interactive"
    assert (described.json()["interactor"]["type"], described.json()["checker"]) == ("kattis", None)
    assert "617283" not in described.text
