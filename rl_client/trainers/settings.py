"""What an adapter that runs within a trainer is told: by variables, or by arguments that its trainer hands on.

RKGRADE_URL         the grader; http://127.0.0.1:8000 unless it is set
RKGRADE_TOKEN       its token, if it asks for one
RKGRADE_LABEL       JSON: fields for labels that leave them out, as {"reward": "r_k:3", "language": "cpp"}
RKGRADE_PATIENCE_S  how long a grader that is busy or down is asked again; 3600 unless it is set
RKGRADE_UNSCORED    the reward of an answer that has none (a fault of the grader's, after three tries where the label
                    says "retry"; a group without tests)
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass

from rl_client import address
from rl_client.async_client import CONNECTIONS, AsyncGrader
from rl_client.errors import BadLabel, ClientError, FaultyGrade
from rl_client.rewards import checked_value
from rl_client.rollout import Scored, Scorer
from rl_client.token import read_token

#: A trainer that ends with its grader loses more than one that waits for it.
_PATIENCE_S = 3600.0


class Unscored(ClientError):
    """An answer has no reward, and nobody said what it is worth then."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What an adapter was told, checked."""

    url: str
    token: str | None
    defaults: Mapping[str, object]
    """Fields for labels that leave them out."""
    patience_s: float
    """Seconds for which a grader that is busy or down is asked again."""
    unscored: float | None
    """What an answer without a reward is worth; None where nobody said that."""

    @classmethod
    def given(cls, arguments: Mapping[str, object] | None = None) -> Settings:
        """By arguments (`url`, `label`, `patience_s` in seconds, `unscored`), and by the variables where they say
        nothing.

        Raises ClientError, naming the one at fault.
        """
        told = {name: value for name, value in (arguments or {}).items() if value is not None}
        if unknown := told.keys() - {"url", "label", "patience_s", "unscored"}:
            raise ClientError(f"there is no setting {sorted(unknown)[0]!r}: there are url, label, patience_s, unscored")
        named = {
            name: (name, told[name]) if name in told else (variable, os.environ.get(variable))
            for name in ("url", "label", "patience_s", "unscored")
            for variable in (f"RKGRADE_{name.upper()}",)
        }
        patience_s = _number(*named["patience_s"])
        if patience_s is not None and patience_s < 0:
            raise ClientError(f"{named['patience_s'][0]} is {patience_s:g}: it is a number of seconds from 0 on")
        return cls(
            url=_address(*named["url"]),
            token=read_token(),
            defaults=_fields(*named["label"]),
            patience_s=_PATIENCE_S if patience_s is None else patience_s,
            unscored=_reward(*named["unscored"]),
        )

    def grader(self, connections: int = CONNECTIONS) -> AsyncGrader:
        """The grader, with so many connections, which belong to the event loop that uses them first."""
        return AsyncGrader(self.url, token=self.token, connections=connections, patience_s=self.patience_s)

    def scorer(self, grader: AsyncGrader) -> Scorer:
        """Raises BadLabel of the defaults."""
        return Scorer(grader, defaults=self.defaults)

    async def rewarded(self, scoring: Awaitable[Scored]) -> tuple[Scored, float]:
        """What an answer comes to, and its reward, or what an answer without one is worth.

        Raises Unscored where nobody said that, and what `scoring` does, but for a fault of the grader's: that is an
        answer without a reward, whether or not its label asked for further tries.
        """
        try:
            scored = await scoring
        except FaultyGrade as error:
            if error.scored is None:
                raise
            scored = error.scored
        if scored.reward is not None:
            return scored, scored.reward
        if self.unscored is None:
            why = scored.why_unrewarded
            raise Unscored(f"an answer has no reward, as {why}; RKGRADE_UNSCORED may say what it is worth")
        return scored, self.unscored


def _address(name: str, value: object) -> str:
    try:
        return address.checked(str(value or "http://127.0.0.1:8000"), name)
    except ValueError as error:
        raise ClientError(str(error)) from None


def _fields(name: str, value: object) -> Mapping[str, object]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise BadLabel(None, f"{name} is not JSON: {error}") from None
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadLabel(None, f"{name} is no JSON object")
    fields = _plain(value)
    assert isinstance(fields, dict)
    return fields


def _plain(value: object) -> object:
    """Configurations of trainers are no dicts and lists, though they look so."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value


def _reward(name: str, value: object) -> float | None:
    number = _number(name, value)
    try:
        return None if number is None else checked_value(number)
    except ValueError as error:
        raise ClientError(f"{name}: {error}") from None


def _number(name: str, value: object) -> float | None:
    if value is None:
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ClientError(f"{name} is {value!r}, which is no number")
    return number
