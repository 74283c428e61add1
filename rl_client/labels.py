"""What a row of a training set says of how its answers are graded and rewarded: its label.

A label is the id of a stored problem, or JSON that says more:

    sha256:032d758d8d1ba6333fe6d9bf1bc5b16faa9b374cad7a0702f341eba74dd51f6f
    {"problem": "sha256:7473...", "reward": "r_k:3", "language": "cpp", "scale": "signed", "format_error": -1.0}

All adapters read labels this way; what a label leaves out is as the trainer's own defaults have it. Whatever is wrong
with one is an error that names the field, never a default taken in silence. Knows no HTTP.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from rl_client.errors import BadLabel, ClientError
from rl_client.rewards import (
    Reward,
    Rung,
    checked_value,
    collapsed,
    fraction,
    ladder,
    log_progress,
    on_fault,
    penalized,
    r_inf,
    r_k,
    scaled,
    two_gate,
)
from rl_client.sendable import sendable
from service.contract import (
    Detail,
    Extraction,
    GradeRequest,
    LengthUnit,
    LimitOverrides,
    ProblemId,
    mistakes,
)

THINK = "<think>"
"""What opens a model's thoughts; a text that it opens and `</think>` does not close holds no program."""

Number = Annotated[float, Field(strict=True), AfterValidator(checked_value)]


def _upward(scale: tuple[float, float]) -> tuple[float, float]:
    if not scale[0] < scale[1]:
        raise ValueError("the lowest reward is not below the highest")
    return scale


#: Fields that take one kind of value or another.
_EITHER = {
    "empty": "skip, next or a number",
    "fault": "skip, retry or a number",
    "scale": "unit, signed, or [low, high] with low below high",
}


#: A label's text, and fields of one or of its limits: far more than there are.
_MOST_CHARS = 2**16
_MOST_FIELDS = 1000


class Label(BaseModel):
    """One label, checked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: ProblemId
    reward: Annotated[str, Field(strict=True, max_length=1000), AfterValidator(lambda text: _checked(text))] = "r_inf"
    """Named as `named` has it."""
    empty: Literal["skip", "next"] | Number = "skip"
    """What a group without tests comes to, as `rewards` has it."""
    fault: Literal["skip", "retry"] | Number = "skip"
    """What a fault of the grader comes to, as `rewards` has it."""
    scale: Literal["unit", "signed"] | Annotated[tuple[Number, Number], AfterValidator(_upward)] = "unit"
    """Lowest and highest reward, for rewards from 0 to 1: (0, 1), (-1, 1), or these. Leaves `two_gate` and `collapsed`,
    which are signed, as they are."""
    format_error: Number | None = None
    """The reward where no program is found; as that of any failing program where it is left out."""
    compile_error: Number | None = None
    """The reward where it does not compile."""
    language: str = Field(default="python", strict=True, min_length=1, max_length=64)
    """Of the program: a name or alias that the grader has."""
    extraction: Extraction = "last_fence"
    """Which part of an answer is its program."""
    thinking: bool = Field(default=False, strict=True)
    """Whether prompts end in `<think>`: an answer begins in thoughts then, and has no program before `</think>`."""
    limits: LimitOverrides = LimitOverrides()
    """In place of the problem's own, for each test."""
    time_factor: float = Field(default=1.0, strict=True, ge=0.01, le=100, allow_inf_nan=False)
    """Multiplies the CPU limit, and the wall limit of the problem."""
    length_unit: LengthUnit = "bytes"
    """What input lengths, and so the groups of R_k, are counted in."""

    def measure(self) -> Reward:
        """The reward by its name, as it is before it is scaled, penalized, or given for a fault."""
        return named(self.reward, empty=self.empty)

    def reward_of_result(self) -> Reward:
        """The reward, with all that the label says of it."""
        reward = self.measure()
        if self.scale != "unit" and not reward.is_signed:
            low, high = (-1.0, 1.0) if self.scale == "signed" else self.scale
            reward = scaled(reward, low, high)
        reward = penalized(reward, format_error=self.format_error, compile_error=self.compile_error)
        return on_fault(reward, self.fault)

    def answer(self, completion: str) -> str:
        """The completion as the grader is sent it."""
        return sendable(f"{THINK}{completion}" if self.thinking else completion)

    def request(self, completion: str, *, detail: Detail = "verdicts", id: str | None = None) -> GradeRequest:
        """What the grader is asked. Tests behind the first failure are skipped where the reward does without them.

        Raises ClientError of an answer that is longer than any grader takes.
        """
        try:
            return GradeRequest(
                problem=self.problem,
                language=self.language,
                completion=self.answer(completion),
                extraction=self.extraction,
                limits=self.limits,
                time_factor=self.time_factor,
                length_unit=self.length_unit,
                stop="never" if named(self.reward).needs_every_test else "first_failure",
                detail=detail,
                id=id,
            )
        except ValidationError as error:
            # All but the completion was checked with the label.
            raise ClientError(f"the answer cannot be graded: {mistakes(error)[0][1]}") from None


