"""What stands for pytest's `approx`: https://docs.pytest.org/en/stable/reference/reference.html#pytest-approx"""

from __future__ import annotations

import builtins
import collections
import math
from decimal import Decimal
from fractions import Fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RELATIVE, ABSOLUTE = 1e-6, 1e-12


class Approx:
    """Equal to numbers that are near, and to lists, tuples, dicts and arrays of such."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None, nan_ok: bool = False) -> None:
        self.expected, self.nan_ok = expected, nan_ok
        self.relative, self.absolute = rel, abs

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
        if isinstance(expected, (list, tuple, collections.deque)):
            if not isinstance(actual, (list, tuple, collections.deque)) or len(expected) != len(actual):
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
