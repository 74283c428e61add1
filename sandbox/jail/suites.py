"""Suites written for pytest, run without pytest.

Covers test functions and `Test` classes, `unittest.TestCase`, set-up and tear-down by name, what `pytest_api` has, and
fixtures of the suite's own (`fixtures`). Anything else is `NotCovered`, by its name, rather than taken for something it
is not. The first test that fails ends the run with its exception.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import types
import unittest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sandbox.jail import cases
    from sandbox.jail.checks import finished
    from sandbox.jail.fixtures import Fixtures, Makers, Scope, arguments, members
    from sandbox.jail.outcomes import Failed, NotCovered, Skipped
    from sandbox.jail.pytest_api import Mark, Param, is_fixture, marks_of, pytest_module
    from sandbox.jail.stand_ins import MODULE
else:
    import cases
    from checks import finished
    from fixtures import Fixtures, Makers, Scope, arguments, members
    from outcomes import Failed, NotCovered, Skipped
    from pytest_api import Mark, Param, is_fixture, marks_of, pytest_module
    from stand_ins import MODULE

__all__ = ["pytest_module", "run"]

#: By which a test is skipped.
SKIPS = (Skipped, unittest.SkipTest)


def run(module: types.ModuleType) -> None:
    """Run every test of the module. Raises what the first failing one raised, and NotCovered."""
    if Suite(module).run() == 0:
        raise NotCovered("a suite in which no test is run")


class Suite:
    def __init__(self, module: types.ModuleType) -> None:
        self.module = module
        self.names = vars(module)
        self.marks = marks_of(module)

    def run(self) -> int:
        """How many tests were run."""
        ran = 0
        begin, end = (
            # Not to be called by unittest, too.
            self.names.pop(camel, None) or self.names.get(name)
            for camel, name in (("setUpModule", "setup_module"), ("tearDownModule", "teardown_module"))
        )
        called(begin, self.module)
        with Scope() as self.scope:
            for name, value in list(self.names.items()):
                if isinstance(value, type) and issubclass(value, unittest.TestCase):
                    ran += self.run_cases(value)
                elif is_test_class(name, value):
                    ran += self.run_class(value)
                elif is_test(name, value):
                    ran += self.run_test(Place(self, None, Scope()), value, name)
        called(end, self.module)
        return ran

    def run_class(self, owner: type, within: tuple[type, ...] = ()) -> int:
        """Tests of a class, and of classes in it, `within` which it is itself."""
        ran = 0
        within = (*within, owner)
        called_with(owner, getattr(owner, "setup_class", None))
        with Scope() as scope:
            place = Place(self, owner, scope)
            for name, _ in members(owner):
                inner = getattr(owner, name)
                if is_test_class(name, inner):
                    ran += 0 if inner in within else self.run_class(inner, within)
                elif name[:4] == "test" and callable(inner) and not is_fixture(inner):
                    ran += self.run_test(place, inner, name)
        called_with(owner, getattr(owner, "teardown_class", None))
        return ran

    def run_cases(self, owner: type[unittest.TestCase]) -> int:
        if owner.__module__ != self.module.__name__:
            return 0
        with Scope() as scope:
            place = Place(self, owner, scope)

            def run_case(case: Any, run: Callable[[Any], Any], result: Any) -> None:
                function = getattr(case, case._testMethodName)
                marks = place.marks(function)
                if is_skipped(marks):
                    return
                with contextlib.suppress(*SKIPS):
                    place.run_once(lambda: run(result), function, case, marks, {}, {})

            return cases.run_cases(owner, run_case)

    def run_test(self, place: Place, function: Any, name: str) -> int:
        """Run a test with each of its parameters; how many runs that were."""
        marks = place.marks(function)
        if is_skipped(marks):
            return 0
        sets = [rows(*mark.args, **mark.keywords) for mark in marks if mark.name == "parametrize"]
        given = {name for one in sets for values, _ in one for name in values}
        params = place.params(function, marks, given)
        ran = 0
        for chosen in itertools.product(*sets):
            values = {key: value for one, _ in chosen for key, value in one.items()}
            more = [mark for _, of_row in chosen for mark in of_row]
            if is_skipped(more):
                continue
            for which in itertools.product(*params.values()):
                instance = None if place.owner is None else place.owner()
                test = function if instance is None else getattr(instance, name)
                numbers = dict(zip(params, which, strict=True))
                once = functools.partial(place.run_once, None, test, instance, marks, values, numbers)
                ran += expecting([*marks, *more], once)
        return ran


class Place:
    """Where tests stand, in the module or in a class of it, and the fixtures that are in reach there."""

    def __init__(self, suite: Suite, owner: type | None, scope: Scope) -> None:
        self.suite, self.owner, self.scope = suite, owner, scope
        self.makers = Makers(suite.names, owner)

    def marks(self, function: Any) -> list[Mark]:
        """The test's own first."""
        function = getattr(function, "__func__", function)
        return [*marks_of(function), *(marks_of(self.owner) if self.owner else ()), *self.suite.marks]

    def params(self, function: Any, marks: list[Mark], given: set[str]) -> dict[str, range]:
        """Of the fixtures that the test comes to ask for: for each that has params, their numbers."""
        wanted = [*self.makers.automatic, *used(marks), *parameters(function, self.owner)]
        found = {}
        for name in self.makers.asked_for(one for one in wanted if one not in given):
            declared = self.makers.found[name].rkgrade_fixture if name in self.makers.found else None
            if declared is not None and declared.params is not None:
                found[name] = range(len(declared.params))
        return found

    def run_once(
        self,
        run: Callable[[], Any] | None,
        test: Any,
        instance: Any,
        marks: list[Mark],
        values: dict[str, Any],
        params: dict[str, int],
    ) -> None:
        """Run a test, by `run` where that is not to call it, between what is to be done before and after."""
        node = types.SimpleNamespace(name=test.__name__, cls=self.owner) if hasattr(test, "__name__") else None
        about = {
            "cls": self.owner,
            "instance": instance,
            "function": test,
            "module": self.suite.module,
            "node": node,
        }
        with Scope() as scope:
            scopes = {
                "module": self.suite.scope,
                "class": scope if self.owner is None else self.scope,
                "function": scope,
            }
            fixtures = Fixtures(self.makers, instance, scopes, about)
            fixtures.values, fixtures.params = values, params
            if self.owner is None:
                called(self.suite.names.get("setup_function"), test)
                scope.callback(called, self.suite.names.get("teardown_function"), test)
            fixtures.make_automatic(of_class=False)
            if self.owner is not None:
                called(getattr(instance, "setup_method", None) or hook(instance, "setup"), test)
                down = getattr(instance, "teardown_method", None) or hook(instance, "teardown")
                scope.callback(called, down, test)
            fixtures.make_automatic(of_class=True)
            for name in used(marks):
                fixtures.value(name)
            if run is not None:
                run()
            else:
                finished(test(**{one: fixtures.value(one) for one in arguments(test)}), "a test")


