"""Growth with the input length: made-up costs whose law is known, and real programs of known complexity."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.verdicts import Verdict
from service.contract import FitRow, GradeResult
from service.growth import Fit, growth
from tests.serving import Server

LIMIT_S = 2.0
LIMIT_BYTES = 256 * 2**20
MIB = 2**20


@dataclass(frozen=True)
class Used:
    input_length: int
    cpu_s: float | None = 0.01
    memory_bytes: int | None = 8 * MIB
    verdict: Verdict = Verdict.ACCEPTED


def costs(law: Callable[[float], float], lengths: Sequence[int], *, seed: int = 1, noise: float = 0.05) -> list[Used]:
    """Tests that take 2 ms to start and then as long as the law says, with noise, up to the limit."""
    draw = random.Random(seed)
    tests = []
    for length in lengths:
        cpu_s = 0.002 + draw.uniform(0, 0.0004) + law(length) * draw.uniform(1 - noise, 1 + noise)
        verdict = Verdict.ACCEPTED if cpu_s <= LIMIT_S else Verdict.TIME_LIMIT
        tests.append(Used(length, min(cpu_s, LIMIT_S + 0.01), verdict=verdict))
    draw.shuffle(tests)
    return tests


def of_cpu(tests: Sequence[Used]) -> Fit | None:
    found = growth(tests, cpu_limit_s=LIMIT_S, memory_limit_bytes=LIMIT_BYTES)
    return found.cpu if found else None


def between(low: float, high: float, count: int = 20) -> list[int]:
    """Lengths evenly spread over their logarithm."""
    return [round(low * (high / low) ** (index / (count - 1))) for index in range(count)]


LAWS: dict[float, tuple[Callable[[float], float], list[int]]] = {
    0.5: (lambda n: 1e-4 * n**0.5, between(4, 10**7)),
    1.0: (lambda n: 1e-7 * n, between(4, 10**7)),
    2.0: (lambda n: 2e-8 * n**2, between(4, 6000)),
    3.0: (lambda n: 5e-8 * n**3, between(4, 300)),
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("exponent", LAWS)
def test_powers(exponent: float, seed: int) -> None:
    law, lengths = LAWS[exponent]
    fit = of_cpu(costs(law, lengths, seed=seed))

    assert fit is not None
    assert (fit.model, fit.doubling_length, fit.tests) == ("power", None, 20)
    assert fit.exponent is not None
    assert fit.exponent_low is not None
    assert fit.exponent_high is not None
    assert fit.exponent == pytest.approx(exponent, abs=0.1 * max(1, exponent))
    assert fit.exponent_low < fit.exponent < fit.exponent_high < fit.exponent + 0.5


def test_the_interval_holds_the_exponent_about_as_often_as_it_says() -> None:
    law, lengths = LAWS[2.0]
    fits = [of_cpu(costs(law, lengths, seed=seed)) for seed in range(200)]
    held = sum(fit is not None and fit.exponent_low <= 2.0 <= fit.exponent_high for fit in fits)  # type: ignore[operator]
    assert held >= 180


def test_a_logarithm_shows_as_a_little_more_than_its_power() -> None:
    fit = of_cpu(costs(lambda n: 1e-8 * n * math.log2(n), between(10, 5 * 10**6)))
    assert fit is not None
    assert fit.exponent is not None
    assert 1.0 < fit.exponent < 1.25


@pytest.mark.parametrize("rate", [2.0, 1.618, 1.2])
def test_an_exponential_is_no_power(rate: float) -> None:
    """Its lengths are those that cost up to a second or two."""
    last = round(math.log(3 / 1e-6) / math.log(rate))
    fit = of_cpu(costs(lambda n: 1e-6 * rate**n, range(2, last + 1)))

    assert fit is not None
    assert (fit.model, fit.exponent, fit.exponent_low, fit.exponent_high) == ("exponential", None, None, None)
    assert fit.doubling_length == pytest.approx(math.log(2) / math.log(rate), rel=0.1)
    assert fit.limit_length == pytest.approx(math.log(2e6) / math.log(rate), abs=0.1 * last)


def test_a_steep_power_is_no_exponential() -> None:
    fit = of_cpu(costs(lambda n: 1e-8 * n**5, between(3, 45), noise=0.01))
    assert fit is not None
    assert fit.model == "power"


def test_the_limit_is_met_where_the_curve_comes_to_it() -> None:
    fit = of_cpu(costs(lambda n: 2e-8 * n**2, between(4, 3000)))
    assert fit is not None
    assert fit.limit_length == pytest.approx(10_000, rel=0.1)


def test_tests_that_met_the_limit_bound_the_curve_from_below() -> None:
    """A quadratic program: one that was seen up to 2000, and met its limit from 10,000 on."""
    law = LAWS[2.0][0]
    seen = costs(law, between(4, 2000, 12))
    fit = of_cpu([*seen, *costs(law, [12_000, 50_000, 200_000, 200_000])])
    assert fit is not None
    assert (fit.exponent, fit.tests) == (pytest.approx(2.0, abs=0.2), 16)
    assert fit.limit_length == pytest.approx(10_000, rel=0.2)


def test_no_fit_speaks_of_lengths_past_a_limit_that_was_met() -> None:
    law = LAWS[1.0][0]
    fit = of_cpu([*costs(law, between(4, 10**6)), Used(10_000, LIMIT_S, verdict=Verdict.TIME_LIMIT)])
    assert fit is not None
    assert fit.limit_length == 10_000


def test_a_limit_that_is_too_far_to_tell() -> None:
    fit = of_cpu(costs(lambda n: 1e-3 * n**0.5, between(4, 1000)))
    assert fit is not None
    assert fit.limit_length is None


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_one_test_that_fits_nothing_does_little(factor: float) -> None:
    law, lengths = LAWS[2.0]
    tests = sorted(costs(law, lengths), key=lambda test: test.input_length)
    odd = tests[-4]
    assert odd.cpu_s is not None
    tests[-4] = Used(odd.input_length, odd.cpu_s * factor)
    fit = of_cpu(tests)
    assert fit is None or fit.exponent == pytest.approx(2.0, abs=0.35)


def test_many_tests_of_the_same_lengths_count_by_their_harder_ones() -> None:
    law, _ = LAWS[2.0]
    hard = costs(law, [100, 300, 1000, 3000, 6000] * 10)
    easy = costs(lambda n: 1e-9 * n, [100, 300, 1000, 3000, 6000] * 5)
    fit = of_cpu(hard + easy)
    assert fit is not None
    assert fit.exponent == pytest.approx(2.0, abs=0.15)


@pytest.mark.parametrize(
    "tests",
    [
        [],
        [Used(10)],
        costs(lambda n: 1e-7 * n, [10**5] * 50),
        costs(lambda n: 0.0, between(1, 10**6)),
        costs(lambda n: 1e-7 * n, between(1, 10**4)),
        costs(lambda n: 1e-7 * n, [1, 10, 100, 10**7]),
        costs(lambda n: 1e-6 * n**2, [2, 3, 5, 7, 11, 3000]),
        [Used(length, LIMIT_S, verdict=Verdict.TIME_LIMIT) for length in between(1, 10**6)],
        [Used(length, None, None, Verdict.SKIPPED) for length in between(1, 10**6)],
        [Used(length, 1e-7 * length, verdict=Verdict.RUNTIME_ERROR) for length in between(1, 10**6)],
        [Used(length, 1e-7 * length, verdict=Verdict.IDLE) for length in between(1, 10**6)],
        [Used(0, 0.0, 0)] * 10,
    ],
    ids=[
        "none", "one", "one length", "flat", "all start-up", "three small and a large one", "one that costs anything",
        "limits only", "nothing ran", "crashes", "sleepers", "zeros",
    ],
)  # fmt: skip
def test_tests_that_tell_nothing(tests: list[Used]) -> None:
    assert growth(tests, cpu_limit_s=LIMIT_S, memory_limit_bytes=LIMIT_BYTES) is None


def test_memory_grows_by_itself() -> None:
    lengths = between(10, 10**6)
    tests = [Used(length, 0.01, 4 * MIB + 64 * length) for length in lengths]
    tests.append(Used(10**7, 0.01, LIMIT_BYTES, Verdict.MEMORY_LIMIT))
    found = growth(tests, cpu_limit_s=LIMIT_S, memory_limit_bytes=LIMIT_BYTES)
    assert found is not None
    assert found.cpu is None
    assert found.memory is not None
    assert found.memory.exponent == pytest.approx(1.0, abs=0.05)
    assert found.memory.limit_length == pytest.approx(252 * MIB / 64, rel=0.05)


anything = st.builds(
    Used,
    st.integers(0, 10**9),
    st.none() | st.floats(0, 400),
    st.none() | st.integers(0, 2**40),
    st.sampled_from(Verdict),
)


@given(st.lists(anything, max_size=40), st.floats(0.01, 300))
def test_whatever_the_tests_used_there_is_no_error_and_no_nonsense(tests: list[Used], limit_s: float) -> None:
    found = growth(tests, cpu_limit_s=limit_s, memory_limit_bytes=LIMIT_BYTES)
    for fit in (found.cpu, found.memory) if found is not None else ():
        if fit is None:
            continue
        assert 5 <= fit.tests <= len(tests)
        assert fit.limit_length is None or 0 < fit.limit_length <= 1000 * max(test.input_length for test in tests)
        if fit.model == "power":
            assert fit.exponent_low is not None
            assert fit.exponent_high is not None
            assert 0 < fit.exponent_high - fit.exponent_low < 10
        else:
            assert fit.doubling_length is not None
            assert fit.doubling_length > 0


def test_it_costs_next_to_nothing() -> None:
    """A millisecond is the aim, and what it takes stands in the changelog; this only sees that it stays in that
    region.
    """
    tests = [
        Used(one.input_length, one.cpu_s, 4 * MIB + 64 * one.input_length)
        for one in costs(LAWS[1.0][0], between(4, 10**7, 100))
    ]
    taken = []
    for _ in range(20):
        started = time.perf_counter()
        assert growth(tests, cpu_limit_s=LIMIT_S, memory_limit_bytes=LIMIT_BYTES) is not None
        taken.append(time.perf_counter() - started)
    assert min(taken) < 0.005


# ---------------------------------------------------------------------------------------------------------------
# Real programs

LOOPS = {
    "n": ("for _ in range(20 * n): pass", between(20, 40_000, 16), 1.0, 1.0),
    "n log n": (
        "for i in range(n):\n    j = n\n    while j:\n        j //= 2", between(20, 40_000, 16), 1.0, 1.3
    ),
    "n^2": ("for i in range(n):\n    for j in range(n): pass", between(20, 3000, 16), 2.0, 2.0),
    "n^3": (
        "for i in range(n):\n    for j in range(n):\n        for k in range(n): pass", between(4, 200, 16), 3.0, 3.0
    ),
}  # fmt: skip


def problem(sizes: Sequence[int], **limits: float) -> dict[str, Any]:
    """Tests of n digits each, so that the input is n + 1 bytes long."""
    return {
        "kind": "stdio",
        "tests": [{"input": "7" * n + "\n", "output": f"{n}\n"} for n in sizes],
        "limits": {"cpu_s": 5.0} | limits,
    }


def grade(server: Server, sent: dict[str, Any], body: str) -> GradeResult:
    source = f"n = len(input())\n{body}\nprint(n)\n"
    request = {"problem": sent, "language": "python", "source": source}
    answer = httpx.post(f"{server.url}/grade", json=request, timeout=240)
    assert answer.status_code == 200, answer.text
    return GradeResult.model_validate_json(answer.content)


def cpu_of(result: GradeResult) -> FitRow:
    assert result.growth is not None
    assert result.growth.cpu is not None
    return result.growth.cpu


@pytest.mark.jail
@pytest.mark.parametrize("law", LOOPS)
def test_a_real_program_of_known_complexity(grader: Server, law: str) -> None:
    body, sizes, low, high = LOOPS[law]
    result = grade(grader, problem(sizes), body)

    assert result.category == "correct"
    fit = cpu_of(result)
    assert fit.model == "power"
    assert fit.exponent is not None
    assert low - 0.15 * low <= fit.exponent <= high + 0.15 * high, fit
    assert fit.exponent_low is not None
    assert fit.exponent_high is not None
    assert fit.exponent_low < high + 0.1
    assert fit.exponent_high > low - 0.1


@pytest.mark.jail
def test_a_real_exponential_program(grader: Server) -> None:
    fit = cpu_of(grade(grader, problem(range(3, 25)), "for _ in range(2**n): pass"))
    assert (fit.model, fit.exponent) == ("exponential", None)
    assert fit.doubling_length == pytest.approx(1.0, abs=0.15)


@pytest.mark.jail
def test_a_real_program_meets_its_limit_about_where_that_was_foreseen(grader: Server) -> None:
    """Foreseen from tests that all pass well below the limit."""
    body = LOOPS["n^2"][0]
    foreseen = cpu_of(grade(grader, problem(between(20, 1500, 16), cpu_s=0.5), body)).limit_length
    assert foreseen is not None
    below, above = foreseen // 2, foreseen * 2
    result = grade(grader, problem([below, above], cpu_s=0.5), body)
    assert [test.verdict for test in result.tests] == [Verdict.ACCEPTED, Verdict.TIME_LIMIT]


@pytest.mark.jail
def test_a_real_program_that_met_its_limit(grader: Server) -> None:
    body = LOOPS["n^2"][0]
    result = grade(grader, problem([*between(20, 2000, 10), 20_000, 40_000], cpu_s=0.4), body)
    assert result.category == "optimization_failure"
    fit = cpu_of(result)
    assert fit.exponent == pytest.approx(2.0, abs=0.3)
    assert fit.limit_length is not None
    assert 1000 < fit.limit_length <= 20_001


@pytest.mark.jail
def test_real_memory(grader: Server) -> None:
    result = grade(grader, problem(between(20, 20_000, 14)), "kept = bytearray(2000 * n)\nkept[::4096] = kept[::4096]")
    assert result.limits is not None
    assert result.limits.memory_bytes == 256 * MIB
    assert result.growth is not None
    fit = result.growth.memory
    assert fit is not None
    assert fit.exponent == pytest.approx(1.0, abs=0.15)
    assert fit.limit_length == pytest.approx(256 * MIB / 2000, rel=0.2)


@pytest.mark.jail
def test_a_real_program_whose_tests_tell_nothing(grader: Server) -> None:
    result = grade(grader, problem([1, 2, 3, 10, 20, 30]), "")
    assert (result.category, result.growth) == ("correct", None)


@pytest.mark.jail
def test_nothing_ran(grader: Server) -> None:
    sent = {"problem": problem([1, 2, 3]), "language": "cpp", "source": "int main( {"}
    result = GradeResult.model_validate_json(httpx.post(f"{grader.url}/grade", json=sent, timeout=60).content)
    assert (result.verdict, result.growth) == ("compile_error", None)
