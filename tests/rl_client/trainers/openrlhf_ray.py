"""Run by an interpreter that has OpenRLHF, Ray and vLLM's CPU build: OpenRLHF's own way from prompts to experiences,
with nothing put in the place of any of it, and a model of some thousand weights that says whatever it likes.

Arguments: the agent's file, and the label. Prints what came of each sample as JSON. The settings of the agent are
variables.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ray
import torch
from byte_tokenizer import byte_tokenizer
from openrlhf.datasets import PromptDataset
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator
from openrlhf.trainer.ray.vllm_engine import RolloutRayActor
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

MOST = 512
A_TURN = 24

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def made(folder: Path) -> PreTrainedTokenizerFast:
    """A tokenizer of bytes, and a model with heads of a size that vLLM has kernels for on CPUs."""
    tokens = byte_tokenizer(TEMPLATE, pad="<|im_end|>")
    tokens.save_pretrained(folder)
    torch.manual_seed(1)
    config = Qwen2Config(
        vocab_size=len(tokens), hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=MOST, eos_token_id=tokens.eos_token_id, tie_word_embeddings=True,
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return tokens


def main() -> None:
    agent, label = sys.argv[1:]
    arguments = SimpleNamespace(
        data=SimpleNamespace(input_key="input", label_key="label", apply_chat_template=True, image_key="images"),
        rollout=SimpleNamespace(batch_size=2, n_samples_per_prompt=2, vllm_generate_batch_size=2),
        vllm=SimpleNamespace(enable_sleep=False),
        algo=SimpleNamespace(
            dynamic_filtering_enable=False, advantage=SimpleNamespace(is_correction_level="token")
        ),
    )  # fmt: skip
    strategy = SimpleNamespace(args=arguments, is_rank_0=lambda: True)
    with tempfile.TemporaryDirectory() as name:
        tokens = made(Path(name))
        rows = [{"input": [{"role": "user", "content": text}], "label": label} for text in ("Double it.", "Again.")]
        data = PromptDataset(rows, tokens, strategy)
        loader = DataLoader(data, batch_size=1, collate_fn=data.collate_fn)
        ray.init(num_cpus=2, num_gpus=0, include_dashboard=False, log_to_driver=True)
        actor = RolloutRayActor.options(num_cpus=1, num_gpus=0).remote(
            model=name, agent_func_path=agent, remote_rm_url=None, num_gpus=0, distributed_executor_backend="uni",
            dtype="float32", max_model_len=MOST, enforce_eager=True, seed=1,
        )  # fmt: skip
        generator = SamplesGenerator(strategy, loader, None, tokens, [actor])
        samples, _, consumed, _ = generator.generate_samples(max_new_tokens=A_TURN, max_len=MOST, temperature=1.0)
        print(json.dumps({"consumed": consumed, "samples": [told(one, tokens) for one in samples]}))
        ray.shutdown()


def told(one: Any, tokens: PreTrainedTokenizerFast) -> dict[str, Any]:
    mask, log_probs = one.action_mask[0].bool(), one.rollout_log_probs[0]
    assert mask.shape == log_probs.shape == one.sequences[0, 1:].shape
    steps = torch.diff(torch.cat([torch.zeros(1), mask.float(), torch.zeros(1)]))
    heard = torch.where(~mask)[0]
    first, last = torch.where(mask)[0][[0, -1]]
    between = [place for place in heard if first < place < last]
    return {
        "reward": one.rewards.item(),
        "score": one.scores.item(),
        "turns": int((steps == 1).sum()),
        "said": int(mask.sum()),
        "log_probs_of_what_was_said": bool((log_probs[mask] < 0).all()),
        "log_probs_elsewhere": bool((log_probs[~mask] == 0).all()),
        "heard": tokens.decode(one.sequences[0, 1:][between]),
        "logs": {name: value.item() for name, value in one.info.items() if name.startswith("rkgrade_")},
    }


main()
