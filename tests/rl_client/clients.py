"""Both clients behind one face, so that one specification holds for both."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

from rl_client.async_client import AsyncGrader
from rl_client.client import Grader
from rl_client.encoded import EncodedProblem
from service.contract import GradeRequest, GradeResult, LanguageRow

T = TypeVar("T")


class Blocking:
    """An `AsyncGrader` on an event loop of its own, for callers in any threads."""

    def __init__(self, url: str, **options: Any) -> None:
        self._grader = AsyncGrader(url, **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def __enter__(self) -> Blocking:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def close(self) -> None:
        self._wait(self._grader.aclose())

    def check(self) -> None:
        self._wait(self._grader.check())

    def languages(self) -> tuple[LanguageRow, ...]:
        return self._wait(self._grader.languages())

    def put_problem(self, problem: EncodedProblem, *, again: bool = False) -> None:
        self._wait(self._grader.put_problem(problem, again=again))

    def grade(self, request: GradeRequest, *, deadline_s: float | None = None) -> GradeResult:
        return self._wait(self._grader.grade(request, deadline_s=deadline_s))

    def grade_batch(
        self, requests: Sequence[GradeRequest], *, deadline_s: float | None = None
    ) -> Iterator[GradeResult]:
        results = self._grader.grade_batch(requests, deadline_s=deadline_s)
        try:
            while (result := self._wait(_next(results))) is not None:
                yield result
        finally:
            self._wait(results.aclose())

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)


async def _next(results: AsyncGenerator[GradeResult, None]) -> GradeResult | None:
    return await anext(results, None)


Connect = Callable[..., Grader | Blocking]
