"""When to come back to a queue that is full."""

from __future__ import annotations

import math

_LONGEST_S = 60


def retry_after_s(waiting: int, workers: int, mean_busy_s: float) -> int:
    """Seconds until about half of what waits is done: `workers / mean_busy_s` of it are in a second, as of late."""
    return min(_LONGEST_S, max(1, math.ceil(mean_busy_s * waiting / (2 * max(1, workers)))))
