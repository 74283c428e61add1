"""Work whose caller waits in this process, and what becomes of the caller."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from service.engines.answers import CORRUPT_PROBLEM, UNKNOWN_PROBLEM, Answer, Cancelled, Died, Failed, Refused, Vetted
from service.engines.base import Graded, Priority, Ran, Work
from service.errors import InternalError, InvalidRequest, NotFound, ServiceError, StoredProblemCorrupt, Unavailable


@dataclass(eq=False, slots=True)
class Pending:
    """To be made in the event loop of the caller."""

    number: int
    """Tells it from all others of this engine."""
    work: Work
    admitted: bool
    """It waits by a place that its caller holds already, and so takes none of the queue."""
    priority: Priority = Priority.GRADE
    attempts: int = 0
    """Workers that it was given to."""
    mended: bool = False
    """It came to a fault of the grader's before that was mended."""
    future: asyncio.Future[Answer] = field(init=False)

    def __post_init__(self) -> None:
        self.future = asyncio.get_running_loop().create_future()

    @property
    def over(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.future.done()

    def finish(self, answer: Answer) -> None:
        if not self.future.done():
            self.future.set_result(answer)

    def fail(self, error: ServiceError) -> None:
        if not self.future.done():
            self.future.set_exception(error)


def outcome(answer: Answer) -> Graded | Ran | None:
    """What whoever asked gets of it, None for a vetting. Raises the ServiceError that it stands for."""
    match answer:
        case Graded() | Ran():
            return answer
        case Vetted():
            return None
        case Refused():
            raise _refusal(answer)
        case Failed() | Died():
            raise InternalError(answer.detail)
        case Cancelled():
            raise InternalError("a worker took this work for cancelled")


def shut_down() -> Unavailable:
    return Unavailable("the service was shut down before this grade was done")


def _refusal(refused: Refused) -> ServiceError:
    if refused.reason == UNKNOWN_PROBLEM:
        return NotFound(refused.detail)
    if refused.reason == CORRUPT_PROBLEM:
        return StoredProblemCorrupt(refused.detail)
    return InvalidRequest.at(refused.reason, refused.detail)
