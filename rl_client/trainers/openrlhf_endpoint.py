"""`POST /openrlhf/reward`: what the service rewards answers by, which finds this as an entry point."""

from __future__ import annotations

from rl_client.errors import BadLabel, ClientError, FaultyGrade
from rl_client.labels import parse_label
from rl_client.rewards import is_fault
from rl_client.rollout import Scored
from rl_client.trainers.openrlhf import answer_of, score_of
from service.contract import GradeResult
from service.rewarding import Rewardable, Rewarded, Unrewardable


def rewardable(query: str, prompt: str, label: object) -> Rewardable:
    """An answer of OpenRLHF's. Raises Unrewardable."""
    try:
        parsed = parse_label(label)
    except BadLabel as error:
        raise Unrewardable(error.field or "", error.reason) from error
    try:
        request = parsed.request(answer_of(query, prompt))
    except ClientError as error:
        raise Unrewardable("query", str(error)) from error
    reward_of = parsed.reward_of_result()

    def rewarded(result: GradeResult) -> Rewarded:
        try:
            scored = Scored(reward_of(result), result, parsed)
        except FaultyGrade:
            scored = Scored(None, result, parsed)
        if scored.reward is not None:
            return Rewarded(scored.reward, score_of(scored, scored.reward), scored.logs())
        if is_fault(result):
            raise Unrewardable(None, scored.why_unrewarded)
        raise Unrewardable("empty", f"{scored.why_unrewarded}: say what that comes to")

    return Rewardable(request, rewarded)
