"""Plain data: what a called function's result is made of before it is written as JSON.

None, booleans, integers of any size, floats, strings, lists, tuples (handed out as lists) and dicts; keys are written
as strings, as JSON has no others. Values of subclasses and of numpy's scalar types count as values of those types. Asks
nothing of a subclass, which may have bent whatever its base does.
"""

from __future__ import annotations

import builtins
import sys
from _json import encode_basestring, make_encoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

#: What functions of this module find builtin names in: a copy, whatever a program does to the original.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]

MODULE = "solution"

#: As deep as JSON from outside may be nested: what is deeper cannot have been expected.
MAX_DEPTH = 200

SCALARS = frozenset({type(None), bool, int, float, str})


class NotPlain(Exception):
    """A result that is no plain data; says what it is."""


def refuse(value: object) -> NoReturn:
    """For what the encoder does not know: its type passed for another, as a metaclass can make it."""
    raise NotPlain(type_name(type(value)))


write = make_encoder(None, refuse, encode_basestring, None, ":", ",", False, False, True)


# -- plain data


def plain(value: Any, level: int) -> object:
    """The value made of exact plain types, the same object where it is so already. Raises NotPlain."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if level > MAX_DEPTH:
        raise NotPlain(f"{type_name(kind)} nested more than {MAX_DEPTH} deep")
    if issubclass(kind, (list, tuple)):
        base = list if issubclass(kind, list) else tuple
        # Not through iteration, which a subclass may have changed.
        items: Any = value if kind is base else base.__getitem__(value, slice(None))
        if SCALARS.issuperset(map(type, items)):
            return items
        return [plain(item, level + 1) for item in items]
    if issubclass(kind, dict):
        pairs: Any = dict.items(value)
        written = {key_text(key): plain(item, level + 1) for key, item in pairs}
        if len(written) < len(pairs):
            raise NotPlain("dict with two keys that JSON writes alike")
        return written
    return scalar(value)


def scalar(value: Any) -> object:
    """A value that holds no others as its exact plain type. Raises NotPlain."""
    kind = type(value)
    if kind in SCALARS:
        return value
    for exact in (int, float, str):
        if issubclass(kind, exact):
            # The only way to an exact value that asks nothing of the subclass.
            return exact.__add__(value, exact())  # type: ignore[operator]
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.generic):
        value = value.item()
        if type(value) in SCALARS:
            return value
    raise NotPlain(type_name(kind))


def key_text(key: object) -> str:
    """A dict's key as JSON has it. Raises NotPlain."""
    try:
        key = scalar(key)
    except NotPlain as what:
        raise NotPlain(f"dict with keys of type {what}") from None
    return key if isinstance(key, str) else "".join(write(key, 0))


def type_name(kind: type) -> str:
    return kind.__name__ if kind.__module__ in ("builtins", MODULE) else f"{kind.__module__}.{kind.__name__}"
