"""SIGTERM in the midst of an event loop."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time

import pytest

from rl_client.commands.ending import interruptible
from rl_client.commands.running import run


def test_sigterm_unwinds_all_tasks_and_no_task_complains(caplog: pytest.LogCaptureFixture) -> None:
    unwound: list[int] = []

    async def waiting(number: int) -> None:
        try:
            if number == 2:
                os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(60)
        finally:
            unwound.append(number)

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(waiting(number))

    begun_s = time.monotonic()
    with pytest.raises(SystemExit) as ended, interruptible("ended"):
        run(work())
    gc.collect()
    assert (ended.value.code, sorted(unwound), caplog.records) == (143, [0, 1, 2, 3], [])
    assert time.monotonic() - begun_s < 30


def test_a_second_sigterm_does_not_wait() -> None:
    async def work() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("it is ended by now")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        run(work())
    gc.collect()
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_comes_of_the_work_is_handed_on() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert run(work()) == 7
