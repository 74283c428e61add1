"""What the tests of Kattis scoring problems are worth: held to the format's own way of adding scores up."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from rl_client.datasets.base import DatasetError
from rl_client.datasets.kattis import read_package
from sandbox.verdicts import Verdict
from service.contract import Problem
from service.points import award, plan
from tests.rl_client.datasets.test_kattis import write_package

SCORING = "type: scoring\n"


@dataclass(frozen=True, slots=True)
class Row:
    index: int
    verdict: Verdict
    score: float | None = None


def package(directory: Path, config: str, settings: dict[str, str], *tests: str, **files: str) -> Problem:
    """A package of such tests below data/, whose settings files are named below data/, too."""
    written: dict[str, str | bytes | None] = {"data/sample/1.in": None, "data/sample/1.ans": None}
    written |= {"data/secret/01.in": None, "data/secret/01.ans": None, "problem.yaml": config}
    for test in tests:
        written |= {f"data/{test}.in": f"{test}\n", f"data/{test}.ans": "\n"}
    written |= {f"data/{name}": text for name, text in settings.items()}
    return read_package(write_package(directory, written | files))


def score(problem: Problem, *failing: str, **scores: float) -> float | None:
    """What a submission earns that fails those tests; a validator's `scores` are by the last part of a test's name."""
    rows = []
    for index, test in enumerate(problem.tests):
        name = test.name or ""
        verdict = Verdict.WRONG_ANSWER if name in failing else Verdict.ACCEPTED
        rows.append(Row(index, verdict, scores.get(name.rpartition("/")[2])))
    how = plan(problem)
    assert how is not None
    return award(how, rows).score


# ---------------------------------------------------------------------------------------------------------------
# The legacy format

#: As Kodsport's tools for olympiads write it.
OLYMPIAD = {
    "testdata.yaml": "on_reject: continue\nrange: 0 100\ngrader_flags: ignore_sample\n",
    "sample/testdata.yaml": "on_reject: continue\nrange: 0 0\naccept_score: 0\n",
    "secret/testdata.yaml": "on_reject: continue\nrange: 0 100\ngrader_flags: accept_if_any_accepted\n",
    "secret/g1/testdata.yaml": "on_reject: break\naccept_score: 30\nrange: 0 30\ngrader_flags: min\n",
    "secret/g2/testdata.yaml": "on_reject: break\naccept_score: 70\nrange: 0 70\ngrader_flags: min\n",
}


def test_subtasks_of_an_olympiad(tmp_path: Path) -> None:
    problem = package(
        tmp_path, SCORING, OLYMPIAD, "sample/1", "secret/g1/1", "secret/g1/2", "secret/g2/1", "secret/g2/2"
    )
    assert [(test.name, test.points, test.group) for test in problem.tests] == [
        ("sample/1", None, None),
        ("secret/g1/1", 30, "secret/g1"),
        ("secret/g1/2", 30, "secret/g1"),
        ("secret/g2/1", 70, "secret/g2"),
        ("secret/g2/2", 70, "secret/g2"),
    ]
    assert score(problem) == 100
    assert score(problem, "sample/1", "secret/g1/2") == 70
    assert score(problem, "secret/g1/1", "secret/g2/1") == 0


def test_points_of_each_test(tmp_path: Path) -> None:
    flags = {"testdata.yaml": "on_reject: continue\naccept_score: 10\ngrader_flags: ignore_sample always_accept\n"}
    problem = package(tmp_path, SCORING, flags, "sample/1", "secret/1", "secret/2", "secret/3")
    assert (score(problem), score(problem, "secret/2"), score(problem, "secret/1", "secret/3")) == (30, 20, 10)


def test_without_settings_all_tests_must_be_accepted(tmp_path: Path) -> None:
    problem = package(tmp_path, SCORING, {}, "sample/1", "secret/1", "secret/2")
    assert (score(problem), score(problem, "secret/2"), score(problem, "sample/1")) == (3, 0, 0)


def test_folders_behind_one_that_was_rejected_earn_nothing_where_judging_breaks(tmp_path: Path) -> None:
    flags = {
        "testdata.yaml": "on_reject: continue\naccept_score: 1\ngrader_flags: ignore_sample\n",
        "secret/testdata.yaml": "on_reject: break\ngrader_flags: always_accept\n",
        **{f"secret/{name}/testdata.yaml": "grader_flags: min\naccept_score: 10\n" for name in "abc"},
    }
    problem = package(tmp_path, SCORING, flags, "secret/a/1", "secret/b/1", "secret/b/2", "secret/c/1")
    assert [score(problem, *failing) for failing in ((), ("secret/a/1",), ("secret/b/2",), ("secret/c/1",))] == [
        *(30, 0, 10, 20)
    ]


def test_pass_fail_problems_have_no_points(tmp_path: Path) -> None:
    problem = package(tmp_path, "type: pass-fail\n", OLYMPIAD, "secret/g1/1")
    assert [(test.points, test.group) for test in problem.tests] == [(None, None)]
    assert plan(problem) is None


SCORER = {"output_validators/v.py": "import sys\nopen(sys.argv[3] + 'score.txt', 'w').write('7')\nsys.exit(42)\n"}
CUSTOM = SCORING + "validation: custom score\n"


def test_a_validator_that_scores_is_measured_by_the_range(tmp_path: Path) -> None:
    settings = OLYMPIAD | {"secret/g2/testdata.yaml": "range: 0 30\ngrader_flags: min\n"}
    problem = package(tmp_path, CUSTOM, settings, "secret/g1/1", "secret/g1/2", "secret/g2/1", **SCORER)
    checker: Any = problem.checker  # type: ignore[union-attr]
    assert checker.full_score == 30
    assert score(problem, **{"1": 0.5, "2": 0.25}) == 7.5 + 15


# ---------------------------------------------------------------------------------------------------------------
# The format of 2025-09

NEW = "problem_format_version: 2025-09\ntype: scoring\n"


def test_groups_of_2025_09(tmp_path: Path) -> None:
    settings = {
        "secret/a/test_group.yaml": "max_score: 20\n",
        "secret/b/test_group.yaml": "max_score: 30\nscore_aggregation: sum\nrequire_pass: [sample, secret/a]\n",
        "secret/c/test_group.yaml": "max_score: 50\nscore_aggregation: min\n",
    }
    tests = ("sample/1", "secret/a/1", "secret/a/2", "secret/b/1", "secret/b/2", "secret/b/3", "secret/c/1")
    problem = package(tmp_path, NEW, settings, *tests)
    assert score(problem) == 100
    assert score(problem, "secret/b/1") == 90
    assert score(problem, "secret/a/2") == 50
    assert score(problem, "sample/1") == 70
    assert score(problem, "secret/c/1") == 50


def test_tests_without_groups_of_2025_09_share_the_score(tmp_path: Path) -> None:
    problem = package(tmp_path, NEW, {}, "sample/1", "secret/1", "secret/2", "secret/3", "secret/4")
    assert (score(problem), score(problem, "sample/1", "secret/1")) == (100, 75)


def test_all_or_nothing_of_2025_09(tmp_path: Path) -> None:
    settings = {"secret/test_group.yaml": "score_aggregation: pass-fail\nmax_score: 40\n"}
    problem = package(tmp_path, NEW, settings, "secret/1", "secret/2")
    assert (score(problem), score(problem, "secret/1")) == (40, 0)


# ---------------------------------------------------------------------------------------------------------------
# What cannot be put into points

MAX = "on_reject: continue\ngrader_flags: max always_accept\n"
TWO = ("secret/1", "secret/2")
REFUSED = [
    (SCORING, {"testdata.yaml": "grading: custom\n"}, TWO, {}, "testdata.yaml", "graders of a package's own"),
    (SCORING, {"testdata.yaml": "reject_score: 1\n"}, TWO, {}, "testdata.yaml", "reject_score"),
    (SCORING, {"testdata.yaml": "accept_score: many\n"}, TWO, {}, "testdata.yaml", "accept_score needs a number"),
    (SCORING, {"testdata.yaml": "grader_flags: best\n"}, TWO, {}, "testdata.yaml", "unknown grader flag 'best'"),
    (SCORING, {"testdata.yaml": "on_reject: stop\n"}, TWO, {}, "testdata.yaml", "on_reject is break or continue"),
    (SCORING, {"testdata.yaml": "grader_flags: always_accept\n"}, TWO, {}, "testdata.yaml", "one by one"),
    (
        SCORING,
        {"testdata.yaml": "on_reject: continue\ngrader_flags: max always_accept\n"},
        TWO,
        {},
        "testdata.yaml",
        "max",
    ),
    (CUSTOM, {}, TWO, SCORER, "testdata.yaml", "a validator that scores"),
    (CUSTOM, {"testdata.yaml": "grader_flags: min\n"}, TWO, SCORER, "testdata.yaml", "needs a range"),
    (NEW, {"secret/test_group.yaml": "max_score: unbounded\n"}, TWO, {}, "test_group.yaml", "without a bound"),
    (NEW, {}, ("secret/a/1", "secret/b/1"), {}, "test_group.yaml", "without a bound"),
    (NEW, {"secret/test_group.yaml": "score_aggregation: max\n"}, TWO, {}, "test_group.yaml", "pass-fail, sum or min"),
    (NEW, {}, ("secret/1", "secret/a/1"), {}, "secret", "both tests and groups"),
    ("problem_format_version: 2023-07-draft\ntype: scoring\n", {}, TWO, {}, "problem.yaml", "2023-07-draft"),
]


@pytest.mark.parametrize(("config", "settings", "tests", "files", "at", "reason"), REFUSED)
def test_what_cannot_be_put_into_points_is_refused(
    tmp_path: Path,
    config: str,
    settings: dict[str, str],
    tests: tuple[str, ...],
    files: dict[str, str],
    at: str,
    reason: str,
) -> None:
    with pytest.raises(DatasetError) as refusal:
        package(tmp_path, config, settings, *tests, **files)
    assert reason in str(refusal.value)
    assert at in str(refusal.value)


# ---------------------------------------------------------------------------------------------------------------
# Against the format's own rules, on trees by chance


def chance_settings(chance: random.Random) -> str:
    flags = [
        *chance.choices(["", "sum", "min", "avg"], [3, 3, 3, 1]),
        *chance.choices(["", "worst_error", "always_accept", "accept_if_any_accepted"], [2, 1, 3, 2]),
    ]
    on_reject = chance.choice(["break", "continue", "continue"])
    return yaml.safe_dump(
        {"grader_flags": " ".join(flags), "accept_score": chance.choice([1, 5, 20]), "on_reject": on_reject}
    )


def by_the_format(names: list[str], settings: dict[str, str], failing: set[str]) -> float:
    """The score, as the legacy specification has it computed, of what is at the top accepted; else 0."""

    def settings_of(folder: str) -> dict[str, Any]:
        while f"{folder}/testdata.yaml".lstrip("/") not in settings and folder:
            folder = folder.rpartition("/")[0]
        found: dict[str, Any] = yaml.safe_load(settings.get(f"{folder}/testdata.yaml".lstrip("/"), "{}"))
        return found

    def of(folder: str) -> tuple[bool, float]:
        own = settings_of(folder)
        flags = str(own.get("grader_flags", "")).split()
        inside = sorted({name[len(folder) :].lstrip("/").split("/")[0] for name in names if name.startswith(folder)})
        results: list[tuple[bool, float]] = []
        for child in inside:
            path = f"{folder}/{child}".lstrip("/")
            if path in names:
                accepted = path not in failing
                results.append((accepted, own.get("accept_score", 1) if accepted else 0))
            else:
                results.append(of(path))
            if not results[-1][0] and own.get("on_reject", "break") == "break":
                break
        accepted = "always_accept" in flags or all(one for one, _ in results)
        if "accept_if_any_accepted" in flags and any(one for one, _ in results):
            accepted = True
        scores = [points for _, points in results]
        mode = [flag for flag in flags if flag in ("sum", "min", "avg")][-1:] or ["sum"]
        total = {"sum": math.fsum(scores), "min": min(scores), "avg": math.fsum(scores) / len(scores)}[mode[0]]
        return accepted, total if accepted else 0.0

    return of("")[1]


def test_scores_are_those_of_the_format(tmp_path: Path) -> None:
    chance = random.Random(7)
    read = 0
    for number in range(600):
        names = sorted(
            f"{chance.choice(['sample', 'secret', 'secret/a', 'secret/b', 'secret/c/d', 'secret/c/e'])}/{test}"
            for test in range(chance.randint(2, 7))
        )
        names = sorted({*names, "secret/z/9"})
        folders = sorted({name.rpartition("/")[0] for name in names} | {"", "secret", "secret/c"})
        settings = {
            f"{folder}/testdata.yaml".lstrip("/"): chance_settings(chance)
            for folder in folders
            if chance.random() < 0.8
        }
        try:
            problem = package(tmp_path / str(number), SCORING, settings, *names)
        except DatasetError:
            continue
        read += 1
        for _ in range(8):
            failing = {name for name in names if chance.random() < 0.3}
            expected = by_the_format(names, settings, failing)
            how = plan(problem)
            found = 0.0 if how is None else score(problem, *failing)
            assert found == pytest.approx(expected), (names, settings, failing)
    assert read > 150
