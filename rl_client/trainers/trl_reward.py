"""TRL 1.16: a reward function for `GRPOTrainer`, and for its other trainers that take `reward_funcs`.

    from rl_client.trainers.trl_reward import TrlReward

    GRPOTrainer(model, reward_funcs=TrlReward(url="http://grader:8000", label={"reward": "r_k:3"}), ...)

or, by the variables that `rl_client.trainers.settings` names,

    trl grpo --reward_funcs rl_client.trainers.trl_reward.rkgrade ...

A row's label is its column `label`.

TRL leaves an answer out whose reward is None, and so is one without a reward: a fault of the grader's (after three
tries where the label says "retry"), a group without tests, a session that was lost in mid-rollout. A label that is
wrong and a grader that is gone for longer than all patience are errors, at which TRL stops. Knows nothing of torch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rl_client.errors import BadLabel, FaultyGrade, SessionLost
from rl_client.labels import parse_label
from rl_client.rewards import is_fault
from rl_client.rollout import Scored, Scorer, together
from rl_client.trainers.loops import reached
from rl_client.trainers.settings import Settings
from rl_client.trainers.trl_environments import Environment

_LOG = logging.getLogger(__name__)

Message = Mapping[str, Any]


class TrlReward:
    """The reward function. It is called with a whole batch, and grades that at once."""

    def __init__(
        self,
        *,
        url: str | None = None,
        label: Mapping[str, object] | None = None,
        patience_s: float | None = None,
        unscored: float | None = None,
        column: str = "label",
    ) -> None:
        """`label`: fields for labels that leave them out. `unscored`: what an answer without a reward is worth; it is
        left out otherwise. `column`: of the data set, where its labels are. Raises ClientError.
        """
        # The name under which TRL logs it.
        self.__name__ = "rkgrade"
        self._settings = Settings.given({"url": url, "label": label, "patience_s": patience_s, "unscored": unscored})
        self._column = column

    async def __call__(
        self,
        prompts: Sequence[object],
        completions: Sequence[str | Sequence[Message]],
        *,
        environments: Sequence[object] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        log_extra: Callable[[str, list[str]], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """Rewards in the order of `completions`: texts, or lists of messages of which the last one is the answer.

        `environments`: TRL's, of each completion; those of `rl_client.trainers.trl_environments` have a say in what is
        graded. Logs means of `Scored.logs` under `rkgrade/`, and verdicts as a column. Raises BadLabel, GraderError.
        """
        if self._column not in columns:
            raise BadLabel(None, f"the data set has no column {self._column!r}, which holds them")
        labels = columns[self._column]
        scorer = reached(self._settings).scorer
        for label in labels:
            parse_label(label, scorer.defaults)
        around = environments or [None] * len(labels)
        scored = await together(
            [
                _scored(scorer, environment, answer_of(completion), label)
                for environment, completion, label in zip(around, completions, labels, strict=True)
            ]
        )
        if log_metric is not None:
            for name, mean in means(scored).items():
                log_metric(f"rkgrade/{name}", mean)
        if log_extra is not None:
            log_extra("rkgrade", ["not graded" if one is None else str(one.result.verdict) for one in scored])
        return [self._settings.unscored if one is None or one.reward is None else one.reward for one in scored]


async def rkgrade(prompts: Sequence[object], completions: Sequence[Any], **given: Any) -> list[float | None]:
    """The same by the variables alone, for TRL's command line."""
    return await TrlReward()(prompts, completions, **given)


def answer_of(completion: str | Sequence[Message]) -> str:
    """The model's last words; nothing where the last message is not its own."""
    if isinstance(completion, str):
        return completion
    last = completion[-1] if completion else {}
    if last.get("role") != "assistant":
        return ""
    content = last.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content if part.get("type") == "text")


def means(scored: Sequence[Scored | None]) -> dict[str, float]:
    """Of `Scored.logs`, over the answers that a grade says something of; of `rewarded` and `fault`, over all."""
    logs = [one.logs(prefix="") for one in scored if one is not None and not is_fault(one.result)]
    means = {name: sum(one[name] for one in logs) / len(logs) for name in logs[0]} if logs else {}
    count = max(1, len(scored))
    return means | {
        "rewarded": sum(one is not None and one.reward is not None for one in scored) / count,
        "fault": sum(one is None or is_fault(one.result) for one in scored) / count,
    }


async def _scored(scorer: Scorer, environment: object, answer: str, label: object) -> Scored | None:
    """None where there is no grade to go by."""
    try:
        if isinstance(environment, Environment):
            return await environment._scored(scorer, answer, label)
        return await scorer.score(answer, label)
    except (FaultyGrade, SessionLost) as error:
        _LOG.warning("an answer is left out: %s", error)
        return None
