"""What is told of a stored problem, neither inputs nor expected outputs, and of languages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from service.contract.base import Response
from service.contract.checkers import Checker, Interactor, PlainChecker
from service.contract.fields import Kind, Runner
from service.contract.identity import ProblemId, problem_id
from service.contract.limits import ProblemLimits
from service.contract.problem_base import PointGroup, input_length
from service.contract.problems import (
    CallProblem,
    InteractiveProblem,
    Problem,
    ScriptProblem,
    StdioProblem,
)


class LanguageRow(Response):
    """A language of `GET /languages`."""

    id: str
    name: str
    version: str
    aliases: tuple[str, ...]
    suffix: str = Field(description="Of the names of its files, such as `.py`.")
    time_factor: float = Field(default=1.0, description="Multiplies the CPU limit of its programs on this grader.")


class ProblemRef(Response):
    """Answer to `PUT /problems`."""

    id: ProblemId = Field(description="Hash of the problem's canonical JSON.")


class TestInfo(Response):
    """A test of a stored problem, without its data."""

    index: int = Field(description="Position in the problem.")
    name: str | None = Field(description="As the problem names it.")
    input_bytes: int = Field(description="Input length in UTF-8 bytes.")
    input_chars: int = Field(description="Input length in code points.")
    output_bytes: int = Field(description="Length of the expected output in UTF-8 bytes.")
    points: float | None = Field(default=None, description="What the test is worth.")
    group: str | None = Field(default=None, description="The group that its points go to.")


class ProblemInfo(Response):
    """What may be known of a stored problem: neither inputs nor expected outputs."""

    id: ProblemId = Field(description="Hash of the problem's canonical JSON.")
    kind: Kind = Field(description="How the program is driven.")
    test_count: int = Field(description="Number of tests.")
    longest_input_bytes: int = Field(description="Input length of the longest test in UTF-8 bytes.")
    tests: tuple[TestInfo, ...] = Field(description="In the problem's order.")
    checker: Checker | PlainChecker | None = Field(
        description="How outputs, or returned values, are compared; null where an interactor or a script decides alone."
    )
    limits: ProblemLimits = Field(description="Limits of each test's run.")
    exit_code: Literal["strict", "ignore"] = Field(description="What a non-zero exit means.")
    groups: dict[str, PointGroup] = Field(default={}, description="How points become the score.")
    input_file: str | None = Field(default=None, description="Where the program finds its input, if not on stdin.")
    output_file: str | None = Field(default=None, description="Where it leaves its output, if not on stdout.")
    function: str | None = Field(default=None, description="The function that is called, if the program is not run.")
    runner: Runner | None = Field(default=None, description="How test code runs, if there is such.")
    entry_point: str | None = Field(default=None, description="The function that test code tests, if it is named.")
    interactor: Interactor | None = Field(default=None, description="What the program talks with, if it does.")
    passes: int = Field(default=1, description="How often the program may be run on one test.")


def describe(problem: Problem) -> ProblemInfo:
    """What may be told of a problem to whoever knows its id."""
    tests = tuple(
        TestInfo(
            index=index,
            name=test.name,
            input_bytes=input_length(test.given, "bytes"),
            input_chars=len(test.given),
            output_bytes=input_length(test.wanted, "bytes"),
            points=test.points,
            group=test.group,
        )
        for index, test in enumerate(problem.tests)
    )
    return ProblemInfo(
        id=problem_id(problem),
        kind=problem.kind,
        test_count=len(tests),
        longest_input_bytes=max(test.input_bytes for test in tests),
        tests=tests,
        checker=None if isinstance(problem, ScriptProblem) else problem.checker,
        limits=problem.limits,
        exit_code=problem.exit_code,
        groups=problem.groups,
        input_file=problem.input_file if isinstance(problem, StdioProblem) else None,
        output_file=problem.output_file if isinstance(problem, StdioProblem) else None,
        function=problem.function if isinstance(problem, CallProblem) else None,
        runner=problem.runner if isinstance(problem, ScriptProblem) else None,
        entry_point=problem.entry_point if isinstance(problem, ScriptProblem) else None,
        interactor=problem.interactor if isinstance(problem, InteractiveProblem) else None,
        passes=problem.passes if isinstance(problem, StdioProblem | InteractiveProblem) else 1,
    )
