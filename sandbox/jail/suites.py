"""Suites written for pytest, and scripts with a `check(candidate)`, run without pytest.

Covers test functions and `Test` classes, `unittest.TestCase`, set-up and tear-down by name, `raises`, `approx`, `fail`,
`skip`, marks (`parametrize`, `skip`, `skipif`; other names change nothing), and fixtures of the suite's own, made anew
for each test. Of pytest's own fixtures there is `tmp_path`. Anything else is `NotCovered`, by its name, rather than
taken for something it is not. The first test that fails ends the run with its exception.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import itertools
import math
import pathlib
import re
import tempfile
import types
import unittest
from decimal import Decimal
from fractions import Fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

#: As pytest has them: https://docs.pytest.org/en/stable/reference/reference.html#pytest-approx
RELATIVE, ABSOLUTE = 1e-6, 1e-12

#: Marks whose meaning would be lost.
UNCOVERED_MARKS = ("asyncio", "anyio", "xfail", "usefixtures", "trio")


class NotCovered(BaseException):
    """What a suite needs and does not get here. No `except Exception` is to swallow it."""


class Skipped(BaseException):
    """A test asks not to be run."""


# -- check(candidate)


def defines_check(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body)


def calls_check(tree: ast.Module) -> bool:
    """Whether code outside functions does."""
    outside = [node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    calls = (node.func for top in outside for node in ast.walk(top) if isinstance(node, ast.Call))
    return any(isinstance(name, ast.Name) and name.id == "check" for name in calls)


# -- what stands for pytest


class Raises:
    """`raises` as a context, and what it hands out."""

    def __init__(self, expected: type[BaseException] | tuple[type[BaseException], ...], match: str | None) -> None:
        self.expected = expected
        self.pattern = match
        self.type: type[BaseException] | None = None
        self.value: Any = None

    def __enter__(self) -> Raises:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if kind is None:
            raise AssertionError(f"did not raise {self.expected!r}")
        if not issubclass(kind, self.expected):
            return False
        self.type, self.value = kind, error
        if self.pattern is not None:
            self.match(self.pattern)
        return True

    def match(self, pattern: str) -> bool:
        if not re.search(pattern, str(self.value)):
            raise AssertionError(f"{pattern!r} does not match {str(self.value)!r}")
        return True


def raises(expected: Any, *call: Any, match: str | None = None, **keywords: Any) -> Raises:
    context = Raises(expected, match)
    if call:
        with context:
            call[0](*call[1:], **keywords)
    elif keywords:
        raise NotCovered(f"pytest.raises({next(iter(keywords))}=...)")
    return context


class Approx:
    """Equal to numbers that are near, and to lists, tuples, dicts and arrays of such."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None, nan_ok: bool = False) -> None:
        self.expected = expected
        self.relative = rel
        self.absolute = abs
        self.nan_ok = nan_ok

    def __eq__(self, actual: object) -> bool:
        return self.near(self.expected, actual)

    def __repr__(self) -> str:
        return f"approx({self.expected!r})"

    def near(self, expected: Any, actual: Any) -> bool:
        expected, actual = listed(expected), listed(actual)
        if isinstance(expected, dict):
            if not isinstance(actual, dict) or expected.keys() != actual.keys():
                return False
            return all(self.near(expected[key], actual[key]) for key in expected)
        if isinstance(expected, (list, tuple)):
            if not isinstance(actual, (list, tuple)) or len(expected) != len(actual):
                return False
            return all(map(self.near, expected, actual))
        if not are_numbers(expected, actual):
            return type(expected) is type(actual) and bool(expected == actual)
        if expected == actual:
            return True
        if not isinstance(expected, complex) and math.isnan(expected):
            return self.nan_ok and not isinstance(actual, complex) and math.isnan(actual)
        if math.isinf(abs(expected)) or (isinstance(actual, complex) and not isinstance(expected, complex)):
            return False
        return bool(builtins.abs(expected - actual) <= self.tolerance(expected))

    def tolerance(self, expected: Any) -> Any:
        kind = type(expected) if isinstance(expected, (Decimal, Fraction)) else float
        absolute = kind(ABSOLUTE if self.absolute is None else self.absolute)
        if self.relative is None and self.absolute is not None:
            return absolute
        return max(kind(RELATIVE if self.relative is None else self.relative) * builtins.abs(expected), absolute)


