"""What speaking with a grader may raise. Messages are one line.

ClientError
├── GraderError           the grader cannot be used, or not any more
│   ├── GraderUnreachable nothing answers there, or nothing is taken for longer than the caller's patience
│   ├── TokenRefused      it asks for a token, and this is none of its
│   └── GraderUnfit       it answers, but not as a grader of this contract does
├── GaveUp                the caller itself ended the waiting
│   └── DeadlinePassed    the caller's own deadline
├── TokenError            there is no token where there should be one
├── BadLabel              a row of the training set that cannot be graded; names the field
├── SessionLost           a session is there no more, with all that was in it
├── FaultyGrade           the grader failed at this one program, and the reward's policy asks for another try
└── Refused               it does not take this one request, and never will; others may be fine
    └── UnknownProblem    it does not know the problem by that id
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rl_client.rollout import Scored


class ClientError(Exception):
    """Anything that the client raises of its own."""


class GraderError(ClientError):
    """No request can be expected to go well."""


class GraderUnreachable(GraderError):
    pass


class TokenRefused(GraderError):
    pass


class GraderUnfit(GraderError):
    pass


class GaveUp(ClientError):
    pass


class DeadlinePassed(GaveUp):
    pass


class TokenError(ClientError):
    """Quotes no secret."""


class BadLabel(ClientError):
    """A label, and what is wrong with it."""

    def __init__(self, field: str | None, reason: str) -> None:
        """`field`: a path such as `limits.cpu_s`, None for the label as a whole."""
        reason = " ".join(reason.split())
        named = reason if field is None or reason.startswith(f"{field}:") else f"{field}: {reason}"
        super().__init__(f"label: {named}" if field is None else f"label.{named}")
        self.field = field
        self.reason = reason


class FaultyGrade(ClientError):
    """A result that says nothing of its program."""

    def __init__(self, verdict: str, scored: Scored | None = None) -> None:
        """`scored`: what the answer came to at the last try, without a reward; None where no answer was scored."""
        super().__init__(f"the grader failed at this program: {verdict}")
        self.verdict = verdict
        self.scored = scored


class SessionLost(ClientError):
    """Nothing of a session is left, and what was asked of it last may have been done or not."""

    def __init__(self, ended: str | None, reason: str) -> None:
        """`ended`: the grader's word for why, such as `cpu`, `idle` or `lifetime`; None where it gives none."""
        super().__init__(f"the session is lost: {' '.join(reason.split())}")
        self.ended = ended

    @property
    def is_own(self) -> bool:
        """Whether what ran in it used up what it was given; otherwise it is no doing of the model's."""
        return self.ended == "cpu"


class Refused(ClientError):
    """One request, with the grader's reason and the field that it names."""

    def __init__(self, status: int, detail: str, field: str | None = None) -> None:
        named = f"{field}: {detail}" if field is not None and field not in detail else detail
        super().__init__(f"the grader refused it ({status}): {' '.join(named.split())}")
        self.status = status
        self.detail = detail
        self.field = field


class UnknownProblem(Refused):
    pass
