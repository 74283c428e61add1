"""Rewards: what a trainer makes of a GradeResult, as pure functions that can be put together.

    reward = on_fault(penalized(signed(r_k(3)), format_error=-1.0, compile_error=-1.0), "retry")
    reward(result)   # a float, or None: leave this sample out

Every reward says what it does where there is nothing to reward:

* **Empty groups.** R_k is null where no test is shorter than 10^k, since a group without tests is no free reward. What
  then holds is the `empty` of `r_k` and `ladder`: "skip" (None), "next" (the reward of the smallest larger group that
  has tests), or a number.
* **Faults of the grader.** A result whose category is null says nothing of the program, and its reward is None: leave
  the sample out. `on_fault` asks for something else: "retry" (raises FaultyGrade), or a number. None of it is 0 by
  itself.
* **Provoked faults.** Where this program's own output brought a checker down, and nothing else would have (`provoked`),
  the reward is the reward of a program that fails every test: else breaking a checker would be worth more than
  failing it. `on_fault` leaves these alone.

Knows nothing of HTTP, labels or trainers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rl_client.errors import FaultyGrade
from service.contract import GradeResult, GroupRow, TestRow, Verdict

Empty = Literal["skip", "next"] | float
"""What an empty group comes to."""
Fault = Literal["skip", "retry"] | float
"""What a fault of the grader comes to."""
Rung = int | Literal["inf"]
"""The k of an R_k."""

MOST = 1e6
"""No reward is farther from 0 than that. Trainers hold rewards in single precision, and take means of their squares:
what is finite here can be infinite there, and every advantage of its batch NaN."""


def checked_value(value: float) -> float:
    """Raises ValueError of what no trainer could go on with as a reward."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is a number that is not finite")
    if abs(value) > MOST:
        raise ValueError(f"{value:g} is no reward: they lie between {-MOST:,.0f} and {MOST:,.0f}")
    return value


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward by name; call it with a result."""

    name: str
    of: Callable[[GradeResult], float | None]
    needs_every_test: bool = False
    """Whether tests may not be skipped behind the first failure (`stop` has to be "never")."""
    is_signed: bool = False
    """Whether it runs from -1 to 1 by itself, rather than from 0."""

    def __call__(self, result: GradeResult) -> float | None:
        """The reward; None: nothing to go by, so leave the sample out.

        Raises FaultyGrade where a policy says "retry", and ValueError where the reward needs every test and
        the result has skipped ones.
        """
        if self.needs_every_test and _stopped_early(result):
            raise ValueError(f"{self.name} needs every test, and some were skipped: grade with `stop` set to `never`")
        return self.of(result)


def is_provoked(result: GradeResult) -> bool:
    """Whether the program itself brought a checker down."""
    return any(test.provoked for test in result.tests)


def is_fault(result: GradeResult) -> bool:
    """Whether the grader failed, through no doing of the program's: there is no reward, whatever the program is."""
    return result.category is None and not is_provoked(result)


def failing(result: GradeResult) -> list[TestRow]:
    """The tests that failed, for whatever reason; those of shorter inputs first."""
    failed = [test for test in result.tests if test.verdict not in (Verdict.ACCEPTED, Verdict.SKIPPED)]
    return sorted(failed, key=lambda test: (test.input_length, test.index))


def _stopped_early(result: GradeResult) -> bool:
    ran = result.category is not None and result.verdict not in ("compile_error", "format_error")
    return ran and any(test.verdict is Verdict.SKIPPED for test in result.tests)


# ---------------------------------------------------------------------------------------------------------------
# R_k and what is made of them


def _rung(result: GradeResult, rung: Rung, empty: Empty) -> float | None:
    """R_k by the policy for empty groups; None where the grader failed."""
    if is_fault(result):
        return None
    provoked = is_provoked(result)

    def of(group: GroupRow) -> float | None:
        if not group.tests:
            return None
        return float(result.rewards[f"R_{group.k}"] == 1 and not provoked)

    # Groups go up to the digits of the longest input: from there on T_k is T, which is never empty.
    first, *above = [group for group in result.groups if rung != "inf" and group.k >= rung] or result.groups[-1:]
    value = of(first)
    if value is not None or empty == "skip":
        return value
    return next(of(group) for group in above if group.tests) if empty == "next" else float(empty)


def _check_rung(rung: Rung) -> None:
    if rung != "inf" and (isinstance(rung, bool) or not isinstance(rung, int) or rung < 1):
        raise ValueError(f"the k of an R_k is a whole number from 1 on, or inf, not {rung!r}")


def _check_empty(empty: Empty) -> None:
    if not isinstance(empty, str):
        checked_value(empty)
    elif empty not in ("skip", "next"):
        raise ValueError(f"what an empty group comes to is skip, next or a number, not {empty!r}")


