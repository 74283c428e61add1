"""Sums of pieces against oracles that round by other means."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from rl_client.merge.arithmetic import FLOATS, Counts, Measures, Sums, is_kept_apart

ALPHAS = (-0.5, 0.25, 0.3, 1.5, 2.7)


def summed(
    dtype: str, inputs: Sequence[NDArray[Any]], coefficients: Sequence[float]
) -> tuple[NDArray[Any], Counts, Measures]:
    kind = FLOATS[dtype]
    sums = Sums(len(inputs), inputs[0].size, deltas=False)
    sums.begin(dtype, [one.astype(kind).view(np.uint8) for one in inputs], inputs[0].size)
    measures = sums.measure(keeps_equal=is_kept_apart(dtype, [coefficients]))
    out = np.empty(inputs[0].size * kind.itemsize, np.uint8)
    counts = sums.sum_into(coefficients, out)
    return out.view(kind), counts, measures


def bf16_of(value: np.float32) -> int:
    """Round to nearest even by the bits."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return int((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def nearest_of_table(value: np.float32, kind: Any) -> int:
    """Of the 256 numbers of a type with 8 bits the nearest, of two the one with an even last bit."""
    table = np.arange(256, dtype=np.uint8).view(kind).astype(np.float64)
    finite = [bits for bits in range(256) if np.isfinite(table[bits])]
    exact = Fraction(float(value))
    return min(finite, key=lambda bits: (abs(Fraction(table[bits]) - exact), bits & 1, bits))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_bf16_is_rounded_to_nearest_even(alpha: float) -> None:
    random = np.random.default_rng(1)
    low, high = (random.normal(size=5000).astype(ml_dtypes.bfloat16) for _ in range(2))
    found, counts, _ = summed("BF16", [low, high], (1 - alpha, alpha))
    wide = np.float32(alpha) * high.astype(np.float32) + np.float32(1 - alpha) * low.astype(np.float32)
    assert found.view(np.uint16).tolist() == [bf16_of(one) for one in wide]
    assert counts == Counts()


@pytest.mark.parametrize("alpha", ALPHAS)
def test_fp16_is_rounded_to_nearest_even(alpha: float) -> None:
    random = np.random.default_rng(2)
    low, high = (random.normal(scale=0.01, size=5000).astype(np.float16) for _ in range(2))
    found, _, _ = summed("F16", [low, high], (1 - alpha, alpha))
    wide = np.float32(alpha) * high.astype(np.float32) + np.float32(1 - alpha) * low.astype(np.float32)
    assert found.tobytes() == struct.pack(f"<{len(wide)}e", *wide.tolist())


@pytest.mark.parametrize("dtype", ["F8_E4M3", "F8_E5M2"])
@pytest.mark.parametrize("alpha", [-0.5, 0.3, 1.5])
def test_fp8_is_rounded_to_nearest_even(dtype: str, alpha: float) -> None:
    random = np.random.default_rng(3)
    kind = FLOATS[dtype]
    low, high = (random.normal(size=300).astype(kind) for _ in range(2))
    found, _, _ = summed(dtype, [low, high], (1 - alpha, alpha))
    wide = np.float32(alpha) * high.astype(np.float32) + np.float32(1 - alpha) * low.astype(np.float32)
    expected = np.array([nearest_of_table(one, kind) for one in wide], np.uint8).view(kind)
    # Both zeros are as near.
    assert found.astype(np.float32).tolist() == expected.astype(np.float32).tolist()


def test_fp32_is_added_in_fp32_and_fp64_in_fp64() -> None:
    random = np.random.default_rng(4)
    low, high = random.normal(size=1000), random.normal(size=1000)
    assert summed("F64", [low, high], (-0.5, 1.5))[0].tolist() == (1.5 * high + -0.5 * low).tolist()
    one, two = low.astype(np.float32), high.astype(np.float32)
    single = np.float32(0.7) * two + np.float32(0.3) * one
    assert summed("F32", [one, two], (0.3, 0.7))[0].tolist() == single.tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("number", [0, 1])
