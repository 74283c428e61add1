"""Sessions last as long as the process that works in them, and not much longer.

A model may think for an hour between two commands; a trainer that was killed leaves sessions that nobody ends, and the
one that is started in its place finds no room until they have been idle for too long. So a session may be idle for some
minutes alone, and is used now and then for as long as somebody here holds it.
"""

from __future__ import annotations

import asyncio
import logging
from weakref import ReferenceType

from rl_client.async_client import AsyncGrader
from rl_client.errors import ClientError, GaveUp, SessionLost

_LOG = logging.getLogger(__name__)

#: A third of its time at most, so that a use may come late.
_MOST_S = 60.0

#: An event loop itself holds its tasks by weak references alone.
_tasks: set[asyncio.Task[None]] = set()


def keep(grader: AsyncGrader, session: str, ttl_s: float, holder: ReferenceType[object]) -> asyncio.Task[None]:
    """Use the session until this is cancelled, the session has ended, or its holder is there no more."""
    task = asyncio.create_task(_keep(grader, session, min(_MOST_S, ttl_s / 3), holder))
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


async def _keep(grader: AsyncGrader, session: str, every_s: float, holder: ReferenceType[object]) -> None:
    while True:
        await asyncio.sleep(every_s)
        if holder() is None:
            return
        try:
            await grader.keep_session(session)
        except (SessionLost, GaveUp):
            return
        except ClientError as error:
            # Whoever works in it learns of the same by what is asked next.
            _LOG.info("a session could not be kept: %s", error)
