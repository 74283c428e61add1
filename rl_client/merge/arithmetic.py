"""Weighted sums of tensors, a piece at a time: widen to fp32, add, round to nearest even. Knows no files.

    theta = sum_i c_i * theta_i,   of two checkpoints: (1 - alpha) * low + alpha * high

Not low + alpha * (high - low), which does not give `high` at alpha 1. fp64 tensors are added in fp64. Elements that are
equal in all checkpoints stay as they are: in fp32 their sum need not be themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

#: The types that are averaged. Others must be equal in all checkpoints.
FLOATS: dict[str, np.dtype[Any]] = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
}
#: Elements of a piece: with its sums it fits the cache of a core.
PIECE = 2**17
#: Coefficients from here on may make something of elements whose squares are 0.
_LARGE = 2.0**60
#: Elements of a dot product: those of more than 10,000 OpenBLAS shares out among threads, which wait for each other.
_DOT = 2**13

Raw: TypeAlias = NDArray[np.uint8]
"""Bytes as they lie in a file."""
Wide: TypeAlias = NDArray[np.floating[Any]]
"""fp32, or fp64 of fp64 tensors."""


@dataclass(slots=True)
class Counts:
    """Elements of an output that are no numbers."""

    nan: int = 0
    infinite: int = 0
    overflow: int = 0
    """Of both: those that are finite in every checkpoint."""

    def add(self, other: Counts) -> None:
        self.nan += other.nan
        self.infinite += other.infinite
        self.overflow += other.overflow

    def __bool__(self) -> bool:
        return bool(self.nan or self.infinite)


def widest(dtype: str) -> type[np.floating[Any]]:
    """What sums of tensors of this type are made in."""
    return np.float64 if dtype == "F64" else np.float32


def largest(dtype: str) -> float:
    """The largest finite number of a type."""
    return float(ml_dtypes.finfo(FLOATS[dtype]).max)  # type: ignore[no-untyped-call]


class Sums:
    """Sums of the same piece of one tensor from every input. Its buffers serve one piece after the other.

    Inputs are whole checkpoints, or the first is and the others are what adapters add to it (`deltas`).
    """

    def __init__(self, inputs: int, elements: int, *, deltas: bool) -> None:
        """`elements`: of the largest piece that will come."""
        self._wides = [np.empty(elements * 8, np.uint8) for _ in range(inputs + 2)]
        self._raws: list[Raw | None] = [None] * inputs
        self._inputs = inputs
        self._deltas = deltas
        self._dtype = "F32"
        self._elements = 0
        self._kept: NDArray[np.bool_] | None = None
        self._bounds = [0.0] * inputs
        self.same = False
        """Whether every sum is the first input, bit by bit."""

    def begin(self, dtype: str, raws: Sequence[Raw | None], elements: int) -> None:
        """A piece of a tensor of this type, with what the inputs that are checkpoints hold. What is None, and lies
        behind the first, is to be put into `wide`, unless all are.
        """
        self._dtype, self._elements, self._raws = dtype, elements, list(raws)
        self._kept = None
        for number, raw in enumerate(raws):
            if raw is not None:
                np.copyto(self.wide(number), raw.view(FLOATS[dtype]), casting="unsafe")

    def wide(self, number: int) -> Wide:
        """The elements of an input; the last two are for sums."""
        kind = np.dtype(widest(self._dtype))
        return self._wides[number][: self._elements * kind.itemsize].view(kind)

    def measure(self, *, keeps_equal: bool) -> Measures:
        """To be called before sums are made. `keeps_equal`: see `is_kept_apart`."""
        equal, first, kept = [], self._bits(0), None
        for number in range(1, self._inputs):
            mask = self.wide(number) == 0 if self._deltas else self._bits(number) == first
            equal.append(int(np.count_nonzero(mask)))
            if keeps_equal:
                kept = mask if kept is None else kept & mask
        self.same = all(count == self._elements for count in equal)
        self._kept = kept
        squares = [squared_norm(self.wide(0))]
        for number, count in enumerate(equal, 1):
            squares.append(0.0 if count == self._elements else squared_norm(self._difference(number)))
        # No element is larger than its norm; the factor is for the rounding of the norm.
        norms = [1.001 * square**0.5 for square in squares]
        self._bounds = norms if self._deltas else [norms[0], *(norms[0] + norm for norm in norms[1:])]
        return Measures(squares, equal, self._elements)

    def sum_into(self, coefficients: Sequence[float], out: Raw) -> Counts:
        """Write the weighted sum, rounded to the tensor's type; tells of elements that are no numbers."""
        copied = 0 if self.same else None if self._deltas else copied_input(coefficients)
        raw = None if copied is None else self._raws[copied]
        if raw is not None:
            np.copyto(out, raw)
        else:
            self._add(coefficients, out.view(FLOATS[self._dtype]))
        bound = sum(abs(value) * size for value, size in zip(coefficients, self._bounds, strict=True))
        small = bound < largest(self._dtype) and max(map(abs, coefficients)) < _LARGE
        return Counts() if small else self._counts(out.view(FLOATS[self._dtype]))

    def not_finite(self, number: int) -> tuple[int, int]:
        """How many elements of an input are NaN, how many infinite."""
        values = self.wide(number)
        return int(np.isnan(values).sum()), int(np.isinf(values).sum())

    def _bits(self, number: int) -> NDArray[Any]:
        raw = self._raws[number]
        assert raw is not None
        return raw.view(f"u{FLOATS[self._dtype].itemsize}")

    def _difference(self, number: int) -> Wide:
        if self._deltas:
            return self.wide(number)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.subtract(self.wide(number), self.wide(0), out=self.wide(-1))

    def _add(self, coefficients: Sequence[float], target: NDArray[Any]) -> None:
        total, term, kind = self.wide(-2), self.wide(-1), widest(self._dtype)
        # Weights beyond fp32 are infinite in it; what comes of them is counted.
        with np.errstate(over="ignore", invalid="ignore"):
            (number, value), *others = [(number, kind(value)) for number, value in enumerate(coefficients) if value]
            np.multiply(self.wide(number), value, out=total)
            for number, value in others:
                np.multiply(self.wide(number), value, out=term)
                np.add(total, term, out=total)
            if self._kept is not None:
                np.copyto(total, self.wide(0), where=self._kept)
            np.copyto(target, total, casting="unsafe")

    def _counts(self, target: NDArray[Any]) -> Counts:
        values = target.astype(widest(self._dtype))
        nan, infinite = np.isnan(values), np.isinf(values)
        finite = np.ones(self._elements, np.bool_)
        for number in range(1 if self.same else self._inputs):
            finite &= np.isfinite(self.wide(number))
        return Counts(int(nan.sum()), int(infinite.sum()), int(((nan | infinite) & finite).sum()))


