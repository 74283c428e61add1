"""Samples of several turns: the settings `tools` and `agentic`, whose turns are those of `rl_client.episodes`.

An episode ends with an answer, which is kept as any other sample is, and graded from there: what it cost to come by
must not be lost with a grader.
"""

from __future__ import annotations

import contextlib

from pydantic import ValidationError

from rl_client.async_client import AsyncGrader
from rl_client.episodes import Name, Setting
from rl_client.errors import Refused, SessionLost
from rl_client.evaluate.errors import PromptTooLong
from rl_client.evaluate.prompts import messages_of, system_of_tools
from rl_client.evaluate.rows import Generation, Usage
from rl_client.evaluate.sampling import fields_of, usage_of, without_room
from rl_client.evaluate.server import ModelServer
from rl_client.evaluate.settings import Sampling
from rl_client.evaluate.tasks import Task, seed_of
from rl_client.rollout import TRIES, Scored, Scorer
from rl_client.sendable import sendable
from rl_client.sessions import AsyncSession
from rl_client.tools import ToolLimits
from service.contract import Detail, FileInfo

_NAMES: dict[str, Name] = {"tools": "python", "agentic": "terminal"}


class _Answered(Exception):
    """The episode's answer: a text, or a program that was handed in."""

    def __init__(self, text: str, source: str | None) -> None:
        super().__init__()
        self.text = text
        self.source = source


class _Answers(Scorer):
    """Takes answers where a `Scorer` would have them graded."""

    async def score(
        self, completion: str, label: object, *, deadline_s: float | None = None, detail: Detail | None = None
    ) -> Scored:
        raise _Answered(completion, None)

    async def score_file(self, session: AsyncSession, path: str, label: object) -> Scored:
        """A file that is not there, is no text or is longer than one reads at once, is an answer without a program."""
        try:
            found = await session.read(sendable(path))
        except (ValidationError, Refused):
            raise _Answered("", None) from None
        raise _Answered("", found.text if isinstance(found, FileInfo) and not found.truncated else None)


class Conversations:
    """Samples one rollout after the other, or many at once."""

    def __init__(self, server: ModelServer, grader: AsyncGrader, settings: Sampling, language: str) -> None:
        self._server = server
        self._grader = grader
        self._settings = settings
        self._answers = _Answers(grader, defaults={"language": language})
        self._setting = Setting(_NAMES[settings.setting], ToolLimits(calls=settings.calls))

    async def sample(self, task: Task, number: int) -> Generation:
        """One rollout; begun anew, a few times, where the grader loses its session.

        Raises ServerError, GraderError, and SessionLost of the last try.
        """
        for _ in range(TRIES - 1):
            with contextlib.suppress(SessionLost):
                return await self._rollout(task, number)
        return await self._rollout(task, number)

    async def _rollout(self, task: Task, number: int) -> Generation:
        """Where the model has no room for what it hears, what it said before that is its answer."""
        settings = self._settings
        messages = messages_of(task.prompt, system_of_tools(self._setting.tools, settings.calls))
        usage = Usage(requests=0, prompt_tokens=0, completion_tokens=0, seconds=0.0)
        turns, finish_reason = 0, None
        async with self._setting.episode(self._grader, self._answers, {"problem": task.problem_id}) as episode:
            try:
                while True:
                    fields = fields_of(settings, seed_of(settings.run, task, number, turns))
                    try:
                        reply = await self._server.chat(messages, 1, fields)
                    except PromptTooLong as error:
                        if not turns:
                            return without_room(task, number, error)
                        finish_reason = "length"
                        await episode.end()
                    else:
                        [choice] = reply.choices
                        usage, turns, finish_reason = _sum(usage, usage_of(reply)), turns + 1, choice.finish_reason
                        messages.append({"role": "assistant", "content": choice.text})
                        # A turn that was cut off left no room for another.
                        heard = await episode.hear(choice.text, last=finish_reason == "length")
                        messages.append({"role": "user", "content": heard or ""})
            except _Answered as answer:
                return Generation(
                    task=task.id,
                    problem_id=task.problem_id,
                    key=task.key,
                    sample=number,
                    seed=seed_of(settings.run, task, number, 0),
                    text=answer.text,
                    source=answer.source,
                    finish_reason=finish_reason,
                    turns=turns,
                    calls=int(episode.numbers()["calls"]),
                    conversation=tuple(messages),
                    usage=usage,
                )


def _sum(one: Usage, other: Usage) -> Usage:
    def total(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None else a + b

    return Usage(
        requests=one.requests + other.requests,
        prompt_tokens=total(one.prompt_tokens, other.prompt_tokens),
        completion_tokens=total(one.completion_tokens, other.completion_tokens),
        seconds=one.seconds + other.seconds,
    )
