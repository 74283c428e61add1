"""OpenRLHF 0.11: the file for `--train.agent_func_path`, whose `AgentExecutor` makes its rollouts.

    --train.agent_func_path "$(python -c 'import rl_client.trainers as here; print(*here.__path__)')/openrlhf_agent.py"
    --data.label_key label

Reads, where the trainer's engines run, beside what `rl_client.trainers.settings` names:

    RKGRADE_SETTING     python (calls of Python), terminal (a sandboxed terminal) or repair (failure-conditioned turns)
    RKGRADE_LIMITS      JSON: fields of `rl_client.tools.ToolLimits`, as {"calls": 8, "timeout_s": 5}
    RKGRADE_ATTEMPTS    answers of `repair`, the first included; 2 unless it is set
    RKGRADE_ROLE        whose words the model hears, in its chat template's words; `tool`, and `user` for `repair`

What is wrong with these, and a grader that is not there, ends the engine as it starts; later nothing does. What a
sample without a reward comes to stands in `rl_client.trainers.openrlhf_rollout`.
"""

from __future__ import annotations

import os
from typing import Any

from openrlhf.utils.agent import AgentExecutorBase  # type: ignore[import-not-found]

from rl_client.trainers.chosen import setting
from rl_client.trainers.openrlhf_rollout import Rollouts
from rl_client.trainers.settings import Settings


class AgentExecutor(AgentExecutorBase):  # type: ignore[misc]
    """One in each engine."""

    def __init__(self) -> None:
        """Raises ClientError."""
        chosen = setting()
        role = os.environ.get("RKGRADE_ROLE") or ("user" if chosen.name == "repair" else "tool")
        self._rollouts = Rollouts(chosen, Settings.given(), role=role)

    async def execute(
        self,
        prompt: str,
        label: object,
        sampling_params: Any,
        max_length: int,
        hf_tokenizer: Any,
        llm_engine: Any,
        images: Any = None,
    ) -> dict[str, Any]:
        """One sample. Raises what the engine raises, and ValueError of a prompt with images."""
        if images:
            raise ValueError("the prompt has images, which rkgrade's rollouts do not take")
        return await self._rollouts.roll_out(prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine)

    async def aclose(self) -> None:
        """End its connections."""
        await self._rollouts.aclose()
