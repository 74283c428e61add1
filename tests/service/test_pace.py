"""When a client is told to come back: by how fast what waits is worked off."""

from __future__ import annotations

import pytest

from service.engines.pace import retry_after_s


@pytest.mark.parametrize(
    ("waiting", "workers", "mean_busy_s", "seconds"),
    [
        # Two workers do one in two seconds, and half of twenty so in twenty.
        (20, 2, 4.0, 20),
        (20, 8, 4.0, 5),
        (20, 2, 0.4, 2),
        # Never at once, and never so late that nobody comes; without workers as if there were one.
        (1, 8, 0.01, 1),
        (0, 0, 1.0, 1),
        (10_000, 2, 10.0, 60),
        (10, 0, 2.0, 10),
    ],
)
def test_the_pace_of_late_says_when_half_of_the_queue_is_done(
    waiting: int, workers: int, mean_busy_s: float, seconds: int
) -> None:
    assert retry_after_s(waiting, workers, mean_busy_s) == seconds
