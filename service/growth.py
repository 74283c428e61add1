"""How a program's CPU time and memory grow with the input length, fitted to what its tests used.

The model is cost(n) = b + c n^p, with b what every run costs (starting an interpreter), or b + c 2^(n/d) where cost
grows so fast that no power would do. For a given p (or d) the rest is a weighted linear least squares with b, c >= 0,
so that p is found by a search in one dimension: no start values, nothing to diverge.

* What tiny inputs cost is all b and noise. Noise is a share of the cost and a floor, so that such tests count for what
  they say: that b is no more than that.
* Tests of about the same length count once, by their upper quartile: of tests of a size the harder ones tell how a
  program grows. Single ones that fit nothing weigh less (Huber's weights).
* A test that met the limit is known to need at least that (it is censored): it counts where the curve stays below.
* Tests that ended otherwise (a crash, a sleeper, too much output) say nothing and are left out.

Where the tests do not tell the exponent to within a half (or a quarter of itself) there is no fit. Pure; no numpy,
which the grader does without. Costs less than a millisecond for a hundred tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, Protocol

from sandbox.verdicts import Verdict

#: Tests are gathered into so many lengths at most, evenly spread over their logarithm.
_MOST_POINTS = 14
#: With three parameters to be found, and an uncertainty.
_LEAST_POINTS = 5

#: Where the search for an exponent begins; what comes out at either end is no power law.
_EXPONENTS = (0.2, 0.35, 0.5, 0.7, 0.9, 1.1, 1.3, 1.6, 1.9, 2.2, 2.6, 3.0, 3.6, 4.3, 5.2, 6.5, 8.5, 11.0, 15.0)
#: Doublings over the whole range of lengths.
_DOUBLINGS = (1.0, 2.0, 3.0, 4.5, 6.5, 9.0, 12.0, 16.0, 22.0, 30.0, 42.0, 60.0)
#: From this exponent on it is asked whether an exponential fits better.
_STEEP = 4.5
_STEPS = 9
#: A fit does not speak of inputs that are so many times longer than any it saw.
_FARTHEST = 1000.0


class Used(Protocol):
    """What one test used: `sandbox.problem.TestResult` and `service.contract.TestRow` both are."""

    @property
    def input_length(self) -> int: ...
    @property
    def verdict(self) -> Verdict: ...
    @property
    def cpu_s(self) -> float | None: ...
    @property
    def memory_bytes(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Fit:
    """One fitted curve."""

    model: Literal["power", "exponential"]
    exponent: float | None
    """p; None of an exponential."""
    exponent_low: float | None
    exponent_high: float | None
    """The bounds of p's 95% confidence interval."""
    doubling_length: float | None
    """d, by how much longer an input doubles the cost; None of a power."""
    limit_length: int | None
    """The input length at which the limit is met; None where that is too far to tell."""
    tests: int
    """How many of the tests say something."""


@dataclass(frozen=True, slots=True)
class Growth:
    cpu: Fit | None
    memory: Fit | None


def growth(tests: Sequence[Used], *, cpu_limit_s: float, memory_limit_bytes: int) -> Growth | None:
    """The growth of CPU time and memory; None where the tests tell neither."""
    cpu = _fit(
        [(test.input_length, test.cpu_s or 0.0, test.verdict) for test in tests],
        cpu_limit_s, Verdict.TIME_LIMIT, floor=0.0002, share=0.08,
    )  # fmt: skip
    memory = _fit(
        [(test.input_length, test.memory_bytes or 0, test.verdict) for test in tests],
        memory_limit_bytes, Verdict.MEMORY_LIMIT, floor=128 * 2**10, share=0.05,
    )  # fmt: skip
    return Growth(cpu, memory) if cpu or memory else None


# ---------------------------------------------------------------------------------------------------------------
# From tests to points


@dataclass(slots=True)
class _Point:
    length: float
    cost: float
    met_limit: bool
    """The cost is then a lower bound."""
    weight: float = 1.0
    """1 / variance of the cost."""


