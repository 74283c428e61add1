"""`rkgrade grade --url`: by a grader elsewhere, which says what this machine would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from service.contract import GradeResult
from tests.service.commands.conftest import Run
from tests.service.commands.example import ACCEPTED, EXAMPLE, SLOW, WRONG, results


def figures_aside(result: GradeResult) -> GradeResult:
    """What two runs of a program have in common."""
    rows = tuple(
        test.model_copy(update={"cpu_s": 0.0, "wall_s": 0.0, "memory_bytes": 0, "reruns": 0}) for test in result.tests
    )
    return result.model_copy(update={"tests": rows, "timing": None, "growth": None, "compile": None, "grader": None})


@pytest.mark.jail
def test_a_grader_elsewhere_says_the_same(rkgrade: Run, grader_url: str) -> None:
    here = rkgrade("grade", EXAMPLE, ACCEPTED, SLOW, WRONG, "--json")
    elsewhere = rkgrade("grade", EXAMPLE, ACCEPTED, SLOW, WRONG, "--json", "--url", grader_url)

    assert (elsewhere.returncode, elsewhere.stderr) == (1, "")
    assert list(map(figures_aside, results(elsewhere.stdout))) == list(map(figures_aside, results(here.stdout)))


@pytest.mark.jail
def test_options_reach_the_grader_elsewhere(rkgrade: Run, grader_url: str) -> None:
    done = rkgrade(
        "grade", EXAMPLE, WRONG, "--json", "--stop", "first_failure", "--time-factor", "2", "--url", grader_url
    )

    (result,) = results(done.stdout)
    assert [test.verdict for test in result.tests].count("skipped") == 5  # type: ignore[comparison-overlap]
    assert result.limits is not None
    assert result.limits.cpu_s == 2.0


@pytest.mark.jail
def test_what_the_grader_elsewhere_refuses_is_said_of_the_program(
    rkgrade: Run, grader_url: str, program: Callable[[str, str], Path]
) -> None:
    foreign = program("hello.kt", 'fun main() = println("hello")\n')
    done = rkgrade("grade", EXAMPLE, ACCEPTED, foreign, "--url", grader_url)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rkgrade: {foreign}: the grader refused it (422): language: ")


def test_no_grader_elsewhere(rkgrade: Run) -> None:
    done = rkgrade("grade", EXAMPLE, ACCEPTED, "--url", "http://127.0.0.1:9")

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("rkgrade: no grader answers at http://127.0.0.1:9: ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--url", "http://127.0.0.1:9", "--workers", "2"), "--workers is of grading on this machine"),
        (("--url", "http://127.0.0.1:9", "--insecure-no-cgroup"), "--insecure-no-cgroup is of grading on this machine"),
        (("--url", "grader:8000"), "--url is 'grader:8000', and an address is written as http://grader:8000"),
        (("--token-file", "x"), "--token-file belongs to --url"),
        (("--url", "http://127.0.0.1:9", "--token-file", "/nowhere/token"), "/nowhere/token: No such file"),
    ],
)
def test_options_that_do_not_go_together(rkgrade: Run, options: tuple[str, ...], words: str) -> None:
    done = rkgrade("grade", EXAMPLE, ACCEPTED, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
