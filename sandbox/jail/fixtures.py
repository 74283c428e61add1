"""Fixtures of a suite's own, `request` and `tmp_path`: each is made when it is first asked for, once in its scope."""

from __future__ import annotations

import contextlib
import inspect
import pathlib
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

    from sandbox.jail.outcomes import NotCovered
    from sandbox.jail.pytest_api import is_fixture
else:
    from outcomes import NotCovered
    from pytest_api import is_fixture

#: From the one that lasts longest; what is above a module is as good as the module, which is all there is.
SCOPES = ("session", "package", "module", "class", "function")


class Scope(contextlib.ExitStack):
    """Fixtures of one module, class or test, and what is to be done at its end."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[tuple[str, int], Any] = {}


class Makers:
    """Fixtures in reach of a test: those of the module, and over them those of the class."""

    def __init__(self, names: dict[str, Any], owner: type | None = None) -> None:
        self.found: dict[str, Any] = {}
        self.automatic: list[str] = []
        self.of_class: dict[str, str] = {}
        """Names of attributes of the class, by the fixtures'."""
        for value in names.values():
            self.add(value)
        for attribute, value in members(owner) if owner else ():
            function = getattr(value, "__func__", value)
            if self.add(function):
                self.of_class[function.rkgrade_fixture.name] = attribute

    def add(self, value: Any) -> bool:
        if not is_fixture(value):
            return False
        declared = value.rkgrade_fixture
        self.found[declared.name] = value
        if declared.autouse:
            self.automatic.append(declared.name)
        return True

    def asked_for(self, names: Iterable[str]) -> list[str]:
        """These, and what is asked for to make them."""
        reached: dict[str, None] = {}
        left = list(names)
        while left:
            name = left.pop()
            if name not in reached:
                reached[name] = None
                left += arguments(self.found[name]) if name in self.found else ()
        return list(reached)


class Fixtures:
    """Fixtures of one run of a test."""

    def __init__(self, makers: Makers, instance: Any, scopes: dict[str, Scope], request: dict[str, Any]) -> None:
        """`scopes` by "module", "class" and "function"; `request` is what `request` tells."""
        self.makers, self.instance, self.scopes, self.about = makers, instance, scopes, request
        self.values: dict[str, Any] = {}
        """Those that the test is given by `parametrize`."""
        self.params: dict[str, int] = {}
        """Which of its params each fixture that has some is to get."""
        self.being_made: list[str] = []

    def make_automatic(self, *, of_class: bool) -> None:
        """Those that last longest first."""
        names = [name for name in self.makers.automatic if (name in self.makers.of_class) == of_class]
        for name in sorted(names, key=lambda one: SCOPES.index(self.makers.found[one].rkgrade_fixture.scope)):
            self.value(name)

    def value(self, name: str) -> Any:
        if name in self.values:
            return self.values[name]
        if name == "request":
            return Request(self, None, self.scopes["function"])
        maker = self.makers.found.get(name)
        if maker is None and name != "tmp_path":
            raise NotCovered(f"the fixture {name}")
        scope = self.scopes[{"class": "class", "function": "function"}.get(declared_scope(maker), "module")]
        key = (name, self.params.get(name, 0))
        if key not in scope.values:
            made = pathlib.Path(tempfile.mkdtemp()) if maker is None else self.made(name, maker, scope)
            scope.values[key] = made
        return scope.values[key]

    def made(self, name: str, maker: Any, scope: Scope) -> Any:
        if inspect.iscoroutinefunction(maker) or inspect.isasyncgenfunction(maker):
            raise NotCovered("an async fixture")
        if name in self.being_made:
            raise NotCovered(f"the fixture {name}, made from one by its own name")
        function = getattr(self.instance, self.makers.of_class[name]) if name in self.makers.of_class else maker
        self.being_made.append(name)
        try:
            given = {
                one: Request(self, name, scope) if one == "request" else self.value(one) for one in arguments(function)
            }
        finally:
            self.being_made.pop()
        made = function(**given)
        if inspect.isgenerator(made) and inspect.isgeneratorfunction(maker):
            value = next(made)
            scope.callback(next, made, None)
            return value
        return made


class Request:
    """`request`, as a fixture or a test is given it."""

    def __init__(self, fixtures: Fixtures, name: str | None, scope: Scope) -> None:
        self.fixturename = name
        self.getfixturevalue = fixtures.value
        self.addfinalizer = scope.callback
        vars(self).update(fixtures.about)
        declared = None if name is None else fixtures.makers.found[name].rkgrade_fixture
        if declared is not None:
            self.scope = declared.scope
            if declared.params is not None and name is not None:
                self.param = declared.params[fixtures.params[name]]

    def __getattr__(self, name: str) -> NoReturn:
        if name[:2] == "__" or name == "param":
            raise AttributeError(name)
        raise NotCovered(f"request.{name}")


def declared_scope(maker: Any) -> str:
    return "function" if maker is None else str(maker.rkgrade_fixture.scope)


def members(owner: type) -> list[tuple[str, Any]]:
    """What a class holds, in the order of its definition; what it inherits comes first, as pytest has it."""
    seen: set[str] = set()
    by_class: list[list[tuple[str, Any]]] = []
    for one in owner.__mro__:
        if one is not object:
            by_class.append([(name, value) for name, value in vars(one).items() if name not in seen])
            seen |= vars(one).keys()
    return [member for found in reversed(by_class) for member in found]


def arguments(function: Any) -> list[str]:
    """Names of the parameters without a default."""
    given = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [one.name for one in given if one.default is one.empty and one.kind in kinds]
