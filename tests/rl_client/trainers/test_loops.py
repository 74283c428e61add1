"""Graders as they are reached from event loops, of which trainers have several."""

from __future__ import annotations

import asyncio
import gc

import psutil
import pytest

from rl_client.trainers.loops import aclose
from rl_client.trainers.trl_reward import TrlReward
from tests.rl_client.answering import answering
from tests.rl_client.doubling import ACCEPTED
from tests.rl_client.results import PROBLEM


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_connections_of_loops_that_have_ended_do_not_pile_up() -> None:
    with answering(lambda _: (200, {}, ACCEPTED)) as url:
        reward = TrlReward(url=url)

        async def graded() -> None:
            answers = [f"```python\n{number}\n```" for number in range(4)]
            assert await reward([""] * 4, answers, label=[PROBLEM] * 4) == [1.0] * 4

        async def last() -> int:
            await graded()
            # Here, since those that are gone complain that nobody closed them.
            gc.collect()
            port = int(url.rpartition(":")[2])
            left = [one for one in psutil.Process().net_connections("tcp") if one.raddr and one.raddr.port == port]
            await aclose()
            return len(left)

        for _ in range(8):
            asyncio.run(graded())
        assert asyncio.run(last()) <= 4
