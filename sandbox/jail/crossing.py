"""What crosses between a test script and the program it tests, which run in two cells: frames of JSON on pipes.

Plain data keep their types: JSON's own as they are, all others as an object with one key, which names the type. What is
no plain data is for the two sides to say (`special`): an object stays where it is, and a reference to it crosses. The
reader takes nothing but what the writer can have written; anything else is `Outside`. Used on both sides, by either
cell's own interpreter.
"""

from __future__ import annotations

import builtins
import collections
import datetime
import json
import os
import re
import sys
from decimal import Decimal
from fractions import Fraction

TYPE_CHECKING = False  # As in `typing`, which neither side needs.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: What functions of this module find builtin names in: a copy, whatever a program does to the original.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]

#: Nested deeper than this nothing crosses: of what the program makes; of the test's arguments, as the program has
#: changed them; of what the test makes, be it of these. So no program has the test hand it more than can cross.
MAX_DEPTH = 150
MAX_CHANGED_DEPTH = 300
MAX_TEST_DEPTH = 450

#: One frame; with what its JSON becomes in memory, a small part of what the script's cell may hold.
MAX_FRAME_BYTES = 16 * 2**20

SCALARS = frozenset({type(None), bool, int, float, str})
ITEMS: dict[type, str] = {
    list: "list",
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
    collections.deque: "deque",
}
PAIRS: dict[type, str] = {
    dict: "dict",
    collections.Counter: "Counter",
    collections.OrderedDict: "OrderedDict",
    collections.defaultdict: "defaultdict",
}
ITEM_TYPES = {name: kind for kind, name in ITEMS.items()}
PAIR_TYPES: dict[str, Any] = {name: kind for kind, name in PAIRS.items()}

#: Types that cross as such, by name: what functions are given to convert to, and what `isinstance` is asked about.
TYPES = {kind.__name__: kind for kind in (*SCALARS, *ITEMS, *PAIRS, object, complex, bytes, bytearray, range)}

#: Modules of the library's that a script may use, and types in them, without importing them, because the program does.
LENT = frozenset(
    "bisect cmath collections copy datetime decimal fractions functools heapq itertools json math numpy operator "
    "random re statistics string typing".split()
)

#: Other names by which such modules are known.
ALSO_CALLED = {"np": "numpy"}

#: Of the floating, integer, boolean and complex kinds, and text: arrays whose items are plain.
ARRAY_KINDS = frozenset("biufcU")

#: Items of an array, as numpy names their type: byte order, kind, size.
ARRAY_ITEM = re.compile(r"[<>|=]([biufcU])([0-9]{1,8})")

#: What an array may hold, however short the text that it is made of.
MAX_ARRAY_BYTES = 4 * MAX_FRAME_BYTES

#: Integers from here on cross in hexadecimals: neither is their reading slow, nor is their length limited.
MOST_IN_JSON = 10**4000

#: Of items of a set, or keys of a dict, that have the same hash: a table of n such takes n * n / 2 comparisons. Of
#: powers of two each 61st has the same.
MAX_COLLISIONS = 256


class NotPlain(Exception):
    """No plain data, and nothing that could cross in its place; says what it is."""


class Outside(Exception):
    """What came is none of the protocol."""


class Gone(Exception):
    """The other side has closed its end."""


def is_lent(whence: str, name: str) -> bool:
    """Whether a script that says `name` means what is found in the library at "math" or "typing.List".

    Under its own name only. A program could otherwise have the script call, in place of a function of the program's,
    what harms the script: `typing.get_type_hints` evaluates texts that an argument holds, `numpy.memmap` opens files.
    """
    module, _, inner = whence.partition(".")
    return module in LENT and name in (inner or module, *(other for other, of in ALSO_CALLED.items() if of == whence))


def is_known(kind: type) -> bool:
    """Whether it is a builtin type that both sides call by its name: of plain data, or an exception."""
    name = kind.__name__
    known = getattr(builtins, name, None) is kind and (name in TYPES or issubclass(kind, BaseException))
    return known and kind.__module__ == "builtins"