def _fit(
    used: Sequence[tuple[int, float, Verdict]], limit: float, limit_verdict: Verdict, *, floor: float, share: float
) -> Fit | None:
    told = [
        _Point(max(1, length), limit if verdict is limit_verdict else cost, verdict is limit_verdict)
        for length, cost, verdict in used
        if verdict is limit_verdict or (cost > 0 and verdict in (Verdict.ACCEPTED, Verdict.WRONG_ANSWER))
    ]
    points = list(_gathered(told))
    if len(points) < _LEAST_POINTS:
        return None
    for point in points:
        point.weight = 1 / (floor**2 + (share * point.cost) ** 2)
    found = _found(points)
    if found is None:
        return None
    curve, exponent, half = found
    met = curve.meets(limit)
    beyond = min((point.length for point in told if point.met_limit), default=math.inf)
    nearest = min(met, beyond)
    return Fit(
        model="exponential" if exponent is None else "power",
        exponent=None if exponent is None else round(exponent, 3),
        exponent_low=None if exponent is None else round(exponent - half, 3),
        exponent_high=None if exponent is None else round(exponent + half, 3),
        doubling_length=round(math.log(2) / curve.rate, 3) if exponent is None else None,
        limit_length=math.ceil(nearest) if nearest <= _FARTHEST * curve.longest else None,
        tests=len(told),
    )


