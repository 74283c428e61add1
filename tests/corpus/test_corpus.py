"""Programs of our own on real problems, through the HTTP API: verdict, category and every reward as written down.

All of them go to the grader in one batch, as a trainer would send them; each test then looks at one result.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import manifest
import pytest

from rl_client.datasets.kattis import read_package

pytestmark = pytest.mark.jail

PROGRAMS = manifest.load()
PYTHON = tuple(program for program in PROGRAMS if program.language == "python")

Result = dict[str, Any]


@pytest.fixture(scope="module")
def problem_ids(corpus: Path, grader_url: str) -> dict[str, str]:
    """Every problem of the corpus, put to the grader; by name."""
    ids = {}
    for name in sorted({program.problem for program in PROGRAMS}):
        problem = read_package(corpus / name)
        response = httpx.put(
            f"{grader_url}/problems", content=problem.model_dump_json(exclude_defaults=True), timeout=60
        )
        response.raise_for_status()
        ids[name] = response.json()["id"]
    return ids


def grade_all(url: str, items: list[dict[str, Any]]) -> dict[str, Result]:
    """Grade the items as one batch; results by their id."""
    results = {}
    with httpx.stream("POST", f"{url}/grade/batch", json={"items": items}, timeout=900) as response:
        assert response.status_code == 200, response.read()
        for line in response.iter_lines():
            result = json.loads(line)
            results[result["id"]] = result
    return results


def request(program: manifest.Program, problem_ids: dict[str, str], language: str) -> dict[str, Any]:
    return {
        "id": f"{program.name} as {language}",
        "problem": problem_ids[program.problem],
        "language": language,
        "source": program.source,
        "stop": program.stop,
    }


@pytest.fixture(scope="module")
def results(problem_ids: dict[str, str], grader_url: str) -> dict[str, Result]:
    items = [request(program, problem_ids, program.language) for program in PROGRAMS]
    items += [request(program, problem_ids, "python-exec") for program in PYTHON]
    return grade_all(grader_url, items)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program_gets_what_it_deserves(program: manifest.Program, results: dict[str, Result]) -> None:
    result = results[f"{program.name} as {program.language}"]

    got = {name: result[name] for name in ("verdict", "category", "rewards")}

    expected = {"verdict": program.verdict, "category": program.category, "rewards": dict(program.rewards)}
    assert got == expected, [row for row in result["tests"] if row["verdict"] not in ("accepted", "skipped")][:3]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("program", PYTHON, ids=lambda program: program.name)
def test_zygote_and_fresh_interpreter_agree_on_every_test(
    program: manifest.Program, results: dict[str, Result]
) -> None:
    forked, fresh = (results[f"{program.name} as {language}"] for language in ("python", "python-exec"))

    def verdicts(result: Result) -> list[str]:
        return [row["verdict"] for row in result["tests"]]

    assert verdicts(forked) == verdicts(fresh)
    assert forked["rewards"] == fresh["rewards"]


def test_the_corpus_holds_what_it_should() -> None:
    """At least one accepted program in each language for each problem, and enough of every way to fail."""
    accepted = {(program.problem, program.language) for program in PROGRAMS if program.verdict == "accepted"}
    failing = [program.verdict for program in PROGRAMS]

    assert accepted == {(program.problem, language) for program in PROGRAMS for language in ("python", "cpp")}
    assert failing.count("wrong_answer") >= 12
    assert failing.count("time_limit") >= 10
    assert failing.count("memory_limit") >= 4
    assert failing.count("runtime_error") >= 4
    assert failing.count("compile_error") >= 2