def hook(instance: Any, name: str) -> Any:
    return None if isinstance(instance, unittest.TestCase) else getattr(instance, name, None)


def is_test_class(name: str, value: object) -> bool:
    """A class by that name that is the suite's, and made without arguments, as pytest has it."""
    if not isinstance(value, type) or name[:4] != "Test" or value.__module__ == MODULE:
        return False
    made_plainly = all(getattr(value, name) is getattr(object, name) for name in ("__init__", "__new__"))
    return made_plainly and getattr(value, "__test__", True)


def is_test(name: str, value: object) -> bool:
    """A function by that name, or what wraps one, that is no fixture."""
    if name[:4] != "test" or is_fixture(value) or not callable(value):
        return False
    wanted = getattr(value, "__test__", True)
    while isinstance(value, functools.partial):
        value = value.func
    return wanted and type(inspect.unwrap(value)) is types.FunctionType


def used(marks: list[Mark]) -> list[str]:
    return [name for mark in marks if mark.name == "usefixtures" for name in mark.args]


def is_skipped(marks: list[Mark]) -> bool:
    return any(mark.name == "skip" or (mark.name == "skipif" and condition(mark)) for mark in marks)


def condition(mark: Mark) -> bool:
    """Of a `skipif` or an `xfail`, which need not have one."""
    given = mark.args[0] if mark.args else mark.keywords.get("condition", True)
    if isinstance(given, str):
        raise NotCovered(f"pytest.mark.{mark.name} with a text for its condition")
    return bool(given)


def expecting(marks: list[Mark], run: Callable[[], None]) -> int:
    """Run a test that may be marked as one that fails: 1 where it was run, and its word counts."""
    meant = next((mark for mark in marks if mark.name == "xfail" and condition(mark)), None)
    if meant is None:
        try:
            run()
        except SKIPS:
            return 0
        return 1
    if meant.keywords.get("run", True):
        try:
            run()
        except SKIPS:
            return 0
        except (Exception, Failed) as error:
            if not isinstance(error, meant.keywords.get("raises") or BaseException):
                raise
            return 0
        if meant.keywords.get("strict", False):
            raise Failed("passed, where it was expected to fail")
    return 0


def rows(argnames: Any, argvalues: Any, **keywords: Any) -> list[tuple[dict[str, Any], list[Mark]]]:
    """What `parametrize` gives a test, run by run, and the marks of each."""
    if keywords.get("indirect"):
        raise NotCovered("pytest.mark.parametrize(indirect=...)")
    alone = isinstance(argnames, str)
    wanted = [one.strip() for one in argnames.split(",") if one.strip()] if alone else list(argnames)
    found = []
    for row in argvalues:
        marks = row.marks if isinstance(row, Param) else []
        values = row.values if isinstance(row, Param) else (row,) if alone and len(wanted) == 1 else row
        found.append((dict(zip(wanted, values, strict=True)), marks))
    return found


def parameters(function: Any, owner: type | None) -> list[str]:
    """What a test, or a method of a class, is to be given."""
    names = arguments(function)
    bound = (
        owner is None
        or inspect.ismethod(function)
        or isinstance(inspect.getattr_static(owner, getattr(function, "__name__", ""), None), staticmethod)
    )
    return names if bound else names[1:]


def called_with(owner: type, function: Any) -> None:
    """Call a hook of a class's, be it a class method or not."""
    called(getattr(function, "__func__", function), owner)


def called(function: Any, *args: Any) -> None:
    """Call a hook, which may or may not want to know of what. A fixture by a hook's name is none."""
    if function is not None and not is_fixture(function):
        finished(function(*args[: len(arguments(function))]), "a set-up or tear-down")
