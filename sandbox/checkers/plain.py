"""Comparing two plain values, both as JSON text: what a function returned, and what was expected of it.

The result comes from a stranger: it may be no JSON, or JSON made to cost its reader time or memory. Equal values, as
our own encoder writes them (`sandbox.jail.call`; expected values are written the same way), have equally many brackets,
commas, colons and quotes, whatever their order of keys and however their numbers differ; so text with others is wrong
unread, and what is read is no larger than what was expected. Integers of more digits than Python reads in linear time
are compared by their digits.

Read, a text can become fifty times as large. So long ones are first compared as they lie, token by token, and only read
where dicts may be in another order.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from sandbox.checkers import native
from sandbox.checkers.base import CheckerOutcome
from sandbox.checkers.native import Parting
from sandbox.checkers.numbers import Tolerance, tolerance
from sandbox.checkers.quoting import quote
from sandbox.verdicts import Verdict

#: Longer integers are kept as text: no bound that Python sets to its own reading is lower, and no float is so large.
MAX_DIGITS = 640

#: How many times longer than the expected text an equal value's may be: a number of one digit may be met, where numbers
#: are compared by value, by one of as many digits as the largest float has.
MAX_RATIO = 320

#: From this length on, in bytes, texts are compared before they are read.
LONG = 64 * 1024

_STRUCTURE = b'[]{},:"'
_ACCEPTED = CheckerOutcome(Verdict.ACCEPTED)
_MARKS = frozenset(_STRUCTURE)
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Digits:
    """An integer too long to be read as a number."""

    text: str


@dataclass(frozen=True, slots=True)
class Plain:
    """Equal as data: the same types all through, lists in order, dicts whatever their order.

    `loose` compares numbers and booleans by value, as Python's == does: True is 1, and 1 is 1.0. Floats are compared
    exactly, or within a tolerance where one is set (see `Tolerance`; the other one then counts as 0); a number that is
    not finite equals none. Raises CheckerRefused on a tolerance that is negative or not finite.
    """

    loose: bool = False
    float_absolute: float | None = None
    float_relative: float | None = None

    def __post_init__(self) -> None:
        tolerance(self.float_absolute, self.float_relative)

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        longest = MAX_RATIO * len(expected)
        result = bytes(output[: longest + 1])
        if result == expected:
            return _ACCEPTED
        if len(result) > longest or any(result.count(mark) != expected.count(mark) for mark in _STRUCTURE):
            at = native.common_prefix(result, expected)
            return _wrong(f"{quote(result, at)} in place of {quote(expected, at)}")
        comparison = Comparison(self.loose, tolerance(self.float_absolute, self.float_relative))
        try:
            if len(expected) >= LONG:
                parting = comparison.parting(result, expected)
                if parting is None:
                    return _ACCEPTED
                if b"{" not in expected:
                    return _wrong(_told(result, expected, parting))
            difference = comparison.difference(_read(result), _read(expected), "")
        except (ValueError, RecursionError):
            return _wrong("the result is not one value in JSON")
        return _ACCEPTED if difference is None else _wrong(difference)


def _wrong(message: str) -> CheckerOutcome:
    return CheckerOutcome(Verdict.WRONG_ANSWER, message)


def _read(text: bytes) -> object:
    """Raises ValueError, RecursionError."""
    return json.loads(str(text, "utf-8", "surrogatepass"), parse_int=_integer)


def _integer(text: str) -> int | Digits:
    return int(text) if len(text) <= MAX_DIGITS else Digits(text)


@dataclass(frozen=True, slots=True)
class Comparison:
    loose: bool
    tolerance: Tolerance | None

    def parting(self, got: bytes, want: bytes) -> Parting | None:
        """Where the first text is not the second, dicts in the order that they are in, or None. Raises ValueError."""
        got_at = want_at = 0
        while True:
            parting = native.plain_part(got, want, got_at, want_at, loose=self.loose, tolerance=self.tolerance)
            if parting is None or parting.got is None or parting.want is None:
                return parting
            begin = {got[parting.got.start], want[parting.want.start]}
            # Of strings no two texts are alike, and marks are none.
            if begin & _MARKS or not self._alike(_read(got[parting.got]), _read(want[parting.want])):
                return parting
            got_at, want_at = parting.got.stop, parting.want.stop

    def difference(self, got: Any, want: Any, place: str) -> str | None:
        """Where and how the first is not the second, or None."""
        if type(want) is list and type(got) is list:
            for index, (one, other) in enumerate(zip(got, want, strict=False)):
                if (found := self.difference(one, other, f"{place}[{index}]")) is not None:
                    return found
            return None if len(got) == len(want) else f"{_at(place)}{len(got)} items in place of {len(want)}"
        if type(want) is dict and type(got) is dict:
            for key, other in want.items():
                one = got.get(key, _ABSENT)
                named = f"{place}[{json.dumps(key)}]"
                if one is _ABSENT:
                    return f"{_at(named)}missing"
                if (found := self.difference(one, other, named)) is not None:
                    return found
            return None if len(got) == len(want) else f"{_at(place)}{len(got)} keys in place of {len(want)}"
        return None if self._alike(got, want) else f"{_at(place)}{_shown(got)} in place of {_shown(want)}"

    def _alike(self, got: object, want: object) -> bool:
        """Two values of which at most one is a list or dict."""
        if type(got) is type(want):
            if not isinstance(want, float):
                return got == want
        elif not (self.loose and isinstance(got, (bool, int, float)) and isinstance(want, (bool, int, float))):
            return False
        if isinstance(got, float) and not math.isfinite(got):
            return False
        if got == want:
            return True
        if self.tolerance is None or not (isinstance(got, float) or isinstance(want, float)):
            return False
        return native.within(_number(got), _number(want), self.tolerance)


def _told(got: bytes, want: bytes, parting: Parting) -> str:
    tokens = [b"" if at is None else text[at] for text, at in ((got, parting.got), (want, parting.want))]
    shown = [quote(token, native.common_prefix(*tokens))[1:-1] if token else "the end" for token in tokens]
    place = len(got) if parting.got is None else parting.got.start
    return f"at byte {place + 1}: {shown[0]} in place of {shown[1]}"


def _number(value: object) -> bytes:
    return repr(int(value) if isinstance(value, bool) else value).encode()


def _at(place: str) -> str:
    return f"at {quote(place.encode())[1:-1]}: " if place else ""


def _shown(value: object) -> str:
    text = (
        value.text if isinstance(value, Digits) else json.dumps(value, ensure_ascii=False, default=lambda one: one.text)
    )
    return quote(text.encode("utf-8", "surrogatepass"))[1:-1]
