"""native.c, called: two texts compared where they lie in memory, whatever they hold.

`load` comes first, once a process, with the library that `sandbox.prebuilt` made of it. Knows nothing of verdicts or
messages; what each walk takes for equal is said in `sandbox.checkers.compare`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from sandbox.checkers.numbers import Tolerance
from sandbox.errors import HostError

#: No character from here on is a decimal digit in any script.
DIGITS_END = 0x20000

_POINTER, _SIZE, _BOOL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool


class _Place(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("got_start", "got_end", "want_start", "want_end")]


class _Tolerance(ctypes.Structure):
    _fields_ = [
        ("absolute", ctypes.c_double),
        ("relative", ctypes.c_double),
        ("absolute_digits", ctypes.c_int64),
        ("absolute_exponent", ctypes.c_int64),
        ("relative_digits", ctypes.c_int64),
        ("relative_exponent", ctypes.c_int64),
    ]


class _Buffer(ctypes.Structure):
    """Py_buffer, part of Python's stable ABI."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_void_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get_buffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int)(
    ("PyObject_GetBuffer", ctypes.pythonapi)
)
_release_buffer = ctypes.PYFUNCTYPE(None, ctypes.POINTER(_Buffer))(("PyBuffer_Release", ctypes.pythonapi))

_SIGNATURES = {
    "common_prefix": (_SIZE, (_POINTER, _POINTER, _SIZE, _BOOL)),
    "within": (_BOOL, (_POINTER, _SIZE, _POINTER, _SIZE, ctypes.POINTER(_Tolerance))),
    "tokens_part": (
        _BOOL,
        (_POINTER, _SIZE, _POINTER, _SIZE, _BOOL, ctypes.POINTER(_Tolerance), ctypes.POINTER(_Place)),
    ),
    "lines_part": (_BOOL, (_POINTER, _SIZE, _POINTER, _SIZE, ctypes.POINTER(_Place))),
    "lcb_parts": (_BOOL, (_POINTER, _SIZE, _POINTER, _SIZE, ctypes.c_char_p, ctypes.POINTER(_Place))),
    "plain_part": (
        _BOOL,
        (
            *(_POINTER, _SIZE, _POINTER, _SIZE, _SIZE, _SIZE),
            *(_BOOL, ctypes.POINTER(_Tolerance), ctypes.POINTER(_Place)),
        ),
    ),
    "count_tokens": (_SIZE, (_POINTER, _SIZE)),
    "count_newlines": (_SIZE, (_POINTER, _SIZE)),
}

_loaded: ctypes.CDLL | None = None


def load(library: Path) -> None:
    """Raises HostError."""
    global _loaded
    try:
        found = ctypes.CDLL(str(library))
    except OSError as error:
        raise HostError(f"what compares outputs cannot be loaded: {error}") from error
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    _loaded = found


def _library() -> ctypes.CDLL:
    assert _loaded is not None, "whoever compares texts loads the library first"
    return _loaded


@dataclass(frozen=True, slots=True)
class Parting:
    """The first token or line in which two texts differ, where it stands in each; None: that text has ended."""

    got: slice | None
    want: slice | None


def common_prefix(one: bytes | memoryview, other: bytes | memoryview, *, fold_case: bool = False) -> int:
    """Length of the equal beginning, in bytes."""
    with _address(one) as first, _address(other) as second:
        length: int = _library().common_prefix(first, second, min(len(one), len(other)), fold_case)
    return length


def within(got: bytes, want: bytes, tolerance: Tolerance) -> bool:
    """Whether both tokens are numbers as `Tolerance` has them, and within it."""
    with _address(got) as first, _address(want) as second:
        near: bool = _library().within(first, len(got), second, len(want), passed(tolerance))
    return near


def tokens_part(got: memoryview, want: memoryview, *, fold_case: bool, tolerance: Tolerance | None) -> Parting | None:
    """Where the tokens differ, or None."""
    place = _Place()
    bounds = None if tolerance is None else passed(tolerance)
    with _address(got) as first, _address(want) as second:
        differ = _library().tokens_part(first, len(got), second, len(want), fold_case, bounds, place)
    return _parting(place) if differ else None


def lines_part(got: memoryview, want: memoryview) -> Parting | None:
    """Where the lines differ, or None."""
    place = _Place()
    with _address(got) as first, _address(want) as second:
        differ = _library().lines_part(first, len(got), second, len(want), place)
    return _parting(place) if differ else None


def lcb_parts(got: memoryview, want: memoryview) -> Parting | None:
    """Where the lines differ by LiveCodeBench's rule, or None."""
    place = _Place()
    with _address(got) as first, _address(want) as second:
        differ = _library().lcb_parts(first, len(got), second, len(want), decimal_digits(), place)
    return _parting(place) if differ else None


def plain_part(
    got: bytes, want: bytes, got_at: int, want_at: int, *, loose: bool, tolerance: Tolerance | None
) -> Parting | None:
    """Where two texts of JSON differ from these offsets on, dicts in the order that they are in; None: nowhere."""
    place = _Place()
    bounds = None if tolerance is None else passed(tolerance)
    with _address(got) as first, _address(want) as second:
        differ = _library().plain_part(*(first, len(got), second, len(want), got_at, want_at), *(loose, bounds, place))
    return _parting(place) if differ else None


def count_tokens(text: memoryview) -> int:
    with _address(text) as address:
        count: int = _library().count_tokens(address, len(text))
    return count


def count_newlines(text: memoryview) -> int:
    with _address(text) as address:
        count: int = _library().count_newlines(address, len(text))
    return count


@functools.cache
def decimal_digits() -> bytes:
    """By code point: the decimal digit that the character is in its script, as this Python's Unicode has it, or 255."""
    return bytes(unicodedata.decimal(chr(point), 255) for point in range(DIGITS_END))


@contextlib.contextmanager
def _address(text: bytes | memoryview) -> Iterator[int | None]:
    """Where the bytes lie. They stay there, and a mapping cannot be closed, until this is left."""
    buffer = _Buffer()
    _get_buffer(text, buffer, 0)
    try:
        yield buffer.buf
    finally:
        _release_buffer(buffer)


@functools.lru_cache(maxsize=64)
def passed(tolerance: Tolerance) -> _Tolerance:
    """As C takes it: also as decimal numbers, those that `repr` shows."""
    parts: list[int] = []
    for bound in (tolerance.absolute, tolerance.relative):
        _, digits, exponent = Decimal(repr(bound)).as_tuple()
        assert isinstance(exponent, int)
        parts += [int("".join(map(str, digits))), exponent]
    return _Tolerance(tolerance.absolute, tolerance.relative, *parts)


def _parting(place: _Place) -> Parting:
    return Parting(_slice(place.got_start, place.got_end), _slice(place.want_start, place.want_end))


def _slice(start: int, end: int) -> slice | None:
    return None if start < 0 else slice(start, end)