def test_the_ends_are_copies_bit_by_bit(dtype: str, number: int) -> None:
    bits = np.random.default_rng(5).integers(0, 256, (2, 800), np.uint8)
    inputs = [row.view(FLOATS[dtype]) for row in bits]
    coefficients = [0.0, 0.0]
    coefficients[number] = 1.0
    assert summed(dtype, inputs, coefficients)[0].tobytes() == bits[number].tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("alpha", [0.1, -1000.3])
def test_equal_elements_stay_as_they_are(dtype: str, alpha: float) -> None:
    random = np.random.default_rng(6)
    low, high = (random.normal(size=2000).astype(FLOATS[dtype]) for _ in range(2))
    high[::2] = low[::2]
    found, _, measures = summed(dtype, [low, high], (1 - alpha, alpha))
    assert found[::2].tobytes() == low[::2].tobytes()
    assert measures.equal == [int((low.view(f"u{low.itemsize}") == high.view(f"u{low.itemsize}")).sum())]
    assert summed(dtype, [low, low], (1 - alpha, alpha))[0].tobytes() == low.tobytes()


def test_norms_are_those_of_the_first_and_of_differences_from_it() -> None:
    random = np.random.default_rng(7)
    inputs = [random.normal(size=999).astype(np.float32) for _ in range(3)]
    _, _, measures = summed("F32", inputs, (0.2, 0.3, 0.5))
    low, one, two = (each.astype(np.float64) for each in inputs)
    expected = [(low**2).sum(), ((one - low) ** 2).sum(), ((two - low) ** 2).sum()]
    assert measures.squares == pytest.approx(expected, rel=1e-5)
    assert measures.are_finite


def test_what_is_beyond_the_type_is_counted_as_overflow() -> None:
    low = np.array([60000, -60000, 1, 2], np.float16)
    high = np.array([-60000, 60000, 1, 65504], np.float16)
    found, counts, _ = summed("F16", [low, high], (-0.5, 1.5))
    assert found.tolist() == [-np.inf, np.inf, 1, np.inf]
    assert counts == Counts(nan=0, infinite=3, overflow=3)
    # This type has no infinity.
    eight = np.array([448, 1], FLOATS["F8_E4M3"])
    _, counts, _ = summed("F8_E4M3", [-eight, eight], (-0.5, 1.5))
    assert counts == Counts(nan=1, infinite=0, overflow=1)


@pytest.mark.parametrize("dtype", ["F32", "BF16"])
def test_what_a_huge_coefficient_makes_of_the_smallest_is_counted(dtype: str) -> None:
    low, high = np.zeros(2, FLOATS[dtype]), np.array([0, 1e-30], FLOATS[dtype])
    found, counts, _ = summed(dtype, [low, high], (1 - 1e30, 1e30))
    assert counts == Counts()
    assert float(found[1]) == pytest.approx(1, rel=0.01)
    _, counts, _ = summed(dtype, [low, high], (1 - 1e61, 1e61))
    assert (counts.overflow, counts.nan + counts.infinite) == (1, 1)


def test_what_is_no_number_before_is_no_overflow() -> None:
    low = np.array([np.nan, np.inf, 1, 3e38], np.float32)
    high = np.array([1, 1, 2, -3e38], np.float32)
    _, counts, measures = summed("F32", [low, high], (-0.5, 1.5))
    assert counts == Counts(nan=1, infinite=2, overflow=1)
    assert not measures.are_finite


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("number", [0, 1])
def test_measures_tell_of_a_single_element_that_is_no_number(bad: float, number: int) -> None:
    inputs = [np.ones(1000, np.float16), np.full(1000, 2, np.float16)]
    inputs[number][500] = bad
    assert not summed("F16", inputs, (0.5, 0.5))[2].are_finite
    # Where all are the same only the first is looked at.
    assert not summed("F16", [inputs[number]] * 2, (0.5, 0.5))[2].are_finite
