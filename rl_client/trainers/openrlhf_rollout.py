"""Rollouts of several turns for OpenRLHF 0.11, as its rollout engine asks for them; `openrlhf_agent` hands it over.

OpenRLHF knows no sample without a reward, and an error in one ends the training. So a sample that cannot be scored (the
grader stayed away for longer than RKGRADE_PATIENCE_S, failed at this program, or lost a session twice; the label is
none) has in place of a reward, stated in its logs (`rkgrade_rewarded` 0.0) and as an error in the log:

* RKGRADE_UNSCORED, where that is set; else
* the mean of the other samples of its prompt, so that it has no advantage over them and changes none of theirs; else,
  where none of them was scored either,
* the mean of what this engine scored last, with a `scores` of 0.0 for all, for which dynamic filtering drops the
  prompt. Without filtering all of the group's advantages are 0 then, but for estimators without a group's baseline.

Its own multi-turn executor would do for none of this: it gives a reward step by step, reads the logs of the last one,
raises what a step raises, goes on past `max_len` with what is heard, and forgets the logs where the prompt leaves no
room.
Knows neither torch nor OpenRLHF: engine, tokenizer and sampling parameters are what it hands over.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import statistics
from collections import deque
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from rl_client.client import Grader
from rl_client.episodes import Episode, Setting
from rl_client.errors import BadLabel, ClientError, SessionLost
from rl_client.rollout import Scored, logs_of_none
from rl_client.trainers.openrlhf import score_of, thought, without_end
from rl_client.trainers.settings import Settings
from rl_client.trainers.transcript import Chat, Transcript

_LOG = logging.getLogger(__name__)

#: How often a sample is rolled out whose session the grader loses.
_ROLLOUTS = 2
#: Rewards that tell what one is about, where a whole group has none.
_REMEMBERED = 1024
#: A further turn that has no more room than this is not begun.
_LEAST_TURN = 16


@dataclass(slots=True)
class _Group:
    """The samples of one prompt that are on their way together."""

    pending: int = 0
    scored: list[tuple[float, float]] = field(default_factory=list)
    """Rewards and scores."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class _Came:
    """What one rollout came to."""

    transcript: Transcript
    truncated: bool
    scored: Scored | None
    logs: dict[str, float]


