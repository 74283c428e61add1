"""GRPO with TRL's own trainer from one checkpoint, rewarded by a grader that runs: `r_k:2`, `r_inf` and so on."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from checkpoints import last_checkpoint
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from rl_client.trainers.trl_reward import TrlReward

#: Tokens. The longest program has 90.
LONGEST = 112


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("problems", type=Path, help="as `rkgrade import problems` read them")
    parser.add_argument("map", type=Path, help="what it wrote")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reward", required=True, help="as docs/trainers.md has them")
    parser.add_argument("--url", required=True, help="the grader's")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch", type=int, default=64, help="completions of a step")
    parser.add_argument("--group", type=int, default=8, help="of them, those of one problem")
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--save", type=int, default=10, help="after every so many steps, to go on from there")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    begun = given.folder.with_suffix(".training")
    statements = [json.loads(line)["statement"] for line in given.problems.read_text().splitlines()]
    ids = [json.loads(line) for line in given.map.read_text().splitlines()]
    rows = [{"prompt": statements[one["row"]], "label": one["problem_id"]} for one in ids]
    trainer = GRPOTrainer(
        str(given.checkpoint),
        reward_funcs=TrlReward(url=given.url, label={"reward": given.reward}),
        args=GRPOConfig(
            str(begun), max_steps=given.steps, per_device_train_batch_size=given.batch, num_generations=given.group,
            gradient_accumulation_steps=1, max_completion_length=LONGEST, learning_rate=given.rate,
            lr_scheduler_type="constant", temperature=1.0, top_p=1.0, top_k=0, beta=0.0,
            use_cpu=True, bf16=False, gradient_checkpointing=False, save_steps=given.save, save_total_limit=1,
            logging_steps=1, report_to="none", seed=given.seed, disable_tqdm=True,
        ),
        train_dataset=Dataset.from_list(rows),
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=last_checkpoint(begun))
    trainer.save_model(str(given.folder))
    trainer.save_state()


if __name__ == "__main__":
    main()