def parse_label(label: object, defaults: Mapping[str, object] | None = None) -> Label:
    """The label of a row: a problem's id, JSON text, or what that text holds.

    A null in an object that is no text stands for a field left out: where data sets hold objects in columns, each row
    has one for every field that other rows have. `defaults`: fields for what it leaves out. Raises BadLabel, which
    names the field.
    """
    if isinstance(label, Mapping):
        _refuse_many(label)
    fields: object = _without_nulls(label)
    if isinstance(label, str):
        text = label.strip()
        if len(text) > _MOST_CHARS:
            raise BadLabel(None, f"{len(text):,} characters, and no label has more than {_MOST_CHARS:,}")
        if text.startswith("{"):
            try:
                fields = json.loads(text, object_pairs_hook=_each_once)
            except (ValueError, RecursionError) as error:
                raise BadLabel(None, f"not JSON: {error}") from None
        else:
            fields = {"problem": text}
    if not isinstance(fields, dict):
        kind = type(label).__name__
        raise BadLabel(
            None, f"neither the id of a problem, nor a JSON object, but {'nothing' if label is None else kind}"
        )
    try:
        return Label.model_validate({**(defaults or {}), **fields})
    except ValidationError as error:
        field, words = mistakes(error)[0]
        name = re.split(r"\W", field, maxsplit=1)[0]
        if name in _EITHER:
            # pydantic names each kind that it is not, as part of the field.
            field, words = name, f"it is {_EITHER[name]}"
        raise BadLabel(field or None, words) from None


def _refuse_many(label: Mapping[str, object]) -> None:
    """Raises BadLabel of an object with more fields than any label has: each would be looked at, and told of."""
    for field, part in ((None, label), ("limits", label.get("limits"))):
        if isinstance(part, Mapping) and len(part) > _MOST_FIELDS:
            some = ", ".join(repr(str(name)[:40]) for name in itertools.islice(part, 3))
            raise BadLabel(field, f"{len(part):,} fields ({some} ...), of which most are not known")


def _without_nulls(label: object, levels: int = 2) -> object:
    """`levels`: `limits` is an object in a label, and holds none."""
    if levels and isinstance(label, Mapping):
        return {name: _without_nulls(value, levels - 1) for name, value in label.items() if value is not None}
    return label


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the field {name!r} is there twice")
    return found


# ---------------------------------------------------------------------------------------------------------------
# Rewards by name

#: Every reward that has a name, and how it is written.
NAMES = {
    "r_inf": "r_inf",
    "r_k": "r_k:3",
    "ladder": "ladder:2=0.5,inf=0.5",
    "fraction": "fraction",
    "log_progress": "log_progress",
    "two_gate": "two_gate:0.5",
    "collapsed": "collapsed:0.5",
}


def named(text: str, *, empty: Literal["skip", "next"] | float = "skip") -> Reward:
    """The reward that a word stands for: "r_inf", "r_k:3", "ladder:2=0.5,inf=0.5", "fraction", "log_progress",
    "two_gate" and "collapsed" by the CPU limit, or with a reference of half a second as "two_gate:0.5".

    `empty`: of those that look at groups. Raises ValueError with what is wrong.
    """
    name, colon, argument = text.partition(":")
    if name not in NAMES:
        raise ValueError(f"no reward is called {name!r}; there are {', '.join(NAMES)}")
    if not argument and (colon or name in ("r_k", "ladder")):
        raise ValueError(f"{text!r} lacks what belongs behind the colon, as in {NAMES[name]}")
    match name:
        case "r_k":
            return r_k(_integer(argument), empty=empty)
        case "ladder":
            return ladder(_weights(argument), empty=empty)
        case "two_gate" | "collapsed":
            by_speed = two_gate if name == "two_gate" else collapsed
            return by_speed(reference_s=_number(argument) if argument else None)
    if argument:
        raise ValueError(f"{name} takes nothing behind a colon, so not {argument!r}")
    return {"r_inf": r_inf, "fraction": fraction, "log_progress": log_progress}[name]


def _checked(text: str) -> str:
    named(text)
    return text


def _weights(text: str) -> dict[Rung, float]:
    weights: dict[Rung, float] = {}
    for part in text.split(","):
        name, equals, weight = part.partition("=")
        if not equals:
            raise ValueError(f"a rung is written as 3=0.5 or inf=0.5, not {part!r}")
        rung: Rung = "inf" if name == "inf" else _integer(name)
        if rung in weights:
            raise ValueError(f"the rung {name} is there twice")
        weights[rung] = _number(weight)
    return weights


def _integer(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not finite")
    return value
