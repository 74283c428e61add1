"""An event loop for a command: SIGTERM unwinds what runs in it, as Ctrl-C does, and ends the command then.

A signal's handler runs in the midst of whatever the loop is at, so that what it raises ends any one task, or a callback
of the loop's own, and the others are left to complain.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, in the main thread. Raises SystemExit of SIGTERM; of a second one at once, as Ctrl-C does."""
    is_ended = False

    async def main() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None

        def end(number: int, frame: FrameType | None) -> None:
            nonlocal is_ended
            if is_ended:
                raise SystemExit(128 + number)
            is_ended = True
            task.cancel()
            # A loop that waits for something to happen sees so that something did.
            loop.call_soon_threadsafe(lambda: None)

        before = signal.signal(signal.SIGTERM, end)
        try:
            return await work
        finally:
            signal.signal(signal.SIGTERM, before)

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        if not is_ended:
            raise
        raise SystemExit(128 + signal.SIGTERM) from None
