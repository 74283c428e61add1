"""A Python that has TRL, and with it what stands beside `rkgrade merge` as an oracle: transformers, PEFT, mergekit."""

from __future__ import annotations

from pathlib import Path

from tests.rl_client.trainers.venvs import python_with

PACKAGES = (
    "torch==2.13.0+cpu", "transformers>=5.15,<5.25", "accelerate>=1.12,<2", "datasets>=4.7,<6", "jinja2",
    "packaging>20.0", "httpx", "pydantic",
)  # fmt: skip

#: Without what they ask for themselves: some of mergekit's needs are for other ways to merge.
ALONE = ("trl==1.16.0", "mergekit==0.1.5", "peft==0.21.2", "immutables==0.21")


def trl_python() -> Path:
    """With TRL 1.16."""
    return python_with("trl", PACKAGES, *ALONE)
