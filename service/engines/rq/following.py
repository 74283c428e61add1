"""Jobs that nobody waits for at this API, and whose ends it counts and tells of, where it hears of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from service.engines.base import Job, Summary

#: Beyond these, the oldest ends unheard.
MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Followed:
    job: Job
    """Without its program."""
    ended: Callable[[Summary], None]


class FollowedJobs:
    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Followed] = OrderedDict()

    def __contains__(self, id: str) -> bool:
        return id in self._jobs

    def add(self, job: Job, ended: Callable[[Summary], None]) -> bool:
        """False for one that is followed already."""
        if job.id in self._jobs:
            return False
        request = job.request.model_copy(update={"source": None, "completion": None})
        self._jobs[job.id] = Followed(replace(job, request=request), ended)
        if len(self._jobs) > MOST:
            self._jobs.popitem(last=False)
        return True

    def take(self, id: str) -> Followed | None:
        """It is followed no more; None where it was not."""
        return self._jobs.pop(id, None)
