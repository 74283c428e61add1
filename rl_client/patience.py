"""When to ask a grader again that is busy, starting or out of reach. Knows neither HTTP nor how waiting is done."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

PATIENCE_S = 300.0
FIRST_DELAY_S = 0.25
LONGEST_DELAY_S = 30.0


class Patience:
    """That of one request, from its first failure on."""

    def __init__(self, total_s: float = PATIENCE_S, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._total_s = total_s
        self._clock = clock
        self._since_s: float | None = None
        self._delay_s = FIRST_DELAY_S

    def wait_s(self, asked_s: float | None = None) -> float | None:
        """Seconds to wait before the next attempt, after one that failed; None where patience has ended.

        `asked_s`: what the grader itself asked for. Otherwise delays double, up to `LONGEST_DELAY_S`. Both are spread
        by up to a quarter, so that callers refused together do not knock together again.
        """
        if self._since_s is None:
            self._since_s = self._clock()
        left_s = self.left_s
        wait_s = (asked_s or self._delay_s) * random.uniform(1, 1.25)
        if asked_s:
            # For longer than there is patience: the last attempt is at its end.
            wait_s = min(wait_s, left_s)
        if left_s <= 0 or wait_s > left_s:
            return None
        self._delay_s = min(2 * self._delay_s, LONGEST_DELAY_S)
        return wait_s

    @property
    def left_s(self) -> float:
        """Of it, in seconds."""
        return self._total_s if self._since_s is None else self._since_s + self._total_s - self._clock()
