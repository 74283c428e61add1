"""Checks of a test script's that would pass in silence: they fail where nobody hears of it, or never run.

Python lets by an assertion that fails in a thread, a future or a task, failures that unittest keeps in a result that
nobody looks at (`unittest.main(exit=False)`), a coroutine that is never awaited, and tests of a `TestCase` that are
coroutines or generators. None of them is to count as passed. Not heard is what a script has handed to it and does not
look at: by `asyncio.gather(return_exceptions=True)`, or by a pool of `multiprocessing`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import threading
import types
import unittest
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sandbox.jail import ends
    from sandbox.jail.link import Link
else:
    import ends

#: What a `TestCase` calls beside its test.
SET_UP = ("setUp", "tearDown", "setUpClass", "tearDownClass")


def listen(link: Link, source: bytes) -> None:
    """Have the link told of such checks, from now on. What the script does not name is not imported for it."""
    hear_results(link)
    hear_threads(link)
    if b"futures" in source:
        hear_futures(link)
    if b"asyncio" in source:
        hear_tasks(link)
    look_at_cases(link)
    look_at_coroutines(link)


def hear_results(link: Link) -> None:
    """What failed, as unittest is told of it. Suites that run here have a result of their own."""

    def adding(add: Any) -> Any:
        @functools.wraps(add)
        def added(result: Any, *args: Any) -> None:
            link.hear(failure(args))
            add(result, *args)

        return added

    kind = unittest.TestResult
    for name in ("addError", "addFailure", "addSubTest", "addUnexpectedSuccess"):
        setattr(kind, name, adding(getattr(kind, name)))


def failure(args: tuple[Any, ...]) -> Any:
    """The exception that a result is told of, last of all; None where a subtest went well."""
    if len(args) == 1:
        return AssertionError("passed, where it was expected to fail")
    return args[-1] and args[-1][1]


def hear_threads(link: Link) -> None:
    tell = threading.excepthook

    def told(of: Any) -> None:
        if of.exc_value is not None and link.is_a_check(of.exc_value):
            link.hear(of.exc_value)
        tell(of)

    threading.excepthook = told


def hear_futures(link: Link) -> None:
    """What failed in one that nobody asks."""
    kind: Any = importlib.import_module("concurrent.futures").Future
    keep = kind.set_exception

    @functools.wraps(keep)
    def kept(future: Any, error: BaseException | None) -> None:
        if error is not None and link.is_a_check(error):
            link.unasked[future] = error
        keep(future, error)

    def asking(ask: Any) -> Any:
        @functools.wraps(ask)
        def asked(future: Any, *args: Any, **keywords: Any) -> Any:
            try:
                return ask(future, *args, **keywords)
            finally:
                link.unasked.pop(future, None)

        return asked

    kind.set_exception = kept
    for name in ("result", "exception"):
        setattr(kind, name, asking(getattr(kind, name)))


def hear_the_rest(link: Link) -> None:
    """Wait for the threads that Python waits for at its end, and hear what nobody has asked for by then."""
    threading._shutdown()  # type: ignore[attr-defined]
    for error in link.unasked.values():
        link.hear(error)


def hear_tasks(link: Link) -> None:
    """Of a task that has failed, and that nobody has asked for its result, its loop is told."""
    kind: Any = importlib.import_module("asyncio").BaseEventLoop
    tell = kind.call_exception_handler

    @functools.wraps(tell)
    def told(loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and link.is_a_check(error):
            link.hear(error)
        tell(loop, context)

    kind.call_exception_handler = told


def look_at_cases(link: Link) -> None:
    kind: Any = unittest.TestCase
    run = kind.run

    @functools.wraps(run)
    def looked_at(case: Any, *args: Any) -> Any:
        is_async = isinstance(case, unittest.IsolatedAsyncioTestCase)
        for name in (case.id().rpartition(".")[2], *SET_UP):
            function = getattr(case, name, None)
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                link.miss(f"{name} of a TestCase that yields")
            elif inspect.iscoroutinefunction(function) and (name in SET_UP or not is_async):
                link.miss(f"{name} of a TestCase that is a coroutine")
        return run(case, *args)

    kind.run = looked_at


def look_at_coroutines(link: Link) -> None:
    tell = warnings._warn_unawaited_coroutine  # type: ignore[attr-defined]  # Where CPython tells of one as it goes.

    def told(coroutine: types.CoroutineType[Any, Any, Any]) -> None:
        if coroutine.cr_code.co_filename == ends.SCRIPT_NAME:
            link.miss(f"{coroutine.__name__}, a coroutine that is never awaited")
        tell(coroutine)

    warnings._warn_unawaited_coroutine = told  # type: ignore[attr-defined]
