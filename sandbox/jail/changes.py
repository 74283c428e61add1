"""Making plain data on one side what they have become on the other, in place."""

from __future__ import annotations

import builtins
import collections
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: What functions of this module find builtin names in: a copy, whatever a program does to the original.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]


CHANGEABLE = frozenset(
    {
        list,
        dict,
        set,
        bytearray,
        collections.deque,
        collections.Counter,
        collections.OrderedDict,
        collections.defaultdict,
    }
)


def can_change(value: Any) -> bool:
    """Whether it may become something else in place, on both sides."""
    numpy = sys.modules.get("numpy")
    return type(value) in CHANGEABLE or (numpy is not None and type(value) is numpy.ndarray)


def restore(here: Any, there: Any) -> None:
    """Make data what there is of them on the other side; lists in lists stay the same lists where they can."""
    if here is there or type(here) is not type(there):
        return
    if type(here) is list:
        if len(here) == len(there):
            for index, (old, new) in enumerate(zip(here, there, strict=True)):
                if type(old) in (list, dict, set) and type(old) is type(new):
                    restore(old, new)
                else:
                    here[index] = new
        else:
            here[:] = there
    elif isinstance(here, (dict, set)):
        here.clear()
        here.update(there)
    elif isinstance(here, (bytearray, collections.deque)):
        here.clear()
        here.extend(there)
    elif (numpy := sys.modules.get("numpy")) is not None and type(here) is numpy.ndarray and here.shape == there.shape:
        here[...] = there
