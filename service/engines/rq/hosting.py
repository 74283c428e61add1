"""The sessions of a host of workers: tells the cluster of them, and answers what APIs ask of them.

They run beside the host's workers, nicer than these, and what memory they hold is not taken jobs for.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

import structlog
from redis.exceptions import RedisError

from service.engines.rq.broker import BEAT_S, LEASE_S
from service.engines.rq.post import Letter, Place, Post, Room
from service.errors import SessionsFull
from service.sessions.asks import error_frame
from service.sessions.hosted import Hosted
from service.sessions.keeper import Keeper

#: Asks in hand; others wait in Redis.
_MOST_IN_HAND: Final = 8192

#: How long an answer is held here while Redis cannot take it.
_HOLD_S: Final = 60.0

#: How long answers may take to be sent, once there are no sessions any more.
_LAST_S: Final = 2.0

#: How long it tries to say that they have ended; they are found to be lost all the same.
_LEAVE_WITHIN_S: Final = 1.0

_log = structlog.get_logger()


class SessionHost:
    """`run` until cancelled, which is to come once the keeper is closed."""

    def __init__(self, keeper: Keeper, post: Post, host: str) -> None:
        self._keeper = keeper
        self._hosted = Hosted(keeper)
        self._post = post
        self._host = host
        self._in_hand: dict[str, tuple[str, asyncio.Task[None]]] = {}
        self._told: dict[str, Place] = {}
        """Those that are open, as far as has been told."""
        self._telling = asyncio.Lock()
        self._heard = False
        self._silent_since_s: dict[str, float] = {}
        self._room_in_hand = asyncio.Semaphore(_MOST_IN_HAND)
        self.draining = False
        """Whether no more may be opened here."""

    @property
    def held_mb(self) -> float:
        """Memory that they may use, in MiB."""
        return self._keeper.held_bytes / 2**20

    async def drain(self, timeout_s: float) -> bool:
        """Wait for the commands that run; False where the time did not suffice."""
        return await self._keeper.drain(timeout_s)

    async def run(self) -> None:
        try:
            await asyncio.gather(self._keep_answering(), self._keep_telling())
        finally:
            await self._hosted.close()
            tasks = [task for _, task in self._in_hand.values()]
            if tasks:
                await asyncio.wait(tasks, timeout=_LAST_S)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # Where Redis has not heard the last word, it need not hear another, and is not waited for.
            if self._heard:
                with contextlib.suppress(RedisError, TimeoutError):
                    async with asyncio.timeout(_LEAVE_WITHIN_S):
                        await self._tell()
                        await self._post.leave(self._host)

    async def _keep_answering(self) -> None:
        while True:
            try:
                letters = await self._post.asks(self._host, 1.0)
            except RedisError:
                # Whoever holds the host's leases tells of it.
                await asyncio.sleep(0.2)
                continue
            for letter in letters:
                await self._take(letter)

    async def _take(self, letter: Letter) -> None:
        if letter.frame.kind == "cancel":
            _, task = self._in_hand.get(letter.number, (None, None))
            if task is not None:
                task.cancel()
            return
        await self._room_in_hand.acquire()
        task = asyncio.create_task(self._answer(letter))
        self._in_hand[letter.number] = letter.api, task
        task.add_done_callback(lambda _: self._let_go(letter.number))

    def _let_go(self, number: str) -> None:
        del self._in_hand[number]
        self._room_in_hand.release()

    async def _answer(self, letter: Letter) -> None:
        if self.draining and letter.frame.kind == "open":
            frame = error_frame(SessionsFull("this host is about to end", retry_after_s=5))
        else:
            frame = await self._hosted.answer(letter.frame, letter.api)
        if letter.frame.kind in ("open", "end"):
            # So that it can be found, or not any more, by whoever is answered.
            await self._tell()
        await self._send(Letter(letter.api, letter.number, frame))

    async def _send(self, answer: Letter) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HOLD_S):
                while True:
                    try:
                        await self._post.answer(answer)
                        return
                    except RedisError:
                        await asyncio.sleep(0.2)

    # -- telling

    async def _keep_telling(self) -> None:
        while True:
            await self._tell()
            with contextlib.suppress(RedisError):
                await self._end_abandoned()
            await asyncio.sleep(BEAT_S)

    async def _tell(self) -> None:
        # One after the other, so that what is told last is what is so.
        async with self._telling:
            await self._tell_now()

    async def _tell_now(self) -> None:
        keeper = self._keeper
        live = {
            live.id: Place(
                host=self._host,
                client=live.owner.client,
                token=None if live.owner.token is None else live.owner.token.hex(),
            )
            for live in keeper.live
        }
        ended = {
            session: place.model_copy(update={"ended": keeper.why_ended(session)})
            for session, place in self._told.items()
            if session not in live
        }
        free, free_bytes, most_bytes = keeper.room
        room = Room(free=0 if self.draining else free, free_bytes=free_bytes, most_bytes=most_bytes)
        # Those whose end cannot be told of now are told of the next time.
        self._told |= live
        heard, self._heard = self._heard, False
        try:
            await self._post.tell(self._host, room, {**live, **ended})
        except RedisError:
            return
        except asyncio.CancelledError:
            self._heard = heard
            raise
        self._heard = True
        for session in ended:
            self._told.pop(session, None)

    async def _end_abandoned(self) -> None:
        """End what APIs have asked for that are gone. Raises RedisError."""
        askers = self._hosted.askers | {api for api, _ in self._in_hand.values()}
        silent = askers - await self._post.apis_alive(askers) if askers else set()
        now_s = time.monotonic()
        # A Redis that has come back empty knows of none that lives, until they have been heard of again.
        self._silent_since_s = {api: self._silent_since_s.get(api, now_s) for api in silent}
        for api, since_s in self._silent_since_s.items():
            if now_s - since_s < LEASE_S:
                continue
            _log.warning("an API was not heard of any more; its commands and terminals are ended", api=api)
            self._hosted.hang_up(api)
            for asker, task in list(self._in_hand.values()):
                if asker == api:
                    task.cancel()