@dataclass(slots=True)
class Measures:
    """Of a piece, or of a tensor so far."""

    squares: list[float]
    """Squared 2-norms: of the first input, and of the others' differences from it; finite where all elements are."""
    equal: list[int]
    """How many elements of the others are the first's, bit by bit."""
    elements: int

    @property
    def are_finite(self) -> bool:
        return all(map(math.isfinite, self.squares))

    def add(self, other: Measures) -> None:
        self.squares = [one + more for one, more in zip(self.squares, other.squares, strict=True)]
        self.equal = [one + more for one, more in zip(self.equal, other.equal, strict=True)]
        self.elements += other.elements


def copied_input(coefficients: Sequence[float]) -> int | None:
    """The number of the input that a sum is a copy of: alpha is 0 or 1."""
    used = [number for number, value in enumerate(coefficients) if value]
    return used[0] if len(used) == 1 and coefficients[used[0]] == 1 else None


def squared_norm(values: Wide) -> float:
    """The sum of squares."""
    whole = values.size // _DOT * _DOT
    with np.errstate(over="ignore", invalid="ignore"):
        rows, rest = values[:whole].reshape(-1, _DOT), values[whole:]
        dots = np.matmul(rows[:, None, :], rows[:, :, None])
        return float(dots.sum(dtype=np.float64)) + float(np.dot(rest, rest))


def is_kept_apart(dtype: str, coefficients: Sequence[Sequence[float]]) -> bool:
    """Whether the sum of equal elements might be rounded to something else than themselves.

    The sum is off by about 2**-24 of the sum of |c_i|; types of 16 bits and fewer round that away, unless coefficients
    are huge.
    """
    return FLOATS[dtype].itemsize >= 4 or any(sum(map(abs, one)) > 64 for one in coefficients)