def frame(message: object) -> bytes:
    """Raises NotPlain where it is too long."""
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(data) > MAX_FRAME_BYTES:
        raise NotPlain(f"data of more than {MAX_FRAME_BYTES // 2**20} MiB")
    return len(data).to_bytes(4, "big") + data


def size(header: bytes) -> int:
    """Of the frame that such four bytes begin. Raises Outside."""
    length = int.from_bytes(header, "big")
    if length > MAX_FRAME_BYTES:
        raise Outside("a frame that is too long")
    return length


def message(data: bytes) -> dict[str, Any]:
    """Raises Outside."""
    try:
        read = json.loads(data)
    except (ValueError, RecursionError):
        raise Outside("no JSON") from None
    if not isinstance(read, dict):
        raise Outside("no object")
    return read


def receive(fd: int) -> dict[str, Any]:
    """The next message, waiting for it. Raises Gone, Outside."""
    return message(read_exactly(fd, size(read_exactly(fd, 4))))


def read_exactly(fd: int, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = os.read(fd, min(length - len(data), 1 << 20))
        if not part:
            raise Gone
        data += part
    return bytes(data)


def encode(value: Any, special: Callable[[Any], object], left: int = MAX_DEPTH) -> object:
    """The value for a message. `special` says what crosses in place of what is no plain data. Raises NotPlain.

    By exact types, and no more than `left` levels deep: a subclass may bend whatever its base does.
    """
    kind: Any = type(value)
    if kind in SCALARS:
        return {"int": hex(value)} if kind is int and not -MOST_IN_JSON < value < MOST_IN_JSON else value
    if left < 0:
        raise NotPlain(f"{kind.__name__} nested too deep")
    if kind is list:
        return [encode(item, special, left - 1) for item in value]
    if (name := ITEMS.get(kind)) is not None:
        return {name: [encode(item, special, left - 1) for item in value]}
    if (name := PAIRS.get(kind)) is not None:
        inner = left - 1
        pairs = [[encode(key, special, inner), encode(item, special, inner)] for key, item in value.items()]
        if kind is not collections.defaultdict:
            return {name: pairs}
        made_by: Any = getattr(value.default_factory, "__name__", None)
        return {name: [made_by if TYPES.get(made_by) is value.default_factory else None, pairs]}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if kind in (bytes, bytearray):
        return {kind.__name__: value.decode("latin-1")}
    if kind is range:
        return {"range": [value.start, value.stop, value.step]}
    if kind is slice:
        return {"slice": [encode(one, special, left - 1) for one in (value.start, value.stop, value.step)]}
    if kind is Decimal:
        return {"Decimal": str(value)}
    if kind is Fraction:
        return {"Fraction": [value.numerator, value.denominator]}
    if kind is datetime.date:
        return {"date": [value.year, value.month, value.day]}
    if kind is datetime.time and value.tzinfo is None:
        return {"time": [value.hour, value.minute, value.second, value.microsecond]}
    if kind is datetime.datetime and type(value.tzinfo) in (type(None), datetime.timezone):
        zone = [] if value.tzinfo is None else [value.utcoffset() // datetime.timedelta(microseconds=1)]
        day = [value.year, value.month, value.day]
        return {"datetime": [*day, value.hour, value.minute, value.second, value.microsecond, *zone]}
    if kind is datetime.timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if issubclass(kind, type) and TYPES.get(name := value.__name__) is value:
        return {"type": name}
    pathlib = sys.modules.get("pathlib")
    if pathlib is not None and kind is pathlib.PosixPath:
        return {"path": str(value)}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if kind is numpy.ndarray and value.dtype.kind in ARRAY_KINDS:
            shape = list(value.shape)
            return {"array": [value.dtype.str, shape, encode(value.ravel().tolist(), special, left - 1)]}
        if issubclass(kind, numpy.generic) and value.dtype.kind in ARRAY_KINDS:
            return encode(value.item(), special, left - 1)
    return special(value)


def decode(data: Any, special: Callable[[str, Any], Any], left: int = MAX_DEPTH) -> Any:
    """The value that was encoded; `special` is given the names that are none of plain data. Raises Outside."""
    if type(data) in SCALARS:
        return data
    if left < 0:
        raise Outside("nested too deep")
    if type(data) is list:
        return [decode(item, special, left - 1) for item in data]
    if len(data) != 1:
        raise Outside("an object of several keys")
    ((name, inner),) = data.items()
    try:
        if name in ITEM_TYPES:
            items = [decode(item, special, left - 1) for item in needed(list, inner)]
            return ITEM_TYPES[name](spread(items) if name in ("set", "frozenset") else items)
        if name in PAIR_TYPES:
            made = PAIR_TYPES[name]()
            if name == "defaultdict":
                made_by, inner = inner
                made.default_factory = None if made_by is None else TYPES[made_by]
            pairs = [
                (decode(key, special, left - 1), decode(item, special, left - 1)) for key, item in needed(list, inner)
            ]
            spread([key for key, _ in pairs])
            for key, item in pairs:
                made[key] = item
            return made
        if name in ("bytes", "bytearray"):
            return TYPES[name](needed(str, inner).encode("latin-1"))
        if name == "int":
            return int(needed(str, inner), 16)
        if name == "slice":
            start, stop, step = (decode(one, special, left - 1) for one in needed(list, inner))
            return slice(start, stop, step)
        if name == "path":
            return __import__("pathlib").Path(needed(str, inner))
        if name == "Decimal":
            return Decimal(needed(str, inner))
        if name == "type" and needed(str, inner) in TYPES:
            return TYPES[inner]
        if name == "complex":
            return complex(*(needed(float, part) for part in inner))
        if name == "array":
            code, shape, items = inner
            return array(needed(str, code), needed(list, shape), decode(needed(list, items), special, left - 1))
        if name in NUMBERS:
            return NUMBERS[name](*(needed(int, part) for part in inner))
    except Outside:
        raise
    except Exception as error:
        # Unhashable keys, dates that are none, names of no type: nothing that was encoded.
        raise Outside(f"no {name}: {type(error).__name__}") from None
    return special(name, inner)


def timezone(offset_us: int) -> datetime.timezone:
    return datetime.timezone(datetime.timedelta(microseconds=offset_us))


NUMBERS: dict[str, Callable[..., object]] = {
    "range": range,
    "Fraction": Fraction,
    "date": datetime.date,
    "datetime": lambda *parts: datetime.datetime(*parts[:7], *map(timezone, parts[7:])),
    "time": datetime.time,
    "timedelta": lambda days, seconds, microseconds: datetime.timedelta(days, seconds, microseconds),
}


def needed(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise Outside(f"no {kind.__name__}")
    return value


def spread(keys: list[Any]) -> list[Any]:
    """Keys that make no table slow: no honest program's do. Raises Outside."""
    if len(keys) > MAX_COLLISIONS:
        shared = collections.Counter(map(hash, keys))
        if max(shared.values()) > MAX_COLLISIONS:
            raise Outside("keys of one hash")
    return keys


def array(code: str, shape: list[Any], values: list[Any]) -> object:
    """An array of numpy's, where that is to be had; a list elsewhere. Raises Outside."""
    item = ARRAY_ITEM.fullmatch(code)
    if item is None:
        raise Outside("an array of other kinds")
    if int(item[2]) * (4 if item[1] == "U" else 1) * len(values) > MAX_ARRAY_BYTES:
        raise Outside("an array that is too large")
    try:
        numpy = __import__("numpy")
    except ImportError:
        return values
    return numpy.array(values, dtype=code).reshape([needed(int, length) for length in shape])
