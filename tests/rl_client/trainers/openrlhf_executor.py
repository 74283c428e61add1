"""Run by an interpreter that has OpenRLHF: its own SingleTurnAgentExecutor over a scripted engine.

Reads what to do as JSON on stdin, and prints what came of it. The tokenizer is a real one, of bytes, made here.
"""

from __future__ import annotations

import asyncio
import json
import sys
from types import SimpleNamespace
from typing import Any

import torch
from byte_tokenizer import byte_tokenizer
from openrlhf.trainer.ppo_utils.experience import Experience, split_experience_batch
from openrlhf.utils.agent import SingleTurnAgentExecutor


class Engine:
    """Says what it was told to say, one answer after the other."""

    def __init__(self, answers: list[list[int]]) -> None:
        self._answers = iter(answers)

    async def generate(self, prompt_ids: list[int], *_: object, **__: object) -> Any:
        said = SimpleNamespace(token_ids=next(self._answers), finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[said])


async def main() -> None:
    given = json.load(sys.stdin)
    tokens = byte_tokenizer()
    engine = Engine([tokens(text=answer, add_special_tokens=False)["input_ids"] for answer in given["answers"]])
    executor = SingleTurnAgentExecutor(given["reward"])
    parameters = SimpleNamespace(max_tokens=512, logprobs=None)
    outputs = await asyncio.gather(
        *(executor.execute(given["prompt"], given["label"], parameters, 4096, tokens, engine) for _ in given["answers"])
    )
    # As SamplesGenerator makes it of a response.
    experiences = [
        Experience(
            sequences=torch.tensor([one["observation_tokens"]]),
            rewards=torch.tensor([one["reward"]]),
            scores=torch.tensor([one["scores"]]),
            info={
                "reward": torch.tensor([one["reward"]]),
                **{name: torch.tensor([value]) for name, value in one["extra_logs"].items()},
            },
        )
        for one in outputs
    ]
    merged = Experience.concat_experiences(experiences, 0)
    told = {
        "rewards": merged.rewards.flatten().tolist(),
        "scores": merged.scores.flatten().tolist(),
        "format_error": merged.info["rkgrade_format_error"].flatten().tolist(),
        "apart": len(split_experience_batch(merged)),
    }
    print(json.dumps(told))


asyncio.run(main())
