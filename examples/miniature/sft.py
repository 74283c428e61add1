"""Supervised fine-tuning of a policy of random weights on programs of the family, with TRL's own trainer."""

from __future__ import annotations

import argparse
from pathlib import Path

from checkpoints import last_checkpoint
from datasets import load_dataset
from policy import new_policy
from trl import SFTConfig, SFTTrainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--vocabulary", type=int, default=512)
    parser.add_argument("--width", type=int, default=160)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--spread", type=float, default=0.02, help="of random parameters: their standard deviation")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    begun = given.folder.with_suffix(".training")
    new = begun / "new"
    if not new.exists():
        size = new_policy(
            new, given.examples, seed=given.seed, vocabulary=given.vocabulary, width=given.width, layers=given.layers,
            spread=given.spread,
        )  # fmt: skip
        print(f"{size:,} parameters")
    trainer = SFTTrainer(
        str(new),
        args=SFTConfig(
            str(begun), max_steps=given.steps, per_device_train_batch_size=given.batch, learning_rate=given.rate,
            lr_scheduler_type="cosine", warmup_steps=20, adam_beta2=0.98, completion_only_loss=True, max_length=None,
            use_cpu=True, bf16=False, gradient_checkpointing=False, save_steps=100, save_total_limit=1,
            logging_steps=20, report_to="none", seed=given.seed, disable_tqdm=True,
        ),
        train_dataset=load_dataset("json", data_files=str(given.examples), split="train"),
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=last_checkpoint(begun))
    trainer.save_model(str(given.folder))


if __name__ == "__main__":
    main()
