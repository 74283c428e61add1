"""Run by an interpreter that has verl: its own agent loop, tool registry, reward loop and reward manager, on Ray.

A scripted engine stands for the model; the tokenizer is a real one, of bytes, made here. The configuration is verl's
own (`ppo_trainer.yaml`), so that names of settings are those of this version. Reads what to do as JSON on stdin, and
prints what came of it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import ray
import verl
from byte_tokenizer import byte_tokenizer
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
from verl.experimental.reward_loop.reward_loop import RewardLoopManager, RewardLoopWorker, migrate_legacy_reward_impl
from verl.protocol import DataProto
from verl.workers.rollout.replica import TokenOutput

TEMPLATE = """{% if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% endif %}{% for call in message.tool_calls or [] %}<tool_call>
{{ call.function | tojson }}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def model_in(folder: Path) -> None:
    """What verl reads of a model that it does not load: its tokenizer and its configuration."""
    byte_tokenizer(TEMPLATE).save_pretrained(folder)
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300, **sizes}
    (folder / "config.json").write_text(json.dumps(config))


def configured(overrides: list[str]) -> DictConfig:
    with initialize_config_dir(str(Path(verl.__file__).parent / "trainer" / "config"), version_base=None):
        return migrate_legacy_reward_impl(compose("ppo_trainer", overrides=overrides))


class Engine:
    """Says what it was told to say, turn by turn, to whoever names the sample in its prompt."""

    def __init__(self, tokenizer: Any, turns: dict[str, list[str]]) -> None:
        self._tokenizer = tokenizer
        self._turns = turns
        self._speaking: dict[str, Any] = {}
        self.heard: dict[str, str] = {}
        """The last prompt of each sample."""

    async def generate(self, request_id: str, prompt_ids: list[int], **_: object) -> TokenOutput:
        prompt = self._tokenizer.decode(prompt_ids)
        [name] = [name for name in self._turns if f"[{name}]" in prompt]
        self.heard[name] = prompt
        said = next(self._speaking.setdefault(request_id, iter(self._turns[name])))
        token_ids = self._tokenizer(said + "<|im_end|>", add_special_tokens=False)["input_ids"]
        return TokenOutput(token_ids=token_ids, log_probs=[0.0] * len(token_ids), stop_reason="completed")


def column(values: list[Any]) -> np.ndarray:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


async def rolled_out(given: dict[str, Any], model: Path) -> dict[str, Any]:
    config = configured([f"actor_rollout_ref.model.path={model}", *given["overrides"]])
    rewards = RewardLoopManager(config)
    worker = AgentLoopWorker(config, None, reward_loop_worker_handles=rewards.reward_loop_worker_handles)
    engine = worker.llm_client = Engine(worker.tokenizer, given["turns"])
    names = list(given["turns"])
    columns = {
        "raw_prompt": [[{"role": "user", "content": f"[{name}] Double it."}] for name in names],
        "agent_name": ["tool_agent"] * len(names),
        "data_source": ["codecontests"] * len(names),
        "reward_model": [{"ground_truth": given["label"]}] * len(names),
        "extra_info": [{"split": "train"} for _ in names],
    }
    batch = DataProto.from_dict(non_tensors={name: column(values) for name, values in columns.items()})
    output = await worker.generate_sequences(batch)
    output.non_tensor_batch |= {name: column(columns[name]) for name in ("data_source", "reward_model")}
    keys = output.meta_info["reward_extra_keys"]
    return {
        "rewards": output.batch["rm_scores"].sum(dim=1).tolist(),
        "extra": {key: output.non_tensor_batch[key].tolist() for key in keys},
        "heard": engine.heard,
        "own_tokens": output.batch["response_mask"].sum(dim=1).tolist(),
        "down": await without_a_grader(configured([f"actor_rollout_ref.model.path={model}", *given["down"]]), output),
    }


async def without_a_grader(config: DictConfig, data: DataProto) -> str:
    """What a worker's whole batch comes to."""
    try:
        return str(await RewardLoopWorker(config).compute_score_batch(data))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what verl is told.
        return type(error).__name__


def main() -> None:
    given = json.load(sys.stdin)
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            model_in(Path(folder))
            print(json.dumps(asyncio.run(rolled_out(given, Path(folder)))))
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