def are_numbers(expected: object, actual: object) -> bool:
    kinds = (int, float, complex, Decimal, Fraction)
    return isinstance(expected, kinds) and isinstance(actual, kinds) and not isinstance(expected, bool)


def listed(value: Any) -> Any:
    return value.tolist() if type(value).__name__ in ("ndarray", "float64", "int64") else value


class Marks:
    def __getattr__(self, name: str) -> Any:
        if name in UNCOVERED_MARKS:
            raise NotCovered(f"pytest.mark.{name}")
        return functools.partial(marked, name)


def marked(mark: str, *args: Any, **keywords: Any) -> Any:
    if mark not in ("parametrize", "skip", "skipif"):
        bare = len(args) == 1 and not keywords and callable(args[0])
        return args[0] if bare else lambda target: target

    def mark_it(target: Any) -> Any:
        target.rkgrade_marks = [*vars(target).get("rkgrade_marks", ()), (mark, args, keywords)]
        return target

    if mark == "skip" and len(args) == 1 and callable(args[0]):
        only, args = args[0], ()
        return mark_it(only)
    return mark_it


class Param:
    def __init__(self, *values: Any, id: str | None = None, marks: Any = ()) -> None:
        if marks:
            raise NotCovered("pytest.param(marks=...)")
        self.values = values


def fixture(function: Any = None, *, autouse: bool = False, name: str | None = None, **keywords: Any) -> Any:
    if "params" in keywords:
        raise NotCovered("pytest.fixture(params=...)")

    def make(target: Any) -> Any:
        target.rkgrade_fixture = (name or target.__name__, autouse)
        return target

    return make if function is None else make(function)


def fail(reason: str = "", pytrace: bool = True) -> None:
    raise AssertionError(reason)


def skip(reason: str = "", **_: Any) -> None:
    raise Skipped(reason)


