"""Threads that wait for a grader, so that several requests are on their way at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")


class Workers:
    """A number of threads that do what they are handed, in the order in which it comes.

    To be used as a context manager: its end waits for them, unless it comes by an error. Then what was not begun is
    never done, and what was begun is left behind: they are daemons, since a command that is ended does not wait for
    a grader that answers nothing. The standard library's pool would.
    """

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        self._abandoned = threading.Event()

    def __enter__(self) -> Workers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._abandoned.set()
        for _ in self._threads:
            self._jobs.put(None)
        if kind is None:
            for thread in self._threads:
                thread.join()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Have it done; whatever it raises is raised where the result is asked for."""
        future: Future[T] = Future()

        def do() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001
                future.set_exception(error)
            else:
                future.set_result(result)

        self._jobs.put(do)
        return future

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None and not self._abandoned.is_set():
            job()
