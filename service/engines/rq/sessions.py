"""Sessions of a cluster, as an API has them: each lives at one host of workers, and is asked for there by messages.

client gone        what it waited for is cancelled: its command or its terminal ends
host gone          whoever waits, and whoever asks for the session later, is told that it has ended: lost
this API gone      its commands and terminals are ended once it has not been heard of for long; the sessions stay
Redis gone         nothing new is asked (503); who waits goes on waiting, until the answer would be overdue
answer overdue     the host or Redis has lost it (500); what was asked for may have been done
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from redis.exceptions import OutOfMemoryError, RedisError

from service.contract import SessionRequest
from service.engines.frames import Frame
from service.engines.rq.broker import BEAT_S, LEASE_S
from service.engines.rq.post import Letter, Post, Room
from service.engines.rq.reaching import reachable, unending
from service.errors import (
    InternalError,
    InvalidRequest,
    NoSession,
    NotFound,
    NotOffered,
    ServiceError,
    SessionEnded,
    SessionsFull,
    Unavailable,
)
from service.sessions.asks import SOON_S, RemoteSession, answered, opening
from service.sessions.base import Owner

#: Of all that is asked and not yet answered: it lies here, and for a moment in Redis.
_MOST_BYTES: Final = 64 * 2**20

_LOOK_S: Final = 1.0

#: How long a host must be found gone: one that lives has told of itself again by then, where Redis was emptied.
_GONE_FOR_S: Final = 3 * BEAT_S

#: How long a session is watched here, for the end of its token, after it was used the last time.
_WATCHED_S: Final = 86400.0

_MIB: Final = 2**20

_log = structlog.get_logger()


@dataclass(eq=False, slots=True)
class _Waiter:
    host: str
    kind: str
    answer: asyncio.Future[Frame]


@dataclass(frozen=True, slots=True)
class _Watched:
    client: str
    token: bytes
    used_s: float


class ClusterSessions:
    """See `service.sessions.base.Sessions`. `start` first, `close` last."""

    def __init__(self, post: Post, *, api: str) -> None:
        """`api`: the name by which this API is heard of."""
        self._post = post
        self._api = api
        self._unreached_s = -math.inf
        self._waiting: dict[str, _Waiter] = {}
        self._asked_bytes = 0
        self._watched: dict[str, _Watched] = {}
        self._gone_since_s: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.token_is_good: Callable[[bytes], bool] = lambda _: True

    def start(self) -> None:
        for work in (self._listen, self._watch):
            self._tasks.add(asyncio.create_task(unending(work)))

    async def drain(self, timeout_s: float) -> bool:
        """Wait for the commands that run; False where the time did not suffice."""
        until_s = time.monotonic() + timeout_s
        while any(waiter.kind == "exec" for waiter in self._waiting.values()):
            if time.monotonic() >= until_s:
                return False
            await asyncio.sleep(0.05)
        return True

    async def close(self) -> None:
        for waiter in self._waiting.values():
            _fail(waiter, Unavailable("the service is shutting down"))
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- see the protocol

    async def open(self, request: SessionRequest, files: Mapping[str, bytes], owner: Owner) -> RemoteSession:
        refused: ServiceError | None = None
        for host in await self._hosts_for(request.limits.memory_mb * _MIB):
            try:
                said = answered(await self._ask(host, opening(request, files, owner), SOON_S))
            except (SessionsFull, Unavailable, InternalError) as error:
                refused = error
            except SessionEnded:
                refused = Unavailable("a host of workers went while it opened a session")
            except InvalidRequest:
                # Too much for this one; those that have the memory were asked before it.
                if refused is None:
                    raise
            else:
                return self._session(host, said.fields["session"], owner.client, owner.token)
        raise refused or SessionsFull("as many sessions are open as may", retry_after_s=5)

    async def find(self, identifier: str, client: str) -> RemoteSession:
        with reachable():
            found = await self._post.place(identifier)
        if found is None or found[0].client != client:
            self._refuse_until_settled()
            raise NoSession
        place, alive = found
        if place.ended is not None:
            raise SessionEnded(place.ended)
        if not alive:
            self._refuse_until_settled()
            self._watched.pop(identifier, None)
            raise SessionEnded("lost")
        token = None if place.token is None else bytes.fromhex(place.token)
        return self._session(place.host, identifier, client, token)

    async def end(self, identifier: str, client: str) -> None:
        session = await self.find(identifier, client)
        answered(await session.ask(Frame("end", {"session": identifier, "client": client}), SOON_S))
        self._watched.pop(identifier, None)

    def _session(self, host: str, identifier: str, client: str, token: bytes | None) -> RemoteSession:
        if token is not None:
            self._watched[identifier] = _Watched(client, token, time.monotonic())
        return RemoteSession(identifier, client, lambda frame, within_s: self._ask(host, frame, within_s))

    def _settled(self) -> bool:
        """Whether all that live had the time to be heard of since Redis was out of reach, and may be empty since."""
        return time.monotonic() - self._unreached_s > LEASE_S

    def _refuse_until_settled(self) -> None:
        """Raises Unavailable."""
        if not self._settled():
            raise Unavailable("not all hosts have been heard of yet since the queue was out of reach")

    async def _hosts_for(self, memory_bytes: int) -> list[str]:
        """Those that keep sessions, the one with the most room first. Raises NotOffered, Unavailable."""
        with reachable():
            rooms = await self._post.rooms()
        keep = {host: room for host, room in rooms.items() if room is not None}
        if not rooms:
            raise Unavailable("no host of workers is up")
        if not keep:
            raise NotOffered("there are no sessions: no host of workers keeps any (RKGRADE_SESSIONS is 0)")

        def rank(host: str) -> tuple[bool, bool, float]:
            room: Room = keep[host]
            return memory_bytes <= room.most_bytes, room.free > 0 and memory_bytes <= room.free_bytes, room.free_bytes

        return sorted(keep, key=rank, reverse=True)

    # -- asks and answers

    async def _ask(self, host: str, frame: Frame, within_s: float) -> Frame:
        if self._asked_bytes + len(frame.body) > max(_MOST_BYTES, len(frame.body)):
            raise Unavailable("as much is on its way to sessions as may be", retry_after_s=1)
        number = uuid.uuid4().hex
        waiter = self._waiting[number] = _Waiter(host, frame.kind, asyncio.get_running_loop().create_future())
        self._asked_bytes += len(frame.body)
        try:
            await self._send(host, Letter(self._api, number, frame))
            async with asyncio.timeout(within_s):
                return await waiter.answer
        except TimeoutError:
            self._cancel(host, number)
            raise InternalError("the session's host has not answered in time") from None
        except asyncio.CancelledError:
            self._cancel(host, number)
            raise
        finally:
            del self._waiting[number]
            self._asked_bytes -= len(frame.body)

    async def _send(self, host: str, letter: Letter) -> None:
        """Raises Unavailable; what is asked may reach the host all the same."""
        try:
            await self._post.ask(host, letter)
        except OutOfMemoryError:
            raise Unavailable("the queue's Redis has no memory left", retry_after_s=5) from None
        except RedisError:
            raise Unavailable("the queue cannot be reached", retry_after_s=5) from None

    def _cancel(self, host: str, number: str) -> None:
        async def cancel() -> None:
            with contextlib.suppress(Unavailable):
                await self._send(host, Letter(self._api, number, Frame("cancel", {})))

        task = asyncio.create_task(cancel())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _listen(self) -> None:
        while True:
            try:
                letters = await self._post.answers(self._api, 1.0)
            except RedisError:
                # Whoever looks at the cluster tells of it.
                self._unreached_s = time.monotonic()
                await asyncio.sleep(0.2)
                continue
            for letter in letters:
                waiter = self._waiting.get(letter.number)
                if waiter is not None and not waiter.answer.done():
                    waiter.answer.set_result(letter.frame)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            with contextlib.suppress(RedisError):
                await self._find_lost()
            await self._end_without_token()

    async def _find_lost(self) -> None:
        """Tell those who wait for a host that is gone. Raises RedisError."""
        hosts = {waiter.host for waiter in self._waiting.values()}
        gone = hosts - await self._post.hosts_alive(hosts) if hosts else set()
        now_s = time.monotonic()
        self._gone_since_s = {host: self._gone_since_s.get(host, now_s) for host in gone}
        if not self._settled():
            return
        for waiter in self._waiting.values():
            if now_s - self._gone_since_s.get(waiter.host, math.inf) >= _GONE_FOR_S:
                _fail(waiter, SessionEnded("lost"))

    async def _end_without_token(self) -> None:
        """End sessions whose token is not good any more, of those that were used by this API."""
        for identifier, watched in list(self._watched.items()):
            if time.monotonic() - watched.used_s > _WATCHED_S:
                del self._watched[identifier]
            elif not self.token_is_good(watched.token):
                try:
                    await self.end(identifier, watched.client)
                except NotFound:
                    self._watched.pop(identifier, None)
                except ServiceError as error:
                    _log.warning("a session outlives its token, and will be tried again", error=error.detail)


def _fail(waiter: _Waiter, error: ServiceError) -> None:
    if not waiter.answer.done():
        waiter.answer.set_exception(error)
