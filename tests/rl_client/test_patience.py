"""When a grader is asked again: delays that double, what it asks for itself, and the end."""

from __future__ import annotations

import pytest

from rl_client.patience import FIRST_DELAY_S, LONGEST_DELAY_S, Patience


class Clock:
    """Moves only by what is waited."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def waits(patience: Patience, clock: Clock, asked_s: float | None = None) -> list[float]:
    found = []
    while (wait_s := patience.wait_s(asked_s)) is not None:
        found.append(wait_s)
        clock.now_s += wait_s
    return found


def test_delays_double_up_to_a_bound_and_end_with_patience() -> None:
    clock = Clock()
    found = waits(Patience(300.0, clock=clock), clock)

    for number, wait_s in enumerate(found):
        least = min(FIRST_DELAY_S * 2**number, LONGEST_DELAY_S)
        assert least <= wait_s <= 1.25 * least
    assert found[-1] >= LONGEST_DELAY_S
    assert 300 - 1.25 * LONGEST_DELAY_S <= sum(found) <= 300


@pytest.mark.parametrize(("asked_s", "least"), [(2.0, 2.0), (0.0, FIRST_DELAY_S), (60.0, 60.0)])
def test_what_the_grader_asks_for_comes_first(asked_s: float, least: float) -> None:
    wait_s = Patience(300.0).wait_s(asked_s)
    assert wait_s is not None
    assert least <= wait_s <= 1.25 * least


def test_who_is_asked_to_wait_for_longer_than_patience_asks_once_more_at_its_end() -> None:
    clock = Clock()
    assert waits(Patience(300.0, clock=clock), clock, asked_s=3600.0) == [300.0]


def test_time_that_an_attempt_itself_took_counts() -> None:
    clock = Clock()
    patience = Patience(10.0, clock=clock)
    assert patience.wait_s() is not None
    clock.now_s += 11
    assert patience.wait_s() is None
