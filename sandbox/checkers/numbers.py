"""When two tokens are the same number: within a tolerance, or by LiveCodeBench's rule.

Bounded for any token: none raises, none costs more than time linear in its length. Knows nothing of streams.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation

from sandbox.errors import CheckerRefused

#: A longer token is text. Far beyond any number a program prints, and it bounds what one token can cost.
MAX_NUMBER_BYTES = 64 * 1024

_FLOAT_BYTES = b"0123456789+-.eE"


def parse_float(token: bytes) -> float | None:
    """The token as a finite float, or None.

    Only ASCII decimal notation counts (`-1`, `.5`, `1.`, `+2.5E-3`): of the words made of these bytes float()
    takes nothing else, while `inf`, `nan`, `1_000`, hexadecimal and other scripts' digits need other bytes.
    """
    if len(token) > MAX_NUMBER_BYTES or token.translate(None, _FLOAT_BYTES):
        return None
    try:
        value = float(token)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Tolerance:
    """|s - a| <= absolute or |s - a| <= relative * |a|, for the output's s and the answer's a.

    The rule of the Kattis default validator. It is decided as if the decimal numbers had been compared exactly:
    doubles decide only where their rounding cannot change the answer, so `1.000001` is within 1e-6 of `1`, and
    large integers that share a double are still told apart.
    """

    absolute: float
    relative: float

    def __post_init__(self) -> None:
        for tolerance in (self.absolute, self.relative):
            if not (math.isfinite(tolerance) and tolerance >= 0):
                raise CheckerRefused(f"a float tolerance must be finite and not negative, not {tolerance}")

    def near(self, got: float, want: float) -> bool | None:
        """Whether the doubles settle it, and how; None where they do not."""
        difference = abs(got - want)
        allowed = max(self.absolute, self.relative * abs(want))
        # Parsing, subtracting and multiplying each err by half an ulp (2^-53), or by a denormal near zero.
        doubt = 4e-16 * (abs(got) + abs(want) + allowed) + 1e-322
        if difference + doubt <= allowed < math.inf:
            return True
        if difference - doubt > allowed:
            return False
        return None

    def alike(self, got: bytes, want: bytes) -> bool:
        """Whether both tokens are finite floats and within the tolerance."""
        want_value = parse_float(want)
        got_value = None if want_value is None else parse_float(got)
        if want_value is None or got_value is None:
            return False
        near = self.near(got_value, want_value)
        return self._near_exactly(got, want) if near is None else near

    def _near_exactly(self, got: bytes, want: bytes) -> bool:
        got_value = _EXACT.create_decimal(got.decode("ascii"))
        want_value = _EXACT.create_decimal(want.decode("ascii"))
        difference = _EXACT.abs(_EXACT.subtract(got_value, want_value))
        relative = _EXACT.multiply(Decimal(repr(self.relative)), _EXACT.abs(want_value))
        return difference <= max(Decimal(repr(self.absolute)), relative)

    def all_alike(self, got: Sequence[bytes], want: Sequence[bytes]) -> bool:
        """True only if every pair is alike; False may also mean that someone must look at each pair."""
        if max(map(len, got)) > MAX_NUMBER_BYTES or max(map(len, want)) > MAX_NUMBER_BYTES:
            return False
        if b"".join(got).translate(None, _FLOAT_BYTES) or b"".join(want).translate(None, _FLOAT_BYTES):
            return False
        try:
            got_values, want_values = list(map(float, got)), list(map(float, want))
        except ValueError:
            return False
        return all(map(self.near, got_values, want_values))


# Enough digits for any pair of doubles a thousand orders of magnitude apart; no trap, so nothing raises.
_EXACT = Context(prec=1200, Emax=999_999, Emin=-999_999, traps=[])

# Never the thread's own context, whose traps someone else may have changed.
_STRICT = Context(traps=[InvalidOperation])


def strict_decimal(token: str) -> Decimal:
    """The token as Python's Decimal() reads it: underscores, Infinity, NaN, any script's digits.

    Raises InvalidOperation where it is no number, or one whose exponent has more than 18 digits.
    """
    return Decimal(token, _STRICT)


def parse_decimal(token: bytes) -> Decimal | None:
    """The token as a Decimal, or None.

    None also stands for NaN, which equals nothing, itself included, and for tokens past MAX_NUMBER_BYTES.
    """
    if len(token) > MAX_NUMBER_BYTES:
        return None
    try:
        value = strict_decimal(token.decode("utf-8", "surrogateescape"))
    except InvalidOperation:
        return None
    return None if value.is_nan() else value


def same_decimal(got: bytes, want: bytes) -> bool:
    """Whether both tokens are Decimals, and equal."""
    got_value = parse_decimal(got)
    return got_value is not None and got_value == parse_decimal(want)
