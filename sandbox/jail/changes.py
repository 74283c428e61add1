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


#: Keys that are looked up without asking a program whether they are equal.
_PLAIN_KEYS = frozenset({str, int, float, bool, bytes, type(None)})


def restore(here: Any, there: Any) -> None:
    """Make data what there is of them on the other side; what they hold stays the same lists, dicts and sets where it
    can, since somebody may hold one of these, too.
    """
    if here is there or type(here) is not type(there):
        return
    if type(here) is list:
        here[:] = [*map(_restored, here, there), *there[len(here) :]]
    elif type(here) is tuple:
        for old, new in zip(here, there, strict=False):
            _restored(old, new)
    elif isinstance(here, dict):
        now = {
            key: _restored(here[key], new) if type(key) in _PLAIN_KEYS and key in here else new
            for key, new in there.items()
        }
        here.clear()
        here.update(now)
    elif isinstance(here, set):
        here.clear()
        here.update(there)
    elif isinstance(here, (bytearray, collections.deque)):
        here.clear()
        here.extend(there)
    elif (numpy := sys.modules.get("numpy")) is not None and type(here) is numpy.ndarray and here.shape == there.shape:
        here[...] = there


def _restored(old: Any, new: Any) -> Any:
    """What now is in the place of the old."""
    if type(old) is not type(new):
        return new
    if type(old) in (list, dict, set):
        restore(old, new)
        return old
    if type(old) is tuple and len(old) == len(new):
        return tuple(map(_restored, old, new))
    return new
