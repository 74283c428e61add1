"""Equal work that is wanted while it is under way: done once, for all who wait for it. Keeps nothing after that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")


@dataclass(slots=True)
class _Work(Generic[T]):
    task: asyncio.Task[T]
    waiting: int = 0


class Shared(Generic[Key, T]):
    """For the tasks of one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[Key, _Work[T]] = {}

    async def done(self, key: Key, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the work under this key comes to, or raises; begun where none is under way. It ends early when nobody
        waits for it any more.
        """
        work = self._under_way.get(key)
        if work is None:
            work = self._under_way[key] = _Work(asyncio.ensure_future(begin()))
            # Before anybody hears of its end: who then wants it again begins it anew.
            work.task.add_done_callback(lambda _: self._forget(key, work))
        work.waiting += 1
        try:
            return await asyncio.shield(work.task)
        finally:
            work.waiting -= 1
            if not work.waiting and not work.task.done():
                self._forget(key, work)
                work.task.cancel()
                await asyncio.gather(work.task, return_exceptions=True)

    def _forget(self, key: Key, work: _Work[T]) -> None:
        if self._under_way.get(key) is work:
            del self._under_way[key]