def r_k(k: int, *, empty: Empty = "skip") -> Reward:
    """R_k: 1 where every test of T_k = {t : len(t) < 10^k} is accepted, else 0 (arXiv 2605.28751).

    Where 10^k is past the longest input, T_k is T, and R_k is R_inf. Raises ValueError for k < 1.
    """
    _check_rung(k)
    _check_empty(empty)
    return Reward(f"r_k:{k}", lambda result: _rung(result, k, empty))


r_inf = Reward("r_inf", lambda result: _rung(result, "inf", "skip"))
"""R_inf: 1 where every test is accepted, else 0 (arXiv 2605.28751)."""


def ladder(weights: Mapping[Rung, float], *, empty: Empty = "skip") -> Reward:
    """Discrete shaping: sum over j of w_j R_j, with all w_j >= 0 and a sum of 1; j is a k, or "inf".

    R_k does not increase with k, so each rung that is reached adds its weight to those below. The paper (arXiv
    2605.28751) has a discrete shaping whose weights are not known; these are the caller's. Raises ValueError.
    """
    if not weights:
        raise ValueError("a ladder needs a weight")
    for rung, weight in weights.items():
        _check_rung(rung)
        if not 0 <= weight <= 1:
            raise ValueError(f"the weight of R_{rung} is {weight}, not between 0 and 1")
    if not math.isclose(math.fsum(weights.values()), 1.0, abs_tol=1e-6):
        raise ValueError(f"the weights of a ladder add up to {math.fsum(weights.values()):g}, not to 1")
    _check_empty(empty)
    rungs = tuple(weights.items())

    def of(result: GradeResult) -> float | None:
        return _sum([(weight, _rung(result, rung, empty)) for rung, weight in rungs])

    name = ",".join(f"{rung}={weight:g}" for rung, weight in rungs)
    return Reward(f"ladder:{name}", of)


# ---------------------------------------------------------------------------------------------------------------
# Other measures of correctness, from 0 to 1


def _of_tests(measure: Callable[[GradeResult], float]) -> Callable[[GradeResult], float | None]:
    def of(result: GradeResult) -> float | None:
        if is_provoked(result):
            return 0.0
        return None if is_fault(result) else measure(result)

    return of


def _fraction(result: GradeResult) -> float:
    return sum(test.verdict is Verdict.ACCEPTED for test in result.tests) / len(result.tests)


fraction = Reward("fraction", _of_tests(_fraction), needs_every_test=True)
"""Share of the tests that are accepted: |{t in T : accepted}| / |T|, `partial` of huggingface/open-r1.

Tests that nothing is known of are no failures: it needs every test, and refuses results with skipped ones."""


def _log_progress(result: GradeResult) -> float:
    if result.category == "correct":
        return 1.0
    first = result.first_failure_length or 0
    reached = max((test.input_length for test in result.tests if test.input_length < first), default=0)
    return math.log1p(reached) / math.log1p(max(test.input_length for test in result.tests)) if reached else 0.0


log_progress = Reward("log_progress", _of_tests(_log_progress))
"""Continuous shaping: log(1 + l) / log(1 + L), with L the longest input and l the longest that is shorter than the
first failure; 1 where all are accepted, 0 where the shortest test fails or nothing was run.

The paper (arXiv 2605.28751) has a continuous shaping whose formula is not known. This one goes by what was passed and
not by where it failed, so that a program which fails on the longest test alone stays below 1."""


# ---------------------------------------------------------------------------------------------------------------
# Speed


def speed(result: GradeResult, *, reference_s: float | None = None, startup_s: float = 0.0) -> float:
    """g = 1 - 2 min(1, t / T), from 1 (no time at all) to -1, with t = max(0, slowest test's CPU time - `startup_s`).

    T is `reference_s`, or the CPU limit of the run, each less `startup_s`. What an interpreter takes to start is most
    of what short tests take, and drifts from host to host (arXiv 2607.25970), so it can be taken off. Of a program
    whose tests ran. Raises ValueError where there is nothing to measure by: no test that ran, or neither reference nor
    limit.
    """
    used = [test.cpu_s for test in result.tests if test.cpu_s is not None]
    limit_s = reference_s
    if limit_s is None and result.limits is not None:
        limit_s = result.limits.cpu_s
    if not used or limit_s is None:
        raise ValueError("no CPU time to measure by: give `reference_s` where a result does not tell its limits")
    if limit_s <= startup_s:
        raise ValueError(f"a start-up of {startup_s:g} s leaves nothing of {limit_s:g} s to be measured by")
    return 1 - 2 * min(1.0, max(0.0, max(used) - startup_s) / (limit_s - startup_s))


def two_gate(*, gate: Reward | None = None, reference_s: float | None = None, startup_s: float = 0.0) -> Reward:
    """R = (1 + c)(1 + g)/4 - (1 - c)/2, with correctness c of -1 or 1 and g of `speed` (arXiv 2607.25970).

    From 0 to 1 by speed where `gate` (by default R_inf) is 1, else -1: a wrong program has no credit for speed.
    """
    return _gated("two_gate", lambda g: (1 + g) / 2, gate, reference_s, startup_s)


