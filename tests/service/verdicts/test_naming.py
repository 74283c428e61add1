"""The key of a result: all that it depends on, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sandbox.checkers import Tokens
from sandbox.checkers.base import CheckerProgram, CheckerProtocol, JuryProgram
from sandbox.problem import Limits, Problem, Submission
from service.contract import GradeRequest, GraderInfo
from service.verdicts import naming
from service.verdicts.naming import name_of

PROBLEM = Problem((), Tokens())
SUBMISSION = Submission(PROBLEM, "cpp", b"int main() {}", Limits())
GRADER = GraderInfo(version="0.1.0", sandbox="nsjail, cgroup v2", language_version="g++ 12", secure=True)
ID, OTHER_ID = "sha256:" + 64 * "0", "sha256:" + 64 * "1"


def request(**fields: Any) -> GradeRequest:
    return GradeRequest(**{"problem": ID, "language": "cpp", "source": "int main() {}"} | fields)


def name(submission: Submission = SUBMISSION, grader: GraderInfo = GRADER, host: str = "", **fields: Any) -> str:
    return name_of(submission, request(**fields), grader, host)


def test_whatever_a_result_depends_on_makes_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    cpp_checker = CheckerProgram(CheckerProtocol.TESTLIB, JuryProgram("cpp", (("checker.cpp", b""),)))
    names = [
        name(),
        name(replace(SUBMISSION, source=b"int main() { }")),
        name(replace(SUBMISSION, language="cpp20")),
        name(replace(SUBMISSION, limits=Limits(cpu_s=3.0))),
        name(replace(SUBMISSION, limits=Limits(wall_s=5.0))),
        name(replace(SUBMISSION, limits=Limits(memory_bytes=2**20))),
        name(replace(SUBMISSION, limits=Limits(output_bytes=2**20))),
        name(replace(SUBMISSION, limits=Limits(processes=3))),
        name(replace(SUBMISSION, problem=Problem((), cpp_checker))),
        name(grader=GRADER.model_copy(update={"version": "0.2.0"})),
        name(grader=GRADER.model_copy(update={"language_version": "g++ 13"})),
        name(host="another testlib"),
        name(problem=OTHER_ID),
        name(stop="first_failure"),
        name(taxonomy="strict"),
        name(length_unit="chars"),
        name(detail="outputs"),
    ]
    monkeypatch.setattr(naming, "code_digest", lambda: "another release")
    names.append(name())
    monkeypatch.undo()
    monkeypatch.setattr("sandbox.compiling.version", lambda language: "gcc 99.0")
    names.append(name())
    assert len(set(names)) == len(names)


def test_who_asks_and_how_is_no_part_of_it() -> None:
    completion = "Here:\n```cpp\nint main() {}\n```\n"
    names = {
        name(),
        name(id="step-1"),
        name(source=None, completion=completion),
        name(source=None, completion=completion, extraction="first_fence"),
        # What they come to stands in the submission.
        name(time_factor=2.0),
        name(limits={"cpu_s": 2.0}),
    }
    assert len(names) == 1
