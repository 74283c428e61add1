"""One grader for each event loop and each way to it: connections are a loop's own, and trainers have several loops."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rl_client.async_client import AsyncGrader
from rl_client.rollout import Scorer
from rl_client.trainers.settings import Settings


@dataclass(frozen=True, slots=True)
class Reached:
    """A grader, as it is reached from one event loop."""

    grader: AsyncGrader
    scorer: Scorer


_reached: dict[asyncio.AbstractEventLoop, dict[str, Reached]] = {}


def reached(settings: Settings) -> Reached:
    """The grader that these settings name, from the loop that runs. Raises BadLabel of their defaults for labels."""
    # Connections hold their loop, so that none would go by itself; some trainers have a loop for each batch.
    for ended in [loop for loop in list(_reached) if loop.is_closed()]:
        _reached.pop(ended, None)
    known = _reached.setdefault(asyncio.get_running_loop(), {})
    key = repr((settings.url, settings.token, settings.patience_s, settings.defaults))
    if key not in known:
        grader = settings.grader()
        known[key] = Reached(grader, settings.scorer(grader))
    return known[key]


async def aclose() -> None:
    """Close the connections of the loop that runs; what is asked for after that begins anew."""
    for one in _reached.pop(asyncio.get_running_loop(), {}).values():
        await one.grader.aclose()
