"""What APIs and hosts say to each other of sessions, by Redis: each has a list of its own, that it alone takes from.

Beside the lists stand where each session is, and what room for more each host has. All of it is told anew every second,
so that a Redis that comes back empty knows it again. Every method raises RedisError where Redis does not do its part.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError
from redis.asyncio import Redis

from service.engines.frames import Frame
from service.engines.rq.scripts import Script

#: What has not been fetched after so long is fetched by nobody any more.
_FETCHED_WITHIN_S: Final = 120

#: How long it is known of a session that it was, after its host was heard of the last time, and after its end.
_REMEMBERED_S: Final = 86400
_ENDED_REMEMBERED_S: Final = 3600

_AT, _ROOMS, _ALIVE, _ANSWER = Script("session_at"), Script("session_rooms"), Script("alive"), Script("session_answer")
_ROOM_KEY: Final = "rkgrade:session-rooms"

_log = structlog.get_logger()


class Place(BaseModel):
    """Where a session is; JSON in Redis."""

    model_config = ConfigDict(frozen=True)

    host: str
    client: str
    token: str | None
    """Hash of the one that it was opened with, in hexadecimal."""
    ended: str | None = None
    """Why it is there no more."""


class Room(BaseModel):
    """How much room for sessions a host has; JSON in Redis."""

    model_config = ConfigDict(frozen=True)

    free: int
    """Sessions."""
    free_bytes: float
    most_bytes: float
    """Of memory that sessions there can have together."""


@dataclass(frozen=True, slots=True)
class Letter:
    """An ask or its answer, whose number is the asker's."""

    api: str
    number: str
    frame: Frame


class Post:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    # -- for APIs

    async def place(self, session: str) -> tuple[Place, bool] | None:
        """Where it is, and whether that host lives; None where nobody knows of it."""
        entry, alive = await self._run(_AT, session)
        place = _read(Place, entry)
        return None if place is None else (place, bool(alive))

    async def rooms(self) -> dict[str, Room | None]:
        """By live host; None where it keeps no sessions, or tells of them in words of another version's."""
        told = await self._run(_ROOMS)
        return {host.decode(): _read(Room, room) for host, room in zip(told[::2], told[1::2], strict=True)}

    async def ask(self, host: str, letter: Letter) -> None:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.rpush(_asks(host), _sealed(letter))
            pipe.expire(_asks(host), _FETCHED_WITHIN_S)
            await pipe.execute()

    async def answers(self, api: str, within_s: float) -> list[Letter]:
        """Those that have come; waits for the first."""
        return await self._fetched(f"rkgrade:session-answers:{api}", within_s)

    async def hosts_alive(self, hosts: Collection[str]) -> set[str]:
        return {name.decode() for name in await self._run(_ALIVE, "hosts", *hosts)}

    # -- for hosts

    async def asks(self, host: str, within_s: float) -> list[Letter]:
        """Those that have come; waits for the first."""
        return await self._fetched(_asks(host), within_s)

    async def answer(self, letter: Letter) -> None:
        await self._run(_ANSWER, letter.api, _sealed(letter), _FETCHED_WITHIN_S)

    async def apis_alive(self, apis: Collection[str]) -> set[str]:
        return {name.decode() for name in await self._run(_ALIVE, "apis", *apis)}

    async def tell(self, host: str, room: Room, places: Mapping[str, Place]) -> None:
        """All that is open there, and what has ended."""
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hset(_ROOM_KEY, host, room.model_dump_json())
            for session, place in places.items():
                keep_s = _REMEMBERED_S if place.ended is None else _ENDED_REMEMBERED_S
                pipe.set(_place(session), place.model_dump_json(), ex=keep_s)
            await pipe.execute()

    async def leave(self, host: str) -> None:
        """This host keeps none any more."""
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hdel(_ROOM_KEY, host)
            pipe.unlink(_asks(host))
            await pipe.execute()

    async def _fetched(self, key: str, within_s: float) -> list[Letter]:
        first = await cast(Any, self._redis.blpop([key], timeout=within_s))
        return [] if first is None else _opened(first[1])

    async def _run(self, script: Script, *arguments: str | bytes | int | float) -> Any:
        return await script(self._redis, datetime.now(UTC).isoformat(), *arguments)


def _asks(host: str) -> str:
    return f"rkgrade:session-asks:{host}"


def _place(session: str) -> str:
    return f"rkgrade:session:{session}"


T = TypeVar("T", Place, Room)


def _read(kind: type[T], told: bytes) -> T | None:
    """None where nothing is told, or in words of another version's."""
    try:
        return kind.model_validate_json(told) if told else None
    except ValidationError as error:
        _log.warning("what is told of sessions cannot be read; is it of another version?", error=str(error))
        return None


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError(f"{type(said).__name__} in place of a string")
    return said


def _sealed(letter: Letter) -> bytes:
    envelope = {"api": letter.api, "number": letter.number}
    return Frame(letter.frame.kind, {**letter.frame.fields, "envelope": envelope}, letter.frame.body).encode()


def _opened(sealed: bytes) -> list[Letter]:
    """None where it is no letter."""
    try:
        frame = Frame.decode(sealed)
        envelope = frame.fields.pop("envelope")
        return [Letter(_text(envelope["api"]), _text(envelope["number"]), frame)]
    except (KeyError, TypeError, ValueError) as error:
        _log.error("what came of a session is no letter", error=f"{type(error).__name__}: {error}")
        return []