def _gathered(points: list[_Point]) -> Iterator[_Point]:
    """One point for tests of about the same length."""
    points.sort(key=lambda point: point.length)
    if len({point.length for point in points}) <= _MOST_POINTS:
        key: Callable[[_Point], float] = lambda point: point.length  # noqa: E731
    else:
        low = math.log(points[0].length)
        scale = (_MOST_POINTS - 1e-9) / (math.log(points[-1].length) - low)
        key = lambda point: int((math.log(point.length) - low) * scale)  # noqa: E731
    for _, each in groupby(points, key):
        several = list(each)
        met = [point for point in several if point.met_limit]
        # What most of them came to; a limit that some have met bounds where it is met all the same.
        if 2 * len(met) < len(several):
            met = []
        rest = met or sorted((point for point in several if not point.met_limit), key=lambda point: point.cost)
        chosen = rest[len(rest) // 2] if met else rest[math.ceil(0.75 * len(rest)) - 1]
        yield chosen


# ---------------------------------------------------------------------------------------------------------------
# From points to a curve


@dataclass(slots=True)
class _Curve:
    """b + c g(n), where g(n) is exp(rate x) and x = log(n / longest) of a power, n - longest of an exponential."""

    base: float
    slope: float
    rate: float
    misfit: float
    """Sum of the weighted squares."""
    counted: list[int]
    """Which points count: all but those whose limit the curve passes by itself."""
    longest: float
    is_power: bool

    def meets(self, limit: float) -> float:
        """The length at which it comes to `limit`; infinite where it never does."""
        if self.base >= limit or self.slope <= 0:
            return math.inf
        x = math.log((limit - self.base) / self.slope) / self.rate
        if not self.is_power:
            return self.longest + x
        return self.longest * math.exp(x) if x < 100 else math.inf


def _found(points: list[_Point]) -> tuple[_Curve, float | None, float] | None:
    """The best curve, its exponent (None of an exponential), and half of that one's confidence interval."""
    longest = points[-1].length
    logs = [math.log(point.length / longest) for point in points]
    power = _search(points, logs, _EXPONENTS, longest, is_power=True)
    if power.rate > _STEEP:
        span = (longest - points[0].length) / math.log(2)
        rates = [doublings / span for doublings in _DOUBLINGS] if span else []
        distances = [point.length - longest for point in points]
        curve = _search(points, distances, rates, longest, is_power=False) if rates else power
        if curve.misfit < power.misfit:
            return (curve, None, 0.0) if _rises(points, distances, curve) else None
    if not 1.1 * _EXPONENTS[0] < power.rate < 0.9 * _EXPONENTS[-1] or not _rises(points, logs, power):
        return None
    half = _half_interval(points, logs, power)
    return (power, power.rate, half) if half <= max(0.5, power.rate / 4) else None


def _search(
    points: list[_Point], xs: Sequence[float], rates: Sequence[float], longest: float, *, is_power: bool
) -> _Curve:
    """The rate of the least misfit: a coarse look at all of them, then golden sections between the best's
    neighbours.
    """

    def at(rate: float) -> _Curve:
        return _solved(points, xs, rate, longest, is_power)

    coarse = [at(rate) for rate in rates]
    best = min(range(len(rates)), key=lambda index: coarse[index].misfit)
    if is_power:
        # Once: what the two models come to is compared by the same weights.
        _downweigh(points, xs, coarse[best])
    low, high = rates[max(0, best - 1)], rates[min(len(rates) - 1, best + 1)]
    golden = (math.sqrt(5) - 1) / 2
    left, right = at(high - golden * (high - low)), at(low + golden * (high - low))
    for _ in range(_STEPS):
        if left.misfit <= right.misfit:
            high, right = right.rate, left
            left = at(high - golden * (high - low))
        else:
            low, left = left.rate, right
            right = at(low + golden * (high - low))
    return min(left, right, key=lambda curve: curve.misfit)


def _solved(points: list[_Point], xs: Sequence[float], rate: float, longest: float, is_power: bool) -> _Curve:
    """b and c of the least squares, neither below 0, for this rate."""
    grown = [math.exp(rate * x) for x in xs]
    counted = [index for index, point in enumerate(points) if not point.met_limit]
    base = slope = 0.0
    while True:
        w = wg = wgg = wy = wgy = 0.0
        for index in counted:
            point, g = points[index], grown[index]
            weight = point.weight
            w += weight
            wg += weight * g
            wgg += weight * g * g
            wy += weight * point.cost
            wgy += weight * g * point.cost
        det = w * wgg - wg * wg
        if det > 1e-12 * w * wgg:
            base, slope = (wgg * wy - wg * wgy) / det, (w * wgy - wg * wy) / det
            if base < 0:
                base, slope = 0.0, wgy / wgg
            elif slope < 0:
                base, slope = wy / w, 0.0
        elif w:
            base, slope = wy / w, 0.0
        short = [
            index
            for index, point in enumerate(points)
            if point.met_limit and index not in counted and base + slope * grown[index] < point.cost
        ]
        if not short:
            break
        counted += short
    misfit = 0.0
    for index in counted:
        point = points[index]
        off = base + slope * grown[index] - point.cost
        if off < 0 or not point.met_limit:
            misfit += point.weight * off * off
    return _Curve(base, slope, rate, misfit, counted, longest, is_power)


def _downweigh(points: list[_Point], xs: Sequence[float], curve: _Curve) -> None:
    """Huber's weights (1964): a point that lies off by more than twice its noise counts by its distance, not the
    square.

    The noise is what most points show, since a curve that fits none too well would else push all of them away.
    """
    off = {
        index: abs(curve.base + curve.slope * math.exp(curve.rate * xs[index]) - points[index].cost)
        * math.sqrt(points[index].weight)
        for index in curve.counted
    }
    usual = max(1.0, sorted(off.values())[len(off) // 2])
    for index, distance in off.items():
        if distance > 2 * usual and not points[index].met_limit:
            points[index].weight *= 2 * usual / distance


def _rises(points: list[_Point], xs: Sequence[float], curve: _Curve) -> bool:
    """Whether three lengths at least are seen to cost more than the base, and the dearest much more."""
    above = [
        curve.slope * math.exp(curve.rate * xs[index]) * math.sqrt(points[index].weight) for index in curve.counted
    ]
    return sum(one > 2 for one in above) >= 3 and max(above) > 6


def _half_interval(points: list[_Point], xs: Sequence[float], curve: _Curve) -> float:
    """Half of the exponent's 95% interval, from the curvature of the misfit at the best fit; infinite where there is
    none.

    The covariance of least squares is (J^T W J)^-1, here of b, c and p, with derivatives 1, g and c x g; it is scaled
    by the misfit for each degree of freedom where that is above 1.
    """
    freedom = len(curve.counted) - 3
    if freedom < 2:
        return math.inf
    bb = bc = bp = cc = cp = pp = 0.0
    for index in curve.counted:
        weight, g = points[index].weight, math.exp(curve.rate * xs[index])
        by_p = curve.slope * xs[index] * g
        bb += weight
        bc += weight * g
        bp += weight * by_p
        cc += weight * g * g
        cp += weight * g * by_p
        pp += weight * by_p * by_p
    det = bb * cc - bc * bc
    if det <= 0:
        return math.inf
    # The Schur complement: what of p's information is left once b and c may follow.
    left = pp - (cc * bp * bp - 2 * bc * bp * cp + bb * cp * cp) / det
    if left <= 1e-9 * pp:
        return math.inf
    return _student(freedom) * math.sqrt(max(1.0, curve.misfit / freedom) / left)


def _student(freedom: int) -> float:
    """The 97.5% point of Student's t (Abramowitz and Stegun 26.7.5, to three terms)."""
    return 1.96 + 2.37 / freedom + 2.82 / freedom**2 + 2.56 / freedom**3
