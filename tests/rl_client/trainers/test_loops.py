"""Graders as they are reached from event loops, of which trainers have several."""

from __future__ import annotations

import asyncio
import gc

import psutil
import pytest

from rl_client.trainers.trl_reward import TrlReward
from tests.rl_client.answering import answering
from tests.rl_client.doubling import ACCEPTED
from tests.rl_client.results import PROBLEM


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_connections_of_loops_that_have_ended_do_not_pile_up() -> None:
    with answering(lambda _: (200, {}, ACCEPTED)) as url:
        port = int(url.rpartition(":")[2])
        reward = TrlReward(url=url)
        for _ in range(8):
            assert asyncio.run(reward([""] * 4, ["```python\n```"] * 4, label=[PROBLEM] * 4)) == [1.0] * 4
        gc.collect()
        left = [one for one in psutil.Process().net_connections("tcp") if one.raddr and one.raddr.port == port]
        # Those of the last loop, and of the one before it until they are looked for.
        assert len(left) <= 8