class Rollouts:
    """All of one engine's, on one event loop."""

    def __init__(self, setting: Setting, given: Settings, *, role: str) -> None:
        """`role`: whose words a model hears. Raises ClientError where no grader answers, or none that does this."""
        self._setting = setting
        self._role = role
        self._unscored = given.unscored
        self._grader = given.grader()
        self._scorer = given.scorer(self._grader)
        with Grader(given.url, token=given.token) as grader:
            grader.check()
            if setting.name == "terminal":
                grader.check_sessions()
        self._groups: dict[tuple[int, str], _Group] = {}
        self._latest: deque[float] = deque(maxlen=_REMEMBERED)
        self._chats: dict[int, tuple[Any, Chat]] = {}

    async def aclose(self) -> None:
        await self._grader.aclose()

    async def roll_out(
        self, prompt: str, label: object, sampling: Any, most_tokens: int, tokenizer: Any, engine: Any
    ) -> dict[str, Any]:
        """One sample, in the form in which OpenRLHF takes it.

        `sampling`: of each turn, which its `max_tokens` bounds, and what is left of `most_tokens`. Raises what the
        engine raises, and nothing else.
        """
        async with self._in_group(sampling, prompt) as group:
            came = await self._rolled_out(prompt, label, sampling, most_tokens, tokenizer, engine)
            scored = came.scored
            if scored is not None and scored.reward is not None:
                reward, score = scored.reward, score_of(scored, scored.reward)
                group.scored.append((reward, score))
                self._latest.append(reward)
        if scored is None or scored.reward is None:
            reward, score = await self._in_place_of_a_reward(group)
        return {
            "prompt": prompt,
            "label": label,
            "images": None,
            "mm_train_inputs": None,
            "reward": reward,
            "scores": score,
            "observation_tokens": came.transcript.tokens,
            "action_ranges": came.transcript.actions,
            "rollout_log_probs": came.transcript.log_probs,
            "truncated": came.truncated,
            "extra_logs": came.logs,
        }

    # -- one rollout

    async def _rolled_out(
        self, prompt: str, label: object, sampling: Any, most: int, tokenizer: Any, engine: Any
    ) -> _Came:
        for rollout in range(1, _ROLLOUTS + 1):
            episode = self._setting.episode(self._grader, self._scorer, label)
            transcript = _begun(prompt, sampling, most, tokenizer)
            error: Exception | None = None
            speaking = _Speaking(engine, sampling, transcript, tokenizer)
            try:
                await self._spoken(episode, speaking, self._chat(tokenizer))
            except _Engine as failed:
                raise failed.error from None
            except Exception as failure:  # noqa: BLE001 - whatever it is, it must not end the training
                error = failure
            finally:
                with contextlib.suppress(Exception):
                    await episode.aclose()
            if isinstance(error, SessionLost) and rollout < _ROLLOUTS:
                _LOG.warning("a rollout begins anew: %s", error)
                continue
            break
        self._tell(error, episode.scored)
        logs = episode.scored.logs() if episode.scored is not None else logs_of_none()
        numbers = {
            **episode.numbers(),
            "rollouts": float(rollout),
            "bad_label": float(isinstance(error, BadLabel)),
        }
        return _Came(
            transcript,
            speaking.truncated,
            episode.scored,
            {**logs, **{f"rkgrade_{name}": value for name, value in numbers.items()}},
        )

    async def _spoken(self, episode: Episode, speaking: _Speaking, chat: Chat) -> None:
        transcript = speaking.transcript
        while True:
            text = await speaking.turn()
            heard = await episode.hear(text, last=transcript.room <= _LEAST_TURN)
            if heard is None:
                return
            tokens = chat.heard(heard, transcript.tokens[-1])
            if len(tokens) + _LEAST_TURN > transcript.room:
                speaking.truncated = True
                await episode.end()
                return
            transcript.hear(tokens)

    def _chat(self, tokenizer: Any) -> Chat:
        # It comes anew, unpickled, with every call.
        key = id(tokenizer)
        known = self._chats.get(key)
        if known is None or known[0] is not tokenizer:
            if len(self._chats) >= 16:
                self._chats.clear()
            known = self._chats[key] = tokenizer, Chat(tokenizer, self._role)
        return known[1]

    def _tell(self, error: Exception | None, scored: Scored | None) -> None:
        if isinstance(error, ClientError):
            _LOG.error("a sample without a reward: %s", error)
        elif error is not None:
            _LOG.error("a sample without a reward", exc_info=error)
        elif scored is not None and scored.reward is None:
            _LOG.error("a sample without a reward: %s", scored.why_unrewarded)

    # -- samples without a reward

    @contextlib.asynccontextmanager
    async def _in_group(self, sampling: Any, prompt: str) -> AsyncIterator[_Group]:
        """The samples of one prompt begin together, with one and the same object of sampling parameters."""
        key = id(sampling), prompt
        group = self._groups.setdefault(key, _Group())
        group.pending += 1
        try:
            # Until all of them have begun.
            await asyncio.sleep(0)
            yield group
        finally:
            group.pending -= 1
            if not group.pending:
                self._groups.pop(key, None)
                group.ended.set()

    async def _in_place_of_a_reward(self, group: _Group) -> tuple[float, float]:
        await group.ended.wait()
        mean_score = statistics.fmean(score for _, score in group.scored) if group.scored else 0.0
        if self._unscored is not None:
            return self._unscored, mean_score
        if group.scored:
            return statistics.fmean(reward for reward, _ in group.scored), mean_score
        return statistics.fmean(self._latest) if self._latest else 0.0, 0.0


def _begun(prompt: str, sampling: Any, most: int, tokenizer: Any) -> Transcript:
    """The prompt; of one that is too long, its end, as OpenRLHF cuts it."""
    tokens = list(tokenizer(prompt, add_special_tokens=False)["input_ids"])
    tokens = tokens[-max(1, most - (sampling.max_tokens or 1)) :]
    return Transcript(tokens, most, None if sampling.logprobs is None else [0.0] * len(tokens))


class _Engine(Exception):
    """Carries what the engine raised past those who catch what is ours."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _Speaking:
    """A model that adds its turns to a transcript."""

    def __init__(self, engine: Any, sampling: Any, transcript: Transcript, tokenizer: Any) -> None:
        self.transcript = transcript
        self.truncated = False
        """Whether its last turn was cut off, or the one behind it had no room."""
        self._engine = engine
        self._sampling = sampling
        self._tokenizer = tokenizer

    async def turn(self) -> str:
        """The next one, as text without what ends it, and with what opened its thoughts. Raises _Engine."""
        heard = self._text(self.transcript.tokens[-_LEAST_TURN:])
        # One object is shared by all samples of a prompt.
        sampling = deepcopy(self._sampling)
        room = self.transcript.room
        sampling.max_tokens = min(room, sampling.max_tokens or room)
        try:
            answer = await self._engine.generate(list(self.transcript.tokens), sampling)
            said = answer.outputs[0]
            tokens = list(said.token_ids)
            log_probs = None
            if self.transcript.log_probs is not None:
                log_probs = [of[token].logprob for token, of in zip(tokens, said.logprobs, strict=True)]
            self.transcript.say(tokens, log_probs)
        except Exception as error:
            raise _Engine(error) from error
        self.truncated = said.finish_reason == "length"
        return thought(heard, without_end(self._text(tokens)))

    def _text(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=False))
