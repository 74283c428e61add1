"""Work for threads beside the one that adds, and the buffers in which it is handed to them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

import numpy as np

from rl_client.merge.arithmetic import Raw

#: Threads: one that adds keeps no more of them busy, and each has a buffer.
_MOST = 16

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Lanes:
    """What is put in one lane is done in that order; lanes go side by side, as far as there are cores."""

    def __init__(self, lanes: int) -> None:
        # Twice the cores: threads that wait for a disk leave theirs to others.
        self.threads = min(lanes, 2 * len(os.sched_getaffinity(0)), _MOST)
        self._executors = [ThreadPoolExecutor(1, f"lane-{number}") for number in range(self.threads)]

    def put(self, lane: int, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        return self._executors[lane % self.threads].submit(work, *args, **kwargs)

    def end(self) -> None:
        """When everything that was put in is done."""
        for one in self._executors:
            one.shutdown()


class Buffers:
    """Taken in turn, each when what it was given away for is done; what one holds stays until all others were taken."""

    def __init__(self, count: int, size: int) -> None:
        """`size`: the bytes of the largest that is taken."""
        self._free = deque(np.empty(size, np.uint8) for _ in range(count))
        self._given: deque[tuple[Raw, Future[Any]]] = deque()

    def take(self, size: int) -> Raw:
        """Raises what the work has raised for which a buffer was given away."""
        if not self._free:
            self._take_back()
        return self._free[0][:size]

    def give(self, work: Future[Any]) -> None:
        """The one that was taken last, until the work is done."""
        self._given.append((self._free.popleft(), work))

    def settle(self) -> None:
        """Wait until all are free. Raises as `take` does."""
        while self._given:
            self._take_back()

    def cancel(self) -> None:
        """Call off the work that has not begun."""
        for _, work in self._given:
            work.cancel()

    def _take_back(self) -> None:
        buffer, work = self._given.popleft()
        work.result()
        self._free.append(buffer)
