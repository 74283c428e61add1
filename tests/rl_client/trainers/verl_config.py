"""Run by an interpreter that has verl: what its own code makes of settings and rows for it, without training.

Reads arguments of `verl.trainer.main_ppo` and wrong settings of the tool as JSON on stdin, and prints what came of it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from transformers import AutoTokenizer
from verl.tools.tool_registry import load_all_tools
from verl.trainer.ppo.reward import get_custom_reward_fn
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl_rollout import configured, model_in

from rl_client.errors import ClientError
from rl_client.trainers.verl_tool import PythonTool


def refused(config: dict[str, Any]) -> str:
    try:
        PythonTool(config)
    except ClientError as error:
        return str(error)
    raise AssertionError(config)


def main() -> None:
    given = json.load(sys.stdin)
    config = configured(given["arguments"])
    rollout = config.actor_rollout_ref.rollout
    with tempfile.TemporaryDirectory() as folder:
        model_in(Path(folder))
        rows = RLHFDataset(list(given["files"]), AutoTokenizer.from_pretrained(folder), config.data)
    reward = get_custom_reward_fn(config)
    assert reward is not None
    told = {
        "reward": OmegaConf.to_container(config.reward.custom_reward_function.reward_kwargs),
        "function": reward.args[0].__qualname__,
        "manager": config.reward.reward_manager.name,
        "tools": [tool.name for tool in load_all_tools(rollout.multi_turn.tool_config_path, None)],
        "rows": [
            {name: row[name] for name in ("raw_prompt", "agent_name", "reward_model", "data_source")} for row in rows
        ],
        "refused": [refused(one) for one in given["wrong"]],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
