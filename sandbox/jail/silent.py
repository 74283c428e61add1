"""Checks of a test script's that would pass in silence: they fail where nobody hears of it, or never run.

Python lets by an assertion that fails in a thread, a future or a task, and a coroutine that is never awaited. None of
them is to count as passed. Nor is what a script is handed and need not look at: by
`asyncio.gather(return_exceptions=True)`, or by a pool. In processes of the script's own nobody would hear anything,
and the program's answers can be for one process only: they are not covered. (unittest's are in `cases`.)
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
import types
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sandbox.jail import ends
    from sandbox.jail.hearing import Hearing
else:
    import ends

#: Where asyncio keeps the tasks that there are.
TASKS = ("_all_tasks", "_scheduled_tasks", "_eager_tasks")


def listen(hearing: Hearing, source: bytes) -> None:
    """Have such checks heard, from now on. What the script does not name is not imported for it."""
    hear_threads(hearing)
    if b"futures" in source:
        hear_futures(hearing)
    if b"multiprocessing" in source:
        hear_pools(hearing)
    if b"asyncio" in source:
        hear_tasks(hearing)
        hear_gathered(hearing)
    look_at_coroutines(hearing)
    os.register_at_fork(before=lambda: hearing.lack("processes of the test's own"))


def hear_threads(hearing: Hearing) -> None:
    tell = threading.excepthook

    def told(of: Any) -> None:
        if of.exc_value is not None and hearing.is_a_check(of.exc_value):
            hearing.hear(of.exc_value)
        tell(of)

    threading.excepthook = told


def asking(hearing: Hearing, kind: Any, *names: str) -> None:
    """Have whoever calls these methods of a future hear of what failed in it."""

    def asked_by(ask: Any) -> Any:
        @functools.wraps(ask)
        def asked(future: Any, *args: Any, **keywords: Any) -> Any:
            try:
                return ask(future, *args, **keywords)
            finally:
                hearing.unasked.pop(future, None)

        return asked

    for name in names:
        setattr(kind, name, asked_by(vars(kind)[name]))


def hear_futures(hearing: Hearing) -> None:
    """What failed in one that nobody asks."""
    kind: Any = importlib.import_module("concurrent.futures").Future
    keep = kind.set_exception

    @functools.wraps(keep)
    def kept(future: Any, error: BaseException | None) -> None:
        if error is not None and hearing.is_a_check(error):
            hearing.unasked[future] = error
        keep(future, error)

    kind.set_exception = kept
    asking(hearing, kind, "result", "exception")


def hear_pools(hearing: Hearing) -> None:
    """What failed in a pool of threads, in results that nobody asks for."""
    pool: Any = importlib.import_module("multiprocessing.pool")

    def keeping(keep: Any) -> Any:
        @functools.wraps(keep)
        def kept(result: Any, index: int, outcome: Any) -> None:
            succeeded, error = outcome
            if not succeeded and isinstance(error, BaseException) and hearing.is_a_check(error):
                hearing.unasked[result] = error
            keep(result, index, outcome)

        return kept

    for kind in (pool.ApplyResult, pool.MapResult, pool.IMapIterator, pool.IMapUnorderedIterator):
        kind._set = keeping(vars(kind)["_set"])
    asking(hearing, pool.ApplyResult, "get", "successful")
    asking(hearing, pool.IMapIterator, "next", "__next__")


def hear_tasks(hearing: Hearing) -> None:
    """Of a task that has failed, and that nobody has asked for its result, its loop is told as it goes."""
    kind: Any = importlib.import_module("asyncio").BaseEventLoop
    tell = kind.call_exception_handler

    @functools.wraps(tell)
    def told(loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and hearing.is_a_check(error):
            hearing.hear(error)
        tell(loop, context)

    kind.call_exception_handler = told


def hear_gathered(hearing: Hearing) -> None:
    """What failed, and was not what the program raised, among what `gather` hands out as results."""
    asyncio: Any = importlib.import_module("asyncio")
    gather = asyncio.gather

    def tell(future: Any) -> None:
        if future.cancelled() or future.exception() is not None:
            return
        for error in future.result():
            of_the_programs = hearing.is_raised(error)
            if isinstance(error, BaseException) and not of_the_programs and hearing.is_a_check(error):
                hearing.hear(error)

    @functools.wraps(gather)
    def gathered(*awaitables: Any, return_exceptions: bool = False) -> Any:
        future = gather(*awaitables, return_exceptions=return_exceptions)
        if return_exceptions:
            future.add_done_callback(tell)
        return future

    asyncio.gather = gathered


def hear_the_rest(hearing: Hearing) -> None:
    """Wait for the threads that Python waits for at its end, and hear what nobody has asked for by then."""
    threading._shutdown()  # type: ignore[attr-defined]
    for error in [*hearing.unasked.values(), *filter(hearing.is_a_check, failed_tasks())]:
        hearing.hear(error)


def failed_tasks() -> list[BaseException]:
    """Of tasks that are still there, and that nobody has asked."""
    asyncio = sys.modules.get("asyncio.tasks")
    tasks = {task for name in TASKS for task in getattr(asyncio, name, ())}
    failed = (task for task in tasks if task.done() and not task.cancelled() and getattr(task, "_log_traceback", False))
    return [error for task in failed if (error := task.exception()) is not None]


def look_at_coroutines(hearing: Hearing) -> None:
    tell = warnings._warn_unawaited_coroutine  # type: ignore[attr-defined]  # Where CPython tells of one as it goes.

    def told(coroutine: types.CoroutineType[Any, Any, Any]) -> None:
        if coroutine.cr_code.co_filename == ends.SCRIPT_NAME and not hearing.is_unwinding(sys._getframe(1)):
            hearing.miss(f"{coroutine.__name__}, a coroutine that is never awaited")
        tell(coroutine)

    warnings._warn_unawaited_coroutine = told  # type: ignore[attr-defined]
