"""What stands for pytest in a suite: https://docs.pytest.org/en/stable/reference/reference.html

`raises`, `approx`, `fail`, `skip`, `importorskip`, `param`, `fixture` and marks. Any other name is `NotCovered`, rather
than taken for something it is not.
"""

from __future__ import annotations

import importlib
import re
import traceback
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from sandbox.jail.approx import Approx
    from sandbox.jail.outcomes import Failed, NotCovered, Skipped
else:
    from approx import Approx
    from outcomes import Failed, NotCovered, Skipped

#: Marks whose meaning would be lost.
UNCOVERED_MARKS = ("anyio", "trio")


class Raises:
    """`raises` as a context, and what it hands out."""

    def __init__(self, expected: type[BaseException] | tuple[type[BaseException], ...], match: str | None) -> None:
        self.expected = expected
        self.pattern = match
        self.type: type[BaseException] | None = None
        self.value: Any = None
        self.tb: types.TracebackType | None = None

    def __enter__(self) -> Raises:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
        if kind is None:
            raise Failed(f"did not raise {self.expected!r}")
        if not issubclass(kind, self.expected):
            return False
        self.type, self.value, self.tb = kind, error, trace
        if self.pattern is not None:
            self.match(self.pattern)
        return True

    def __repr__(self) -> str:
        return f"<ExceptionInfo {self.value!r}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name[:2] == "__":
            raise AttributeError(name)
        raise NotCovered(f"{name} of what pytest.raises gives")

    @property
    def typename(self) -> str:
        return self.type.__name__ if self.type is not None else ""

    def exconly(self, tryshort: bool = False) -> str:
        return "".join(traceback.format_exception_only(self.value)).rstrip()

    def errisinstance(self, kinds: Any) -> bool:
        return isinstance(self.value, kinds)

    def match(self, pattern: str) -> bool:
        if not re.search(pattern, str(self.value)):
            raise AssertionError(f"{pattern!r} does not match {str(self.value)!r}")
        return True


def raises(expected_exception: Any, *call: Any, match: str | None = None, **keywords: Any) -> Raises:
    context = Raises(expected_exception, match)
    if call:
        with context:
            call[0](*call[1:], **keywords)
    elif keywords:
        raise NotCovered(f"pytest.raises({next(iter(keywords))}=...)")
    return context


class Mark:
    """`pytest.mark.name`, with what it was given. Called with a function or a class alone it marks that."""

    def __init__(self, name: str, args: tuple[Any, ...] = (), keywords: dict[str, Any] | None = None) -> None:
        self.name, self.args, self.keywords = name, args, keywords or {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if len(args) == 1 and not keywords and callable(args[0]) and getattr(args[0], "__name__", "") != "<lambda>":
            target: Any = args[0]
            target.rkgrade_marks = [*vars(target).get("rkgrade_marks", ()), self]
            return target
        return Mark(self.name, self.args + args, self.keywords | keywords)


class Marks:
    def __getattr__(self, name: str) -> Mark:
        if name in UNCOVERED_MARKS:
            raise NotCovered(f"pytest.mark.{name}")
        return Mark(name)


def marks_of(target: Any) -> list[Mark]:
    """Those of a function, a module, or a class and the classes that it is made from."""
    found: list[Mark] = []
    for one in target.__mro__ if isinstance(target, type) else (target,):
        names = vars(one) if hasattr(one, "__dict__") else {}
        whole = names.get("pytestmark", ())
        found += [*names.get("rkgrade_marks", ()), *(whole if isinstance(whole, (list, tuple)) else (whole,))]
    return found


class Param:
    def __init__(self, *values: Any, id: str | None = None, marks: Any = ()) -> None:
        self.values = values
        self.marks: list[Mark] = list(marks) if isinstance(marks, (list, tuple)) else [marks]


class Fixture:
    """How a fixture was declared."""

    def __init__(self, name: str, autouse: bool, scope: str, params: list[Any] | None) -> None:
        self.name, self.autouse, self.scope, self.params = name, autouse, scope, params


def fixture(
    function: Any = None,
    *,
    scope: Any = "function",
    params: Any = None,
    autouse: bool = False,
    ids: Any = None,
    name: str | None = None,
) -> Any:
    if callable(scope):
        raise NotCovered("a fixture whose scope is a function")

    def make(target: Any) -> Any:
        declared = Fixture(name or target.__name__, autouse, scope, None if params is None else list(params))
        target.rkgrade_fixture = declared
        return target

    return make if function is None else make(function)


def is_fixture(value: object) -> bool:
    """By its exact type: what stands for the program's functions passes for one where `isinstance` is asked."""
    return type(value) in (types.FunctionType, types.MethodType) and hasattr(value, "rkgrade_fixture")


def fail(reason: str = "", pytrace: bool = True) -> None:
    raise Failed(reason)


def skip(reason: str = "", **_: Any) -> None:
    raise Skipped(reason)


def importorskip(modname: str, *_: Any, **__: Any) -> types.ModuleType:
    try:
        return importlib.import_module(modname)
    except ImportError:
        raise NotCovered(f"the module {modname}") from None


def pytest_module() -> types.ModuleType:
    module = types.ModuleType("pytest")
    vars(module).update(
        raises=raises,
        approx=Approx,
        mark=Marks(),
        param=Param,
        fixture=fixture,
        fail=fail,
        skip=skip,
        importorskip=importorskip,
        __path__=[],
    )

    def missing(name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        raise NotCovered(f"pytest.{name}")

    module.__getattr__ = missing  # type: ignore[method-assign]
    return module
