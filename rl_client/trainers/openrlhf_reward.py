"""OpenRLHF 0.11: the file for `--reward.remote_url`, whose `reward_func` it calls for each answer.

    --reward.remote_url "$(python -c 'import rl_client.trainers.openrlhf_reward as one; print(one.__file__)')"
    --data.label_key label

What it reads where the trainer's workers run says `rl_client.trainers.settings`.

OpenRLHF knows no answer without a reward: it ends where it is told of none, some steps later and with an error about
something else. So an answer that has none is an error here, which is logged, unless RKGRADE_UNSCORED says what it is
worth; `rkgrade_rewarded` in the logs is 0 then.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from typing import Any

from rl_client.errors import ClientError
from rl_client.rollout import Scored
from rl_client.trainers.openrlhf import answer_of, score_of
from rl_client.trainers.settings import Settings

_LOG = logging.getLogger(__name__)

#: OpenRLHF calls from 32 threads at most, in each of its engines.
_CONNECTIONS = 32


def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[object]) -> dict[str, Any]:
    """The reward of an answer. `queries`: prompt and answer as text, special tokens and all; one, as OpenRLHF sends it.

    Returns `rewards`, `scores` (from 0 to 1, whatever the rewards' scale: dynamic sampling goes by them) and
    `extra_logs`: numbers. Raises ClientError, and ValueError for several at once.
    """
    try:
        (query,), (prompt,), (label,) = queries, prompts, labels
        scored, reward = _background().rewarded(answer_of(query, prompt), label)
    except Exception as error:
        # OpenRLHF tells of it at a level that nobody reads.
        _LOG.error("no reward: %s", error, exc_info=not isinstance(error, ClientError))
        raise
    return {"rewards": reward, "scores": score_of(scored, reward), "extra_logs": scored.logs()}


class _Background:
    """A scorer on an event loop of its own: the threads that wait for rewards share its connections."""

    def __init__(self) -> None:
        self._settings = Settings.given()
        self._grader = self._settings.grader(_CONNECTIONS)
        self._scorer = self._settings.scorer(self._grader)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rkgrade", daemon=True)
        self._thread.start()

    def rewarded(self, answer: str, label: object) -> tuple[Scored, float]:
        work = self._settings.rewarded(self._scorer.score(answer, label))
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._grader.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


_LOCK = threading.Lock()
_running: list[_Background] = []


def _background() -> _Background:
    # The first answers come from many threads at once.
    with _LOCK:
        if not _running:
            _running.append(_Background())
        return _running[0]


def close() -> None:
    """End what the first call began, with its connections; a further call begins anew, by the settings of then."""
    with _LOCK:
        while _running:
            _running.pop().close()
