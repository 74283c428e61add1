"""Functions and iterators of a test script's that the program was given, by the numbers under which it calls them."""

from __future__ import annotations

from types import FunctionType, MethodType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Types of functions that the program may give back as they are.
FUNCTIONS = (FunctionType, MethodType)


class Callbacks:
    def __init__(self) -> None:
        self._functions: list[Callable[..., Any]] = []
        self._numbers: dict[Any, int] = {}

    def written(self, value: Any) -> object:
        """What crosses in place of an iterator or of what can be called; None for anything else."""
        if hasattr(type(value), "__next__") and not hasattr(value, "read"):
            # Items come one by one, as the program asks for them; none is the end.
            return {"iterator": self._add(lambda: [one for _, one in zip(range(1), value, strict=False)])}
        if not callable(value):
            return None
        # As a decorator passes them on.
        told = [getattr(value, name, None) for name in ("__name__", "__doc__")]
        words = [one if type(one) is str else None for one in told]
        return {"function": [self._number(value), *words, type(value) in FUNCTIONS]}

    def _add(self, function: Callable[..., Any]) -> int:
        self._functions.append(function)
        return len(self._functions) - 1

    def _number(self, function: Callable[..., Any]) -> int:
        """The same for the same function or method: the program may be told to forget one that it was given."""
        key: Any = function if type(function) in FUNCTIONS else id(function)
        if key not in self._numbers:
            self._numbers[key] = self._add(function)
        return self._numbers[key]

    def get(self, number: object) -> Callable[..., Any] | None:
        """None where there is none by that number."""
        return self._functions[number] if type(number) is int and 0 <= number < len(self._functions) else None

    def given_back(self, number: object) -> Callable[..., Any] | None:
        """The script's own again; None where it cannot be."""
        function = self.get(number)
        return function if type(function) in FUNCTIONS and self._numbers.get(function) == number else None
