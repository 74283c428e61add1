"""verl 0.9: `compute_score` for `reward.custom_reward_function`.

    reward.custom_reward_function.path=pkg://rl_client.trainers.verl_reward
    +reward.custom_reward_function.reward_kwargs.url=http://grader:8000
    +reward.custom_reward_function.reward_kwargs.label.reward=r_k:3

A row's `reward_model.ground_truth` is its label. The arguments `url`, `label` (fields for labels that leave them out),
`patience_s` and `unscored` are as the variables that `rl_client.trainers.settings` names, which hold where they are
left out; a token comes from `RKGRADE_TOKEN` alone.

verl knows no answer without a reward, and stops training at an error. So it does here, where an answer has none after
all patience, unless `unscored` says what that is worth; `rkgrade_rewarded` in the logs is 0 then. Not so with verl's
reward manager `rate_limited`, which takes errors for 0: `naive` and `dapo` are for this.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from rl_client.errors import ClientError
from rl_client.trainers.loops import reached
from rl_client.trainers.settings import Settings

_LOG = logging.getLogger(__name__)

#: Where `rl_client.trainers.verl_tool` tells of a rollout, which verl hands on beside the row's own `extra_info`. It is
#: no name of a number: verl has those of rewards and these in one place.
TOOL = "rkgrade_tool"


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: object,
    extra_info: Mapping[str, Any] | None = None,
    *,
    url: str | None = None,
    label: object = None,
    patience_s: float | None = None,
    unscored: float | None = None,
    reward_router_address: object = None,
    reward_model_tokenizer: object = None,
) -> dict[str, float]:
    """The reward of an answer. `solution_str`: the model's text, without its prompt; `ground_truth`: the row's label.

    Returns `score`, `acc` (1.0 where every test is accepted, whatever the reward), the numbers of `Scored.logs`, and
    those of tool calls out of `extra_info`, under the same names for every answer. `data_source`, and what verl hands
    on of a reward model where there is one, are not looked at. Raises ClientError.
    """
    try:
        settings = Settings.given({"url": url, "label": label, "patience_s": patience_s, "unscored": unscored})
        scored, reward = await settings.rewarded(reached(settings).scorer.score(solution_str, ground_truth))
    except Exception as error:
        # verl's words are those of the worker that died of it.
        _LOG.error("no reward: %s", error, exc_info=not isinstance(error, ClientError))
        raise
    tool = (extra_info or {}).get(TOOL) or {}
    return {
        "score": reward,
        "acc": float(scored.result.category == "correct"),
        **scored.logs(),
        **{f"rkgrade_{name}": float(tool.get(name, 0)) for name in ("calls", "tool_faults")},
    }
