"""What the text checkers call equal, each rule in the fewest words: slow, unbounded, and plain to see."""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

BOM = b"\xef\xbb\xbf"

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE]([+-]?\d+))?")


def tokens(output: bytes, expected: bytes) -> bool:
    return _without_bom(output).split() == _without_bom(expected).split()


def folded_tokens(output: bytes, expected: bytes) -> bool:
    return tokens(output.lower(), expected.lower())


def number(token: bytes) -> Fraction | None:
    """A finite number in ASCII, exactly."""
    match = _NUMBER.fullmatch(token)
    if match is None or not math.isfinite(float(token)):
        return None
    if float(token) == 0 and abs(int(match[3] or 0)) > 1_000_000:
        # Far too small, or 0 times whatever; spelled out it would fill the memory.
        return Fraction(0)
    return Fraction(token.decode())


def near(output: bytes, expected: bytes, absolute: float, relative: float) -> bool:
    """Two tokens that are numbers, within a tolerance. `repr` says what decimal number a tolerance stands for."""
    s, a = number(output), number(expected)
    if s is None or a is None:
        return False
    return abs(s - a) <= max(Fraction(repr(absolute)), Fraction(repr(relative)) * abs(a))


def near_tokens(output: bytes, expected: bytes, absolute: float, relative: float, *, fold_case: bool = False) -> bool:
    got, want = _without_bom(output).split(), _without_bom(expected).split()
    return len(got) == len(want) and all(
        one == other or (fold_case and one.lower() == other.lower()) or near(one, other, absolute, relative)
        for one, other in zip(got, want, strict=True)
    )


def lines(output: bytes, expected: bytes) -> bool:
    def stripped(text: bytes) -> list[bytes]:
        lines = _without_bom(text).split(b"\n")
        return b"\n".join(line.rstrip() for line in lines).rstrip(b"\n").split(b"\n")

    return stripped(output) == stripped(expected)


def decimals(line: str) -> list[Decimal] | None:
    """NaN is none of them: it equals nothing."""
    try:
        found = [Decimal(token) for token in line.split()]
    except InvalidOperation:
        return None
    return None if any(decimal.is_nan() for decimal in found) else found


def lcb(output: bytes, expected: bytes) -> bool:
    def stripped(text: bytes) -> list[str]:
        return [line.strip() for line in text.decode("utf-8", "surrogateescape").strip().split("\n")]

    got, want = stripped(output), stripped(expected)
    return len(got) == len(want) and all(
        one == other or (decimals(one) is not None and decimals(one) == decimals(other))
        for one, other in zip(got, want, strict=True)
    )


def _without_bom(text: bytes) -> bytes:
    return text.removeprefix(BOM)