def collapsed(*, gate: Reward | None = None, reference_s: float | None = None, startup_s: float = 0.0) -> Reward:
    """R = (1 + c)(1 + g)/2 - 1, with correctness c of -1 or 1 and g of `speed` (arXiv 2607.25970).

    g itself, from -1 to 1, where `gate` (by default R_inf) is 1, else -1: correctness is worth what its speed is.
    """
    return _gated("collapsed", lambda g: g, gate, reference_s, startup_s)


def _gated(
    name: str,
    by_speed: Callable[[float], float],
    gate: Reward | None,
    reference_s: float | None,
    startup_s: float,
) -> Reward:
    if reference_s is not None and not startup_s < reference_s < math.inf:
        raise ValueError(f"reference_s is {reference_s:g}, which has to be more than the start-up of {startup_s:g} s")
    if not 0 <= startup_s < math.inf:
        raise ValueError(f"startup_s is {startup_s:g}, not a time")
    passed = gate or r_inf

    def of(result: GradeResult) -> float | None:
        correct = passed(result)
        if correct is None:
            return None
        return by_speed(speed(result, reference_s=reference_s, startup_s=startup_s)) if correct == 1 else -1.0

    return Reward(name, of, needs_every_test=passed.needs_every_test, is_signed=True)


# ---------------------------------------------------------------------------------------------------------------
# Putting together


def _mapped(reward: Reward, name: str, function: Callable[[float], float]) -> Reward:
    def of(result: GradeResult) -> float | None:
        value = reward(result)
        return None if value is None else function(value)

    return Reward(name, of, reward.needs_every_test)


def _sum(parts: Sequence[tuple[float, float | None]]) -> float | None:
    """Weights times values; None where any value is."""
    known = [weight * value for weight, value in parts if value is not None]
    return math.fsum(known) if len(known) == len(parts) else None


def scaled(reward: Reward, low: float, high: float) -> Reward:
    """low + (high - low) r, for an r from 0 to 1. Raises ValueError of bounds that are no rewards."""
    name = f"scaled({reward.name},{checked_value(low):g},{checked_value(high):g})"
    return _mapped(reward, name, lambda value: low + (high - low) * value)


def signed(reward: Reward) -> Reward:
    """2 r - 1: from -1 to 1 for an r from 0 to 1, as CWM has its terminal reward (facebookresearch/cwm)."""
    return _mapped(reward, f"signed({reward.name})", lambda value: 2 * value - 1)


def combined(*parts: tuple[float, Reward]) -> Reward:
    """Sum of weight times reward; None where any part is.

    `combined((1.0, r_inf), (0.1, fraction))` is `weighted_sum` of huggingface/open-r1. Raises ValueError of no parts.
    """
    if not parts:
        raise ValueError("nothing to combine")
    name = "+".join(f"{weight:g}*{reward.name}" for weight, reward in parts)
    return Reward(
        name,
        lambda result: _sum([(weight, reward(result)) for weight, reward in parts]),
        needs_every_test=any(reward.needs_every_test for _, reward in parts),
    )


def penalized(reward: Reward, *, format_error: float | None = None, compile_error: float | None = None) -> Reward:
    """These values where no program was found in the completion, and where it does not compile, in the reward's place.

    None leaves the reward as it is. huggingface/open-r1 has -1.0 and -0.1 beside rewards of 0 to 1.1. Raises ValueError
    of what is no reward.
    """
    penalties = {"format_error": format_error, "compile_error": compile_error}
    for value in penalties.values():
        if value is not None:
            checked_value(value)

    def of(result: GradeResult) -> float | None:
        penalty = penalties.get(result.verdict)
        return reward(result) if penalty is None else penalty

    told = ",".join(f"{name}={value:g}" for name, value in penalties.items() if value is not None)
    return Reward(f"penalized({reward.name},{told})" if told else reward.name, of, reward.needs_every_test)


def on_fault(reward: Reward, policy: Fault) -> Reward:
    """What a fault of the grader comes to: "skip" (None), "retry" (raises FaultyGrade), or a number.

    Raises ValueError of another word, and of what is no reward.
    """
    if not isinstance(policy, str):
        checked_value(policy)
    elif policy not in ("skip", "retry"):
        raise ValueError(f"what a fault comes to is skip, retry or a number, not {policy!r}")

    def of(result: GradeResult) -> float | None:
        if not is_fault(result):
            return reward(result)
        if policy == "retry":
            raise FaultyGrade(result.verdict)
        return None if isinstance(policy, str) else float(policy)

    return Reward(f"{reward.name}|fault={policy}", of, reward.needs_every_test)
