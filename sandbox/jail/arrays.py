"""numpy's comparisons in a test script: what has items is not like what has none.

numpy stretches a scalar, and what has one item, to the shape of whatever it is compared with, be that empty; and of no
items at all, all are near. The suites of HumanEval+ and MBPP+ ask `allclose` about floats without a look at what they
were given: `[]` would be the answer to every such question.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Scalars that numpy takes for weaker than its own.
NUMBERS = (bool, int, float, complex)


def compare_something(source: bytes) -> None:
    """From now on. What the script does not name is not imported for it."""
    if re.search(rb"\b(np|numpy)\b", source) is None:
        return
    with contextlib.suppress(ImportError):
        if re.search(rb"\b(isclose|allclose|array_equiv)\b", source):
            numpy: Any = importlib.import_module("numpy")
            numpy.isclose = of_something(numpy, numpy.isclose, lambda: numpy.array([False]))
            numpy.allclose = of_something(numpy, numpy.allclose, lambda: False)
            numpy.array_equiv = of_something(numpy, numpy.array_equiv, lambda: False)
        if re.search(rb"\btesting\b", source):
            # Which all of its functions for arrays come to.
            testing: Any = importlib.import_module("numpy.testing._private.utils")
            testing.assert_array_compare = asserting_something(testing.np, testing.assert_array_compare)


def of_something(numpy: Any, compare: Callable[..., Any], unlike: Callable[[], Any]) -> Callable[..., Any]:
    @functools.wraps(compare)
    def compared(a: Any, b: Any, *args: Any, **keywords: Any) -> Any:
        # Made arrays once: an object of the program's could give other items the next time.
        a, b = (one if isinstance(one, NUMBERS) else numpy.asanyarray(one) for one in (a, b))
        return unlike() if one_is_empty(numpy, a, b) else compare(a, b, *args, **keywords)

    return compared


def asserting_something(numpy: Any, compare: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(compare)
    def compared(comparison: Any, x: Any, y: Any, *args: Any, **keywords: Any) -> None:
        x, y = (numpy.asanyarray(one) for one in (x, y))
        if one_is_empty(numpy, x, y):
            raise AssertionError("Arrays of which one is empty")
        compare(comparison, x, y, *args, **keywords)

    return compared


def one_is_empty(numpy: Any, a: Any, b: Any) -> bool:
    return bool((numpy.size(a) == 0) != (numpy.size(b) == 0))
