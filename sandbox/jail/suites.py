"""Suites written for pytest, and scripts with a `check(candidate)`, run without pytest.

Covers test functions and `Test` classes, `unittest.TestCase`, set-up and tear-down by name, `raises`, `approx`, `fail`,
`skip`, marks (`parametrize`, `skip`, `skipif`; other names change nothing), and fixtures of the suite's own, made anew
for each test. Of pytest's own fixtures there is `tmp_path`. Anything else is `NotCovered`, by its name, rather than
taken for something it is not. The first test that fails ends the run with its exception.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import pathlib
import re
import tempfile
import types
import unittest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, NoReturn

    from sandbox.jail.approx import Approx
else:
    from approx import Approx

#: Marks whose meaning would be lost.
UNCOVERED_MARKS = ("anyio", "xfail", "usefixtures", "trio")


class NotCovered(BaseException):
    """What a suite needs and does not get here. No `except Exception` is to swallow it."""


class Skipped(BaseException):
    """A test asks not to be run."""


class Failed(BaseException):
    """A test says that it has failed. As in pytest, no `except Exception` of its own is to swallow it."""


# -- check(candidate)


def defines_check(tree: ast.Module) -> bool:
    return any(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "check" for node in tree.body)


def calls_check(tree: ast.Module) -> bool:
    """Whether code outside functions does."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    outside = [node for node in tree.body if not isinstance(node, inner)]
    calls = (node.func for top in outside for node in ast.walk(top) if isinstance(node, ast.Call))
    return any(isinstance(name, ast.Name) and name.id == "check" for name in calls)


def drops_check(tree: ast.Module) -> bool:
    """Whether code outside functions calls it for nothing but that it runs."""
    calls = (node.value for node in tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    return any(isinstance(call.func, ast.Name) and call.func.id == "check" for call in calls)


def yields(function: object) -> bool:
    """Whether a function of the script's, not one of the program's, does: called, it has run nothing yet."""
    generators = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
    return isinstance(function, types.FunctionType) and bool(function.__code__.co_flags & generators)


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
            raise Failed(f"did not raise {self.expected!r}")
        if not issubclass(kind, self.expected):
            return False
        self.type, self.value = kind, error
        if self.pattern is not None:
            self.match(self.pattern)
        return True

    def __repr__(self) -> str:
        return f"<ExceptionInfo {self.value!r}>"

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
    raise Failed(reason)


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


def without_patching(refuse: Callable[[], NoReturn]) -> None:
    """`unittest.mock.patch` is refused: it replaces things here, and the program has others."""
    mock: Any = importlib.import_module("unittest.mock")
    mock._patch.__enter__ = mock._patch_dict._patch_dict = lambda *_: refuse()


# -- running


def set_equal(case: unittest.TestCase, first: Any, second: Any, msg: Any = None) -> None:
    """`assertSetEqual`, of sets alone: unittest's has whatever they are say its `difference` from the other."""
    for one in (first, second):
        case.assertIsInstance(one, (set, frozenset), msg)
    if first != second:
        case.fail(case._formatMessage(msg, f"{first!r} != {second!r}"))


unittest.TestCase.assertSetEqual = set_equal  # type: ignore[method-assign, assignment]


def run(module: types.ModuleType) -> None:
    """Run every test of the module. Raises what the first failing one raised, and NotCovered."""
    names = vars(module)
    ran = 0
    called(names.get("setup_module"), module)
    for name, value in list(names.items()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase):
            if value.__module__ == module.__name__:
                ran += run_cases(value)
        elif is_test_class(name, value):
            ran += run_class(value, names)
        elif is_test(name, value):
            ran += run_test(value, names, None, name)
    called(names.get("teardown_module"), module)
    if ran == 0:
        raise NotCovered("a suite in which no test is run")


def is_test_class(name: str, value: object) -> bool:
    return isinstance(value, type) and name[:4] == "Test" and "__init__" not in vars(value)


def is_test(name: str, value: object) -> bool:
    """A function by that name, or what wraps one, that is no fixture."""
    if is_fixture(value):
        return False
    while isinstance(value, functools.partial):
        value = value.func
    return name[:4] == "test" and callable(value) and isinstance(inspect.unwrap(value), types.FunctionType)


def is_fixture(value: object) -> bool:
    return isinstance(value, (types.FunctionType, types.MethodType)) and hasattr(value, "rkgrade_fixture")


def run_class(owner: type, names: dict[str, Any], within: tuple[type, ...] = ()) -> int:
    """Tests of a class, and of classes in it, `within` which it is itself."""
    ran = 0
    within = (*within, owner)
    called(getattr(owner, "setup_class", None))
    for name in dir(owner):
        inner = getattr(owner, name)
        if is_test_class(name, inner):
            ran += 0 if inner in within else run_class(inner, names, within)
        elif name[:4] == "test" and callable(inner) and not is_fixture(inner):
            ran += run_test(inner, names, owner, name)
    called(getattr(owner, "teardown_class", None))
    return ran


def run_cases(case: type[unittest.TestCase]) -> int:
    """Tests of a `TestCase`; the first failure is raised as it was."""
    result = Recorder()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    if result.first is not None:
        raise result.first
    return result.ran


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


def run_test(function: Any, names: dict[str, Any], owner: type | None, name: str) -> int:
    """Run a test with each of its parameters; how many runs that were."""
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
        finished(test(**{one: fixtures.value(one) for one in arguments(test)}), "a test")
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
    """Call a hook, which may or may not want to know of what. A fixture by a hook's name is none."""
    if function is not None and not is_fixture(function):
        finished(function(*args[: len(arguments(function))]), "a set-up or tear-down")


def finished(given: Any, what: str) -> None:
    """See a call to its end, be it a coroutine's. Raises NotCovered for a generator: of that nothing has run."""
    if inspect.iscoroutine(given):
        importlib.import_module("asyncio").run(given)
    elif type(given) in (types.GeneratorType, types.AsyncGeneratorType):
        raise NotCovered(f"{what} that yields")


class Fixtures:
    """Fixtures of one run of a test, each made when it is first asked for."""

    def __init__(self, names: dict[str, Any], instance: object, values: dict[str, Any]) -> None:
        self.values = values
        self.open: list[Iterator[Any]] = []
        self.makers: dict[str, tuple[Callable[..., Any], bool]] = {}
        own = [] if instance is None else [getattr(instance, name) for name in dir(instance) if name[:2] != "__"]
        for maker in (*names.values(), *own):
            if is_fixture(maker):
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
        if inspect.iscoroutinefunction(maker) or inspect.isasyncgenfunction(maker):
            raise NotCovered("an async fixture")
        made = maker(**{one: self.value(one) for one in arguments(maker)})
        if inspect.isgeneratorfunction(maker):
            self.open.append(made)
            return next(made)
        return made

    def close(self) -> None:
        for one in reversed(self.open):
            next(one, None)
