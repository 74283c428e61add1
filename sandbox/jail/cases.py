"""Tests of `unittest`: what fails in them is heard, what never runs is missed, whoever runs them.

unittest keeps failures in a result that nobody need look at (`unittest.main(exit=False)`), and takes tests that are
coroutines or generators for passed.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import unittest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from sandbox.jail import ends
    from sandbox.jail.hearing import Hearing
    from sandbox.jail.outcomes import NotCovered, Skipped
else:
    import ends
    from outcomes import NotCovered, Skipped

#: What a `TestCase` calls beside its test.
SET_UP = ("setUp", "tearDown", "setUpClass", "tearDownClass")

#: What a result tells of failures.
TOLD = frozenset({"failures", "errors", "unexpectedSuccesses", "wasSuccessful"})

#: Of a `TestCase`, and what it looks at: what the program does in its own process.
ELSEWHERE = ("assertLogs", "assertNoLogs")


def listen(hearing: Hearing) -> None:
    """Have such tests heard, from now on."""
    hear_results(hearing)
    look_at_cases(hearing)
    for name in ELSEWHERE:
        setattr(unittest.TestCase, name, lambda *_, _name=name, **__: hearing.lack(f"{_name} of the program's"))


def hear_results(hearing: Hearing) -> None:
    """What failed, as unittest is told of it. A result that the script asserts something of is the script's to judge.

    Suites that run here have a result of their own.
    """

    def adding(add: Any) -> Any:
        @functools.wraps(add)
        def added(result: Any, *args: Any) -> None:
            error = failure(args)
            if isinstance(error, NotCovered):
                hearing.lack(str(error))
            if error is not None:
                hearing.unasked.setdefault(result, error)
            add(result, *args)

        return added

    kind: Any = unittest.TestResult
    for name in ("addError", "addFailure", "addSubTest", "addUnexpectedSuccess"):
        setattr(kind, name, adding(getattr(kind, name)))

    def looked_at(result: Any, name: str) -> Any:
        frame = sys._getframe(1)
        if name in TOLD and frame.f_code.co_filename == ends.SCRIPT_NAME and frame.f_lineno in hearing.asserting:
            hearing.unasked.pop(result, None)
        return object.__getattribute__(result, name)

    kind.__getattribute__ = looked_at


def failure(args: tuple[Any, ...]) -> Any:
    """The exception that a result is told of, last of all; None where a subtest went well."""
    if len(args) == 1:
        return AssertionError("passed, where it was expected to fail")
    return args[-1] and args[-1][1]


def look_at_cases(hearing: Hearing) -> None:
    kind: Any = unittest.TestCase
    run = kind.run

    @functools.wraps(run)
    def looked_at(case: Any, *args: Any) -> Any:
        is_async = isinstance(case, unittest.IsolatedAsyncioTestCase)
        for name in (case.id().rpartition(".")[2], *SET_UP):
            function = getattr(case, name, None)
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                hearing.miss(f"{name} of a TestCase that yields")
            elif inspect.iscoroutinefunction(function) and (name in SET_UP or not is_async):
                hearing.miss(f"{name} of a TestCase that is a coroutine")
        return run(case, *args)

    kind.run = looked_at


def without_patching(refuse: Callable[[], NoReturn]) -> None:
    """`unittest.mock.patch` is refused: it replaces things here, and the program has others."""
    mock: Any = importlib.import_module("unittest.mock")
    mock._patch.__enter__ = mock._patch_dict._patch_dict = lambda *_: refuse()


def set_equal(case: unittest.TestCase, first: Any, second: Any, msg: Any = None) -> None:
    """`assertSetEqual`, of sets alone: unittest's has whatever they are say its `difference` from the other."""
    for one in (first, second):
        case.assertIsInstance(one, (set, frozenset), msg)
    if first != second:
        case.fail(case._formatMessage(msg, f"{first!r} != {second!r}"))


unittest.TestCase.assertSetEqual = set_equal  # type: ignore[method-assign, assignment]


class Recorder(unittest.TestResult):
    """Keeps the exception itself, which the class it extends turns into text."""

    def __init__(self) -> None:
        super().__init__()
        self.first: BaseException | None = None
        self.ran = 0
        self.failfast = True

    def keep(self, error: Any) -> None:
        self.first = self.first or error[1]
        self.stop()

    def addSuccess(self, test: Any) -> None:
        self.ran += 1

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.ran += 1

    def addError(self, test: Any, err: Any) -> None:
        if not isinstance(err[1], Skipped):
            self.keep(err)

    def addFailure(self, test: Any, err: Any) -> None:
        self.keep(err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.keep(err)

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.keep((None, AssertionError("passed, where it was expected to fail"), None))


def run_cases(case: type[unittest.TestCase], run: Callable[..., Any]) -> int:
    """Tests of a `TestCase`, how many; the first failure is raised as it was. `run` is given each test, how
    it is run, and its result."""
    result = Recorder()
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    for test in suite:
        vars(test)["run"] = functools.partial(run, test, test.run)
    suite.run(result)
    if result.first is not None:
        raise result.first
    return result.ran
