"""Which programs are graded, with what request, and when two audits are the same."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from rl_client.audit.choosing import Choice, choose
from rl_client.datasets.submissions import Expectation, Submission
from rl_client.languages import ids_by_name
from service.contract import LanguageRow, Verdict
from tests.rl_client.audit.results import PROBLEM, program

NAMES = ids_by_name(
    [
        LanguageRow(id="python", name="Python", version="3", aliases=("py3", "python3"), suffix=".py"),
        LanguageRow(id="cpp", name="C++", version="12", aliases=("C++",), suffix=".cpp"),
    ]
)
ALL = Choice(per_label=None, languages=None, time_factor=1.0)
SLOW = (Expectation(frozenset({Verdict.ACCEPTED, Verdict.TIME_LIMIT}), frozenset({Verdict.TIME_LIMIT})),)


def chosen(submissions: list[Submission], choice: Choice = ALL) -> list[str]:
    return [one.name for one, _ in choose(PROBLEM, submissions, NAMES, choice).requests]


def test_the_request_of_a_program() -> None:
    submissions = [
        program("a", correct=True, language="PY3"),
        program("b", correct=True, language="c++", source="Here:\n```cpp\nint main() {}\n```\n"),
        program("c", correct=True, language="c++", source="```cpp\nint main() {}\n```\n"),
        program("d", correct=False, expected=SLOW),
    ]
    requests = [request for _, request in choose(PROBLEM, submissions, NAMES, replace(ALL, time_factor=2.0)).requests]

    assert [(one.problem, one.time_factor) for one in requests] == [(PROBLEM, 2.0)] * 4
    assert [one.language for one in requests] == ["python", "cpp", "cpp", "python"]
    assert [one.source is None for one in requests] == [False, False, True, False]
    assert requests[2].completion == submissions[2].source
    assert [one.stop for one in requests] == ["first_failure"] * 3 + ["never"]


def test_what_is_not_graded_is_counted_by_reason() -> None:
    submissions = [
        program("a", correct=True, unusable="several files"),
        program("b", correct=True, language="py2"),
        program("c", correct=False, language=""),
        program("d", correct=False, language="cpp"),
        program("e", correct=False, source="\ud800"),
        program("f", correct=False),
    ]
    found = choose(PROBLEM, submissions, NAMES, replace(ALL, languages=frozenset({"python"})))
    assert [one.name for one, _ in found.requests] == ["f"]
    assert found.skipped == {
        "several files": 1,
        "language py2": 1,
        "language unknown": 1,
        "language not asked for": 1,
        "source: Lone surrogate at character 0: the string has no UTF-8 form": 1,
    }


def test_a_limit_by_label_draws_the_same_programs_whatever_their_order() -> None:
    submissions = [program(f"r{n}", correct=True) for n in range(50)] + [
        program(f"w{n}", correct=False) for n in range(3)
    ]
    drawn = chosen(submissions, replace(ALL, per_label=10))
    assert [name[0] for name in drawn] == ["r"] * 10 + ["w"] * 3
    assert drawn != [f"r{n}" for n in range(10)] + ["w0", "w1", "w2"]
    assert set(chosen(submissions[::-1], replace(ALL, per_label=10))) == set(drawn)
    assert set(chosen(submissions, replace(ALL, per_label=20))) > set(drawn)


def test_an_audit_is_another_where_anything_that_matters_is() -> None:
    submissions = [program("a", correct=True), program("b", correct=False, expected=SLOW)]

    def audit(submissions: list[Submission] = submissions, problem: str = PROBLEM, choice: Choice = ALL) -> str:
        return choose(problem, submissions, NAMES, choice).audit

    others = [
        audit(problem="sha256:" + "1" * 64),
        audit(choice=replace(ALL, time_factor=2.0)),
        audit(submissions[:1]),
        audit([submissions[0], replace(submissions[1], source="x")]),
        audit([submissions[0], replace(submissions[1], label="x")]),
        audit([submissions[0], replace(submissions[1], correct=True)]),
        audit([submissions[0], replace(submissions[1], expected=())]),
    ]
    assert len({audit(), *others}) == 1 + len(others)
    assert audit() == audit([*submissions, program("c", correct=True, language="py2")])


def test_an_audit_has_the_same_hash_in_every_process() -> None:
    """A set of strings has another order in each."""
    code = (
        "from tests.rl_client.audit.test_choosing import *;"
        "print(choose(PROBLEM, [program('b', correct=False, expected=SLOW)], NAMES, ALL).audit)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": str(seed)}
        ).stdout
        for seed in range(3)
    }
    assert len(found) == 1
