"""A problem of the wire contract, as the sandbox takes it.

The inputs of its tests lie in memfds, to be shared by all its submissions. Knows nothing of requests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sandbox.checkers.base import Checker, CheckerProgram, CheckerProtocol, JuryProgram, Partial, Scoring
from sandbox.checkers.compare import Exact, Lcb, Lines, Tokens
from sandbox.checkers.plain import Plain
from sandbox.problem import Call, Dialogue, Problem, Script, Test
from sandbox.stdin import Stdin
from service import contract
from service.points import Plan, plan

#: What a test costs beside its data: a page of memfd and the objects around it.
_TEST_BYTES = 8192


@dataclass(frozen=True, slots=True)
class LoadedProblem:
    problem: Problem
    """Input lengths in bytes."""
    input_chars: tuple[int, ...]
    limits: contract.ProblemLimits
    plan: Plan | None
    """How it gives points, if it does."""
    cost_bytes: int

    def measured_in(self, unit: contract.LengthUnit) -> Problem:
        """The problem with input lengths in `unit`; inputs are shared, not copied."""
        if unit == "bytes":
            return self.problem
        tests = zip(self.problem.tests, self.input_chars, strict=True)
        return replace(self.problem, tests=tuple(replace(test, input_length=length) for test, length in tests))


def load(problem: contract.Problem) -> LoadedProblem:
    """Translate a problem. Raises CheckerRefused where its checker cannot be built."""
    match problem:
        case contract.StdioProblem():
            judged = _stdio(problem)
        case contract.CallProblem():
            judged = _call(problem)
        case contract.ScriptProblem():
            judged = _script(problem)
        case contract.InteractiveProblem():
            judged = _interactive(problem)
    return LoadedProblem(
        problem=judged,
        input_chars=tuple(len(test.given) for test in problem.tests),
        limits=problem.limits,
        plan=plan(problem),
        cost_bytes=sum(len(test.stdin) + len(test.expected) + _TEST_BYTES for test in judged.tests),
    )


def _tests(problem: contract.Problem) -> tuple[Test, ...]:
    return tuple(_test(index, test) for index, test in enumerate(problem.tests))


def _test(index: int, test: contract.BaseTest) -> Test:
    given = test.given.encode()
    return Test(index=index, name=test.name, input_length=len(given), stdin=Stdin(given), expected=test.wanted.encode())


def _stdio(problem: contract.StdioProblem) -> Problem:
    return Problem(
        _tests(problem),
        _checker(problem.checker),
        ignore_exit_code=problem.exit_code == "ignore",
        input_file=problem.input_file,
        output_file=problem.output_file,
        passes=problem.passes,
    )


def _call(problem: contract.CallProblem) -> Problem:
    return Problem(
        _tests(problem),
        Plain(problem.loose, problem.checker.float_absolute, problem.checker.float_relative),
        ignore_exit_code=problem.exit_code == "ignore",
        call=Call(problem.function, problem.prelude),
    )


def _script(problem: contract.ScriptProblem) -> Problem:
    return Problem(_tests(problem), Exact(), script=Script(problem.runner, problem.entry_point or ""))


def _interactive(problem: contract.InteractiveProblem) -> Problem:
    return Problem(
        _tests(problem),
        _program(problem.interactor, "interactor"),
        ignore_exit_code=problem.exit_code == "ignore",
        dialogue=Dialogue(None if problem.checker is None else _program(problem.checker, "checker")),
        passes=problem.passes,
    )


def _checker(checker: contract.Checker) -> Checker | CheckerProgram:
    match checker:
        case contract.TokensChecker():
            return Tokens(checker.case_sensitive, checker.float_absolute, checker.float_relative)
        case contract.LinesChecker():
            return Lines()
        case contract.LcbChecker():
            return Lcb()
        case contract.ExactChecker():
            return Exact()
        case contract.TestlibChecker() | contract.KattisChecker() | contract.PythonChecker():
            return _program(checker, "checker")


def _program(
    given: contract.TestlibChecker | contract.KattisChecker | contract.PythonChecker, field: str
) -> CheckerProgram:
    """The program that stands in that field of a problem."""
    match given:
        case contract.TestlibChecker():
            text = (("checker.cpp", given.source.encode()),)
            program = JuryProgram(given.language, text, uses_testlib=True, field=f"{field}.source")
            return CheckerProgram(CheckerProtocol.TESTLIB, program, scoring=_scoring(given))
        case contract.KattisChecker():
            texts = given.files or {"checker": given.source or ""}
            files = tuple((name, text.encode()) for name, text in texts.items())
            part = "source" if given.files is None else "files"
            program = JuryProgram(given.language, files, field=f"{field}.{part}")
            return CheckerProgram(CheckerProtocol.KATTIS, program, given.flags, Scoring(full_score=given.full_score))
        case contract.PythonChecker():
            program = JuryProgram("python", (("checker.py", given.source.encode()),), field=f"{field}.source")
            return CheckerProgram(CheckerProtocol.PYTHON, program, scoring=_scoring(given))


def _scoring(checker: contract.TestlibChecker | contract.PythonChecker) -> Scoring:
    return Scoring(Partial(checker.partial), checker.full_score)
