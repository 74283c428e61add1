"""Problems ready to be judged, kept by a worker between grades.

Translates the wire contract into the sandbox's values once per problem, so that the inputs of a problem lie
in memfds shared by all its submissions. Knows nothing of requests.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from sandbox.checkers.base import Checker, CheckerProgram, CheckerProtocol, JuryProgram, Partial, Scoring
from sandbox.checkers.compare import Exact, Lcb, Lines, Tokens
from sandbox.checkers.plain import Plain
from sandbox.problem import Call, Dialogue, Problem, Script, Test
from sandbox.stdin import Stdin
from service import contract
from service.points import Plan, plan
from service.stores.problems import ProblemStore

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


def _stdio(problem: contract.StdioProblem) -> Problem:
    tests = tuple(
        Test(
            index=index,
            name=test.name,
            input_length=contract.input_length(test.input, "bytes"),
            stdin=Stdin(test.input.encode()),
            expected=test.output.encode(),
        )
        for index, test in enumerate(problem.tests)
    )
    return Problem(
        tests,
        _checker(problem.checker),
        ignore_exit_code=problem.exit_code == "ignore",
        input_file=problem.input_file,
        output_file=problem.output_file,
        passes=problem.passes,
    )


def _call(problem: contract.CallProblem) -> Problem:
    tests = tuple(
        Test(
            index=index,
            name=test.name,
            input_length=contract.input_length(test.given, "bytes"),
            stdin=Stdin(test.given.encode()),
            expected=test.wanted.encode(),
        )
        for index, test in enumerate(problem.tests)
    )
    return Problem(
        tests,
        Plain(problem.loose, problem.checker.float_absolute, problem.checker.float_relative),
        ignore_exit_code=problem.exit_code == "ignore",
        call=Call(problem.function, problem.prelude),
    )


def _script(problem: contract.ScriptProblem) -> Problem:
    tests = tuple(
        Test(
            index=index,
            name=test.name,
            input_length=contract.input_length(test.script, "bytes"),
            stdin=Stdin(test.script.encode()),
            expected=b"",
        )
        for index, test in enumerate(problem.tests)
    )
    return Problem(tests, Exact(), script=Script(problem.runner, problem.entry_point or ""))


def _interactive(problem: contract.InteractiveProblem) -> Problem:
    tests = tuple(
        Test(
            index=index,
            name=test.name,
            input_length=contract.input_length(test.input, "bytes"),
            stdin=Stdin(test.input.encode()),
            expected=test.output.encode(),
        )
        for index, test in enumerate(problem.tests)
    )
    return Problem(
        tests,
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


class LoadedProblems:
    """The most recently used problems, bounded in bytes and in tests (each test may hold one descriptor).

    The latest one is always kept, however large.
    """

    def __init__(self, store: ProblemStore, *, limit_bytes: int, limit_tests: int) -> None:
        self._store = store
        self._limit_bytes = limit_bytes
        self._limit_tests = limit_tests
        self._kept: OrderedDict[str, LoadedProblem] = OrderedDict()
        self._cost_bytes = 0
        self._tests = 0

    def get(self, identifier: str) -> LoadedProblem:
        """Raises what `ProblemStore.get` and `load` raise."""
        found = self._kept.get(identifier)
        if found is not None:
            self._kept.move_to_end(identifier)
            return found
        loaded = load(contract.parse_problem(self._store.get(identifier)))
        self._kept[identifier] = loaded
        self._cost_bytes += loaded.cost_bytes
        self._tests += len(loaded.problem.tests)
        while len(self._kept) > 1 and (self._cost_bytes > self._limit_bytes or self._tests > self._limit_tests):
            _, dropped = self._kept.popitem(last=False)
            self._cost_bytes -= dropped.cost_bytes
            self._tests -= len(dropped.problem.tests)
        return loaded
