"""GRPO with TRL 1.16, rewarded by rkgrade: answers, answers with calls of Python, or work in a terminal.

    python examples/trl/train.py --rows rows.jsonl --url http://grader:8000 --reward r_k:3 --tools python \
        --model_name_or_path Qwen/Qwen3-0.6B --output_dir trained --max_tool_calling_iterations 8

A row of `rows.jsonl` has a `prompt` (a list of messages) and a `label` (docs/trainers.md). All that `trl grpo` takes of
the trainer and the model is taken here.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer, ModelConfig, TrlParser

from rl_client.trainers.trl_environments import PythonEnvironment, TerminalEnvironment
from rl_client.trainers.trl_reward import TrlReward

ENVIRONMENTS = {"none": None, "python": PythonEnvironment, "terminal": TerminalEnvironment}


@dataclass
class Arguments:
    rows: str = field(metadata={"help": "JSON lines with `prompt` and `label`."})
    url: str = field(default="http://127.0.0.1:8000", metadata={"help": "The grader's."})
    reward: str = field(default="r_inf", metadata={"help": "Of rows whose label names none."})
    tools: str = field(default="none", metadata={"help": "What the model may call.", "choices": list(ENVIRONMENTS)})


def main() -> None:
    ours, args, model = TrlParser((Arguments, GRPOConfig, ModelConfig)).parse_args_and_config()
    environment = ENVIRONMENTS[ours.tools]
    trainer = GRPOTrainer(
        model.model_name_or_path,
        reward_funcs=TrlReward(url=ours.url, label={"reward": ours.reward}),
        args=args,
        train_dataset=load_dataset("json", data_files=ours.rows, split="train"),
        environment_factory=environment and functools.partial(environment, url=ours.url),
    )
    trainer.train()
    trainer.save_model()
    trainer.save_state()


if __name__ == "__main__":
    main()
