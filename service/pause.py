"""Leaves alone for a while what has just failed, so that not every further try costs its time-out."""

from __future__ import annotations

import math
import time


class Pause:
    def __init__(self, seconds: float) -> None:
        """`seconds`: how long a failure keeps others away."""
        self._seconds = seconds
        self._until_s = -math.inf
        self._fault: str | None = None

    @property
    def on(self) -> bool:
        return time.monotonic() < self._until_s

    def begin(self, fault: str) -> None:
        """It failed; `fault` says of what, in words for the log."""
        self._fault = fault
        self._until_s = time.monotonic() + self._seconds

    def take_fault(self) -> str | None:
        """What it failed of since this was last asked."""
        taken, self._fault = self._fault, None
        return taken
