"""Which samples are asked for together, and asking for them: a chunk at a time, each with a seed of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from rl_client.evaluate.errors import PromptTooLong
from rl_client.evaluate.prompts import messages_of
from rl_client.evaluate.rows import TOO_LONG, Generation, Usage
from rl_client.evaluate.server import ModelServer, Reply
from rl_client.evaluate.settings import Sampling
from rl_client.evaluate.tasks import Task, seed_of


@dataclass(frozen=True, slots=True)
class Chunk:
    """Samples of one task that are asked for at once."""

    task: Task
    first: int
    count: int


def chunks(task: Task, missing: Iterable[int], size: int) -> list[Chunk]:
    """Runs of the samples that are missing, each within one of [0, size), [size, 2 size) ..."""
    found: list[Chunk] = []
    for sample in sorted(missing):
        last = found[-1] if found else None
        if last is not None and sample == last.first + last.count and sample % size:
            found[-1] = Chunk(task, last.first, last.count + 1)
        else:
            found.append(Chunk(task, sample, 1))
    return found


def fields_of(settings: Sampling, seed: int) -> dict[str, Any]:
    """Those of a request, but for what is asked."""
    return {
        "model": settings.model,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_tokens": settings.max_tokens,
        "seed": seed,
        **({"stop": list(settings.stop)} if settings.stop else {}),
        **settings.extra,
    }


async def sample(
    server: ModelServer,
    settings: Sampling,
    chunk: Chunk,
    keep: Callable[[Sequence[Generation]], None],
    refused: MutableMapping[str, str],
) -> None:
    """Have a chunk sampled, each request's samples kept as they come: some servers give fewer than are asked for.

    `refused`: by its task what was said of a prompt that is too long; added to, and not asked for again. Raises
    ServerError.
    """
    task, first, end = chunk.task, chunk.first, chunk.first + chunk.count
    while first < end:
        seed = seed_of(settings.run, task, first)
        fields = fields_of(settings, seed)
        try:
            if task.id in refused:
                raise PromptTooLong(refused[task.id])
            if settings.api == "chat":
                reply = await server.chat(messages_of(task.prompt, None), end - first, fields)
            else:
                reply = await server.complete(task.prompt, end - first, fields)
        except PromptTooLong as error:
            refused[task.id] = str(error)
            keep([without_room(task, number, error) for number in range(first, end)])
            return
        keep(_generations(task, first, seed, reply))
        first += len(reply.choices)


def without_room(task: Task, number: int, error: PromptTooLong) -> Generation:
    """A sample that there is none of."""
    return Generation(
        task=task.id,
        problem_id=task.problem_id,
        key=task.key,
        sample=number,
        finish_reason=TOO_LONG,
        refusal=str(error),
        turns=0,
    )


def usage_of(reply: Reply) -> Usage:
    return Usage(prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens, seconds=reply.seconds)


def _generations(task: Task, first: int, seed: int, reply: Reply) -> list[Generation]:
    return [
        Generation(
            task=task.id,
            problem_id=task.problem_id,
            key=task.key,
            sample=first + offset,
            seed=seed,
            text=choice.text,
            reasoning=choice.reasoning,
            finish_reason=choice.finish_reason,
            usage=usage_of(reply) if offset == 0 else None,
        )
        for offset, choice in enumerate(reply.choices)
    ]
