"""What a piece of work came to, as a worker says it and as an engine takes it; and as a frame, on the way in between.

Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from sandbox.verdicts import Verdict
from service.engines.base import Graded, Ran, Summary
from service.engines.frames import Frame


@dataclass(frozen=True, slots=True)
class Vetted:
    """The problem's own programs compile."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Nobody waits for it any more."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The problem or the request is at fault."""

    reason: str
    """UNKNOWN_PROBLEM, CORRUPT_PROBLEM, or the field at fault."""
    detail: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The grader is at fault."""

    detail: str


@dataclass(frozen=True, slots=True)
class Died:
    """Workers died over it, as often as it was tried."""

    detail: str


T = TypeVar("T", Summary, Refused, Failed, Died)

Answer = Graded | Ran | Vetted | Cancelled | Refused | Failed | Died

UNKNOWN_PROBLEM = "unknown_problem"
CORRUPT_PROBLEM = "corrupt_problem"


def is_fault(answer: Answer) -> bool:
    """Whether the grader is to blame, so that another time it may come to something else."""
    return isinstance(answer, Failed) or (
        isinstance(answer, (Graded, Ran)) and answer.summary.verdict == Verdict.INTERNAL_ERROR.value
    )


def to_frame(answer: Answer) -> Frame:
    match answer:
        case Graded():
            return Frame("result", {"summary": asdict(answer.summary)}, answer.result)
        case Ran():
            return Frame("ran", {"summary": asdict(answer.summary)}, answer.result)
        case Vetted():
            return Frame("vetted", {})
        case Cancelled():
            return Frame("cancelled", {})
        case Refused():
            return Frame("refused", asdict(answer))
        case Failed():
            return Frame("fault", asdict(answer))
        case Died():
            return Frame("died", asdict(answer))


def from_frame(frame: Frame) -> Answer:
    """What a worker has said. It may be of another version, as while a cluster's hosts are replaced one by one: what is
    not known here is passed over, and where something is missing, that is a fault.
    """
    try:
        return _answer(frame)
    except (KeyError, TypeError) as error:
        return Failed(f"a worker's answer cannot be read; is it of another version? {type(error).__name__}: {error}")


def _answer(frame: Frame) -> Answer:
    match frame.kind:
        case "result":
            return Graded(frame.body, _known(Summary, frame.fields["summary"]))
        case "ran":
            return Ran(frame.body, _known(Summary, frame.fields["summary"]))
        case "vetted":
            return Vetted()
        case "cancelled":
            return Cancelled()
        case "refused":
            return _known(Refused, frame.fields)
        case "fault":
            return _known(Failed, frame.fields)
        case "died":
            return _known(Died, frame.fields)
        case kind:
            return Failed(f"a worker answered {kind!r} out of turn")


def _known(kind: type[T], said: Mapping[str, Any]) -> T:
    names = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in said.items() if name in names})