def pytest_module() -> types.ModuleType:
    module = types.ModuleType("pytest")
    vars(module).update(
        raises=raises, approx=Approx, mark=Marks(), param=Param, fixture=fixture, fail=fail, skip=skip, __path__=[]
    )

    def missing(name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        raise NotCovered(f"pytest.{name}")

    module.__getattr__ = missing  # type: ignore[method-assign]
    return module


# -- running


def run(module: types.ModuleType) -> None:
    """Run every test of the module. Raises what the first failing one raised, and NotCovered."""
    names = vars(module)
    ran = 0
    called(names.get("setup_module"), module)
    for name, value in list(names.items()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase):
            if value.__module__ == module.__name__:
                ran += run_cases(value)
        elif isinstance(value, type) and name[:4] == "Test" and "__init__" not in vars(value):
            called(getattr(value, "setup_class", None))
            for inner in dir(value):
                if inner[:4] == "test" and callable(getattr(value, inner)):
                    ran += run_test(getattr(value, inner), names, value, inner)
            called(getattr(value, "teardown_class", None))
        elif name[:4] == "test" and isinstance(value, types.FunctionType):
            ran += run_test(value, names, None, name)
    called(names.get("teardown_module"), module)
    if ran == 0:
        raise NotCovered("a suite in which no test is run")


def run_cases(case: type[unittest.TestCase]) -> int:
    """Tests of a `TestCase`; the first failure is raised as it was."""
    result = Recorder()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    if result.first is not None:
        raise result.first
    return result.testsRun - len(result.skipped)


class Recorder(unittest.TestResult):
    """Keeps the exception itself, which the class it extends turns into text."""

    def __init__(self) -> None:
        super().__init__()
        self.first: BaseException | None = None
        self.failfast = True

    def keep(self, error: Any) -> None:
        self.first = self.first or error[1]
        self.stop()

    def addError(self, test: Any, err: Any) -> None:
        self.keep(err)

    def addFailure(self, test: Any, err: Any) -> None:
        self.keep(err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.keep(err)

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.keep((None, AssertionError("passed, where it was expected to fail"), None))


def run_test(function: Any, names: dict[str, Any], owner: type | None, name: str) -> int:
    """Run a test with each of its parameters; how many runs that were."""
    if inspect.iscoroutinefunction(function):
        raise NotCovered("an async test")
    marks = [*(vars(owner).get("rkgrade_marks", ()) if owner else ()), *vars(function).get("rkgrade_marks", ())]
    for mark, args, keywords in marks:
        if mark == "skip" or (mark == "skipif" and (args[0] if args else keywords["condition"])):
            return 0
    sets = [parameters(*args, **keywords) for mark, args, keywords in marks if mark == "parametrize"]
    ran = 0
    for chosen in itertools.product(*sets):
        given = {key: value for one in chosen for key, value in one.items()}
        try:
            run_once(function, given, names, owner, name)
            ran += 1
        except (Skipped, unittest.SkipTest):
            continue
    return ran


def parameters(argnames: Any, argvalues: Any, **keywords: Any) -> list[dict[str, Any]]:
    if "indirect" in keywords:
        raise NotCovered("pytest.mark.parametrize(indirect=...)")
    wanted = [one.strip() for one in argnames.split(",") if one.strip()] if isinstance(argnames, str) else argnames
    rows = []
    for row in argvalues:
        values = row.values if isinstance(row, Param) else row if len(wanted) > 1 else (row,)
        rows.append(dict(zip(wanted, values, strict=True)))
    return rows


def run_once(function: Any, given: dict[str, Any], names: dict[str, Any], owner: type | None, name: str) -> None:
    instance = None if owner is None else owner()
    test = function if instance is None else getattr(instance, name)
    fixtures = Fixtures(names, instance, dict(given))
    if owner is None:
        called(names.get("setup_function"), test)
    else:
        called(getattr(instance, "setup_method", None) or getattr(instance, "setup", None), test)
    try:
        fixtures.make_automatic()
        test(**{one: fixtures.value(one) for one in arguments(test)})
    finally:
        fixtures.close()
        if owner is None:
            called(names.get("teardown_function"), test)
        else:
            called(getattr(instance, "teardown_method", None) or getattr(instance, "teardown", None), test)


def arguments(function: Any) -> list[str]:
    """Names of the parameters without a default."""
    given = inspect.signature(function).parameters.values()
    return [one.name for one in given if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]


def called(function: Any, *args: Any) -> None:
    """Call a hook, which may or may not want to know of what."""
    if function is not None:
        function(*args[: len(arguments(function))])


class Fixtures:
    """Fixtures of one run of a test, each made when it is first asked for."""

    def __init__(self, names: dict[str, Any], instance: object, values: dict[str, Any]) -> None:
        self.values = values
        self.open: list[Iterator[Any]] = []
        self.makers: dict[str, tuple[Callable[..., Any], bool]] = {}
        own = [] if instance is None else [getattr(instance, name) for name in dir(instance) if name[:2] != "__"]
        for maker in (*names.values(), *own):
            if isinstance(maker, (types.FunctionType, types.MethodType)) and hasattr(maker, "rkgrade_fixture"):
                name, automatic = maker.rkgrade_fixture
                self.makers[name] = (maker, automatic)

    def make_automatic(self) -> None:
        for name, (_, automatic) in self.makers.items():
            if automatic:
                self.value(name)

    def value(self, name: str) -> Any:
        if name not in self.values:
            if name in self.makers:
                self.values[name] = self.made(self.makers[name][0])
            elif name == "tmp_path":
                self.values[name] = pathlib.Path(tempfile.mkdtemp())
            else:
                raise NotCovered(f"the fixture {name}")
        return self.values[name]

    def made(self, maker: Callable[..., Any]) -> Any:
        made = maker(**{one: self.value(one) for one in arguments(maker)})
        if inspect.isgeneratorfunction(maker):
            self.open.append(made)
            return next(made)
        return made

    def close(self) -> None:
        for one in reversed(self.open):
            next(one, None)
