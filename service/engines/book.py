"""Jobs of the in-process engine that outlive the request that brought them, and for a while what they came to.

Once a job has ended nothing of its request is kept but the fingerprint, and all that is kept is counted. All of it is
gone with this process; where that is too little, jobs are queued on Redis.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from service.engines.answers import is_fault
from service.engines.base import Graded, Job
from service.errors import InternalError, JobDeleted, KeyReused, ServiceError

#: Of what is kept of jobs that have ended; the oldest go first.
_MOST_BYTES = 256 * 2**20

#: What one job takes beside its result or its error.
_EACH_BYTES = 4096

_log = structlog.get_logger()


@dataclass(eq=False, slots=True)
class Kept:
    id: str
    client: str
    fingerprint: str
    keep_s: int
    task: asyncio.Task[Graded] | None
    """None once it has ended: a task holds its error's traceback, and that the request."""
    came_to: Graded | ServiceError | None = None
    ended_s: float = 0.0

    async def graded(self) -> Graded:
        """Its result, of which nobody's leaving deprives others. Raises what it failed of, and JobDeleted."""
        if (task := self.task) is not None:
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                if task.cancelled():
                    raise JobDeleted() from None
                raise
        assert isinstance(self.came_to, Graded)
        return self.came_to

    @property
    def settled(self) -> bool:
        """Whether asking again gets nothing else: a fault of the grader's is tried anew."""
        return self.task is not None or (isinstance(self.came_to, Graded) and not is_fault(self.came_to))

    @property
    def size_bytes(self) -> int:
        if isinstance(self.came_to, Graded):
            return _EACH_BYTES + len(self.came_to.result)
        # As characters of up to four bytes, once in the sentence and once where it is told at its field.
        return _EACH_BYTES + (0 if self.came_to is None else 8 * len(self.came_to.detail))


class JobBook:
    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """`most_bytes`: of what is kept of jobs that have ended."""
        self._most_bytes = most_bytes
        self._jobs: dict[str, Kept] = {}
        #: Those that have ended, in the order in which they did: all are kept as long.
        self._ended: OrderedDict[str, Kept] = OrderedDict()
        self.bytes = 0
        """Kept of jobs that have ended."""

    def join(self, job: Job, begin: Callable[[], Coroutine[Any, Any, Graded]]) -> Kept:
        """The job of that id, begun where there is none, or one that is to be tried anew.

        Raises KeyReused, and what `begin` raises.
        """
        self._forget_old()
        kept = self._jobs.get(job.id)
        if kept is not None and kept.settled:
            if kept.fingerprint != job.fingerprint:
                raise KeyReused()
            return kept
        task = asyncio.create_task(begin())
        self.drop(job.id)
        kept = self._jobs[job.id] = Kept(job.id, job.client, job.fingerprint, job.keep_s, task)
        task.add_done_callback(partial(self._end, kept))
        return kept

    def get(self, identifier: str) -> Kept | None:
        self._forget_old()
        return self._jobs.get(identifier)

    def drop(self, identifier: str) -> None:
        """Forget a job, and stop it."""
        kept = self._jobs.pop(identifier, None)
        if kept is not None and kept.task is not None:
            kept.task.cancel()
        if self._ended.pop(identifier, None) is not None and kept is not None:
            self.bytes -= kept.size_bytes

    def _end(self, kept: Kept, task: asyncio.Task[Graded]) -> None:
        if self._jobs.get(kept.id) is not kept:
            return
        if task.cancelled():
            self.drop(kept.id)
            return
        error = task.exception()
        if error is None:
            kept.came_to = task.result()
        elif isinstance(error, ServiceError):
            kept.came_to = error.apart()
        else:
            _log.error("the service failed at a job", job=kept.id, exc_info=error)
            kept.came_to = InternalError("the service failed at this job")
        kept.task, kept.ended_s = None, time.monotonic()
        self._ended[kept.id] = kept
        self.bytes += kept.size_bytes
        self._forget_old()

    def _forget_old(self) -> None:
        now_s = time.monotonic()
        while self._ended:
            kept = next(iter(self._ended.values()))
            if now_s - kept.ended_s < kept.keep_s and self.bytes <= self._most_bytes:
                return
            self.drop(kept.id)
