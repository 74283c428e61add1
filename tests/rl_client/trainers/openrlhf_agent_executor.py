"""Run by an interpreter that has OpenRLHF: the AgentExecutor, loaded as OpenRLHF loads it, over a scripted engine.

Reads scenarios as JSON on stdin, and prints what came of each. The tokenizer is a real one, trained here, with a chat
template of Qwen's kind. The engine says its turns in tokens that no tokenizer would make of them: a byte each.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from types import SimpleNamespace
from typing import Any

import torch
from openrlhf.trainer.ppo_utils.experience import Experience, split_experience_batch
from openrlhf.utils.agent import AgentExecutorBase
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

TEMPLATE = (
    "{% for m in messages %}"
    "{% if m.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n"
    "{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    made.train_from_iterator(
        ["print(int(input())) completed. [stdout] [/stdout] error: tests passed user\n"] * 9, trainer
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|im_end|>")
    fast.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    # In no list of special tokens, as most of Llama 3's.
    fast.add_tokens([AddedToken("<|turn|>", special=True)])
    assert "<|turn|>" not in fast.all_special_tokens
    fast.chat_template = TEMPLATE
    return fast


def bytewise(tokens: PreTrainedTokenizerFast, text: str) -> list[int]:
    """Each byte a token, but for special ones."""
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    ids: list[int] = []
    for piece in text.replace("<|im_end|>", "\0<|im_end|>\0").split("\0"):
        if piece == "<|im_end|>":
            ids.append(tokens.convert_tokens_to_ids(piece))
        elif piece:
            ((mapped, _),) = letters.pre_tokenize_str(piece)
            ids.extend(tokens.convert_tokens_to_ids(letter) for letter in mapped)
    return ids


class Engine:
    """Says what it was told to say, one turn after the other, as far as it is let; an engine that fails raises."""

    def __init__(self, tokens: PreTrainedTokenizerFast, turns: list[str]) -> None:
        self._turns = [bytewise(tokens, turn) for turn in turns]
        self.prompts: list[list[int]] = []
        self.said: list[tuple[list[int], list[float]]] = []
        self.asked: list[int] = []

    async def generate(self, prompt_ids: list[int], sampling: Any, multi_modal_data: object = None) -> Any:
        await asyncio.sleep(0)
        if self.prompts and prompt_ids == self.prompts[0]:
            # Rolled out anew.
            self.prompts, self.said, self.asked = [], [], []
        turn = self._turns[len(self.said)]
        ids = turn[: sampling.max_tokens]
        log_probs = [-(len(self.said) + 1) - position / 1000 for position in range(len(ids))]
        self.prompts.append(prompt_ids)
        self.asked.append(sampling.max_tokens)
        self.said.append((ids, log_probs))
        said = SimpleNamespace(
            token_ids=ids,
            text="never read",
            finish_reason="length" if len(ids) < len(turn) else "stop",
            logprobs=[
                {token: SimpleNamespace(logprob=value), token + 1: SimpleNamespace(logprob=-99.0)}
                for token, value in zip(ids, log_probs, strict=True)
            ],
        )
        return SimpleNamespace(outputs=[said])


def load(path: str) -> AgentExecutorBase:
    """As `openrlhf.trainer.ray.vllm_engine` does, which imports vLLM and cannot be imported here."""
    spec = importlib.util.spec_from_file_location("agent_module", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert issubclass(module.AgentExecutor, AgentExecutorBase)
    return module.AgentExecutor()  # type: ignore[no-any-return]


def checked(tokens: PreTrainedTokenizerFast, engine: Engine, one: dict[str, Any], prompt: str, most: int) -> list[str]:
    """What was heard between the turns, after looking at each token of it."""
    sequence, ranges, log_probs = one["observation_tokens"], one["action_ranges"], one["rollout_log_probs"]
    assert len(sequence) == len(log_probs) <= most
    assert [sequence[start:end] for start, end in ranges] == [ids for ids, _ in engine.said]
    assert [log_probs[start:end] for start, end in ranges] == [values for _, values in engine.said]
    assert engine.prompts == [sequence[:start] for start, _ in ranges]
    outside = set(range(len(sequence))) - {place for start, end in ranges for place in range(start, end)}
    assert {log_probs[place] for place in outside} <= {0.0}
    assert ranges[-1][1] == len(sequence), "nothing is heard behind the last turn"
    first = tokens(prompt, add_special_tokens=False)["input_ids"]
    assert first[-ranges[0][0] :] == sequence[: ranges[0][0]]
    gaps = zip((end for _, end in ranges), (start for start, _ in ranges[1:]), strict=False)
    marks = tokens.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>", "<|turn|>"])
    heard = [sequence[end:start] for end, start in gaps]
    # Those of the template and no others: a tool's own would pass for somebody else's turn.
    assert all([marks.index(one) for one in ids if one in marks] in ([0, 1, 0], [1, 0, 1, 0]) for ids in heard)
    return [tokens.decode(ids) for ids in heard]


def experience(one: dict[str, Any], most: int) -> Experience:
    """As SamplesGenerator makes it of a response; that class imports vLLM."""
    mask = torch.zeros(len(one["observation_tokens"]), dtype=torch.long)
    for start, end in one["action_ranges"]:
        mask[start:end] = 1
    info = {"reward": torch.tensor([one["reward"]]), "score": torch.tensor([one["scores"]])}
    for key, value in one["extra_logs"].items():
        info[key] = torch.tensor([value])
    return Experience(
        sequences=torch.tensor([one["observation_tokens"]])[:, :most],
        attention_mask=torch.ones(1, len(one["observation_tokens"]), dtype=torch.long),
        action_mask=mask[1:most].unsqueeze(0),
        rollout_log_probs=torch.tensor([one["rollout_log_probs"][1:most]]),
        rewards=torch.tensor([one["reward"]]),
        scores=torch.tensor([one["scores"]]),
        truncated=torch.tensor([one["truncated"]]),
        info=info,
    )


async def scenario(given: dict[str, Any], tokens: PreTrainedTokenizerFast, executor: AgentExecutorBase) -> Any:
    most = given.get("max_len", 4096)
    sampling = SimpleNamespace(max_tokens=given.get("max_tokens"), logprobs=1)
    engines = [Engine(tokens, turns) for turns in given["samples"]]
    outputs = await asyncio.gather(
        *(executor.execute(given["prompt"], given["label"], sampling, most, tokens, engine) for engine in engines),
        return_exceptions=True,
    )
    if any(isinstance(one, BaseException) for one in outputs):
        return {"raised": [type(one).__name__ for one in outputs]}
    heard = [checked(tokens, *pair, given["prompt"], most) for pair in zip(engines, outputs, strict=True)]
    assert sampling.max_tokens == given.get("max_tokens"), "all samples share it"
    merged = Experience.concat_experiences([experience(one, most) for one in outputs], 0)
    assert len({tuple(one["extra_logs"]) for one in outputs}) == 1
    assert all(type(value) is float for one in outputs for value in one["extra_logs"].values())
    return {
        "rewards": merged.rewards.flatten().tolist(),
        "scores": merged.scores.flatten().tolist(),
        "trained": merged.action_mask.sum(-1).tolist(),
        "said": [sum(len(ids) for ids, _ in engine.said) for engine in engines],
        "asked": [engine.asked for engine in engines],
        "truncated": merged.truncated.flatten().tolist(),
        "heard": heard,
        "logs": [
            {name.removeprefix("rkgrade_"): value for name, value in one["extra_logs"].items()} for one in outputs
        ],
        "apart": len(split_experience_batch(merged)),
    }


async def main() -> None:
    path, scenarios = json.load(sys.stdin)
    tokens = tokenizer()
    executor = load(path)
    told = [await scenario(given, tokens, executor) for given in scenarios]
    await executor.aclose()  # type: ignore[attr-defined]
    print(json.dumps(told))


asyncio.run(main())
