"""Request bodies: read, decoded as they arrive, bounded after decompression, parsed straight from bytes.

A body is never held twice, and a decompression bomb is refused as soon as its output passes the limit,
having cost little more memory than the limit. Knows nothing of what the bodies mean.

Small bodies are taken in as they come. One that turns out larger than `_SMALL_BYTES` needs one of some permits to be
read on, and one larger than `LARGE_BYTES` one of a few to be read on, parsed and stored; without one it waits, unread,
and so do its client's writes. Whatever clients send at once, memory holds as many such bodies as there are permits: a
megabyte of gzip may stand for one of the largest. What is parsed may be many times as large again, where a body is all
structure: it is weighed first, and waits for room where it is not light.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from io import BytesIO
from typing import Any, TypeVar

from pydantic import TypeAdapter
from starlette.requests import Request

from service.encodings import STEP_BYTES, Identity, decoder
from service.errors import (
    BodyTooLarge,
    ClientGone,
    ClientSilent,
    MalformedBody,
    Unavailable,
    UnsupportedEncoding,
    UnsupportedType,
)
from service.parsing import parse
from service.room import Room
from service.structure import MOST_WEIGHT_BYTES, weigh

T = TypeVar("T")
R = TypeVar("R")

#: What a body needs a permit to be larger than, after decompression.
LARGE_BYTES = 4 * 2**20

#: What a body needs a permit of the other kind to be larger than, and how many of those there are.
_SMALL_BYTES = 64 * 2**10
_SOME_PERMITS = 64

#: Large bodies in hand at once, how long others wait for that, and how long a client with a permit may send nothing.
_PERMITS = 2
_PATIENCE_S = 30.0

#: Bodies whose structure comes to no more than this when it is parsed are parsed as they come; all others together have
#: the room that the one of most structure takes.
_LIGHT_BYTES = 2**20

#: Bodies larger than this are parsed in a thread, one at a time.
_PARSE_INLINE_BYTES = 256 * 2**10

#: What a client with a permit has to send on average, once it has had a while more than that takes.
_LEAST_BYTES_PER_S = 16 * 2**10
_GRACE_S = 10.0

#: How long a body may take to arrive, whatever its size.
_WHOLE_S = 300.0

#: What is still read of a refused body, so that a client in the middle of sending gets to read the answer.
_LINGER_BYTES = 2**30
_LINGER_S = 30.0


def _check_type(sent: str) -> None:
    # A browser sends another site's text/plain without asking first; JSON it asks about, and is not answered.
    kind = sent.partition(";")[0].strip().lower()
    if kind and kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise UnsupportedType(f"Content-Type {kind!r} is not supported; send the body as application/json")


class Bodies:
    """Reads the bodies of one service."""

    def __init__(
        self,
        limit_bytes: int,
        *,
        permits: int = _PERMITS,
        wait_s: float = _PATIENCE_S,
        silence_s: float = _PATIENCE_S,
        grace_s: float = _GRACE_S,
        whole_s: float = _WHOLE_S,
        room_bytes: int = MOST_WEIGHT_BYTES,
    ) -> None:
        """`limit_bytes`: of a body after decompression. `permits`: large bodies in hand at once. `wait_s`: for a
        permit. `silence_s`: how long a client that holds one may send nothing. `grace_s`: how much longer it may take
        than the least pace does. `whole_s`: how long any body may take to arrive. `room_bytes`: for the structure of
        all that is parsed.
        """
        self._limit_bytes = limit_bytes
        #: The sizes at which a permit is needed, beside those a body has already, and the permits.
        self._steps = ((_SMALL_BYTES, asyncio.Semaphore(_SOME_PERMITS)), (LARGE_BYTES, asyncio.Semaphore(permits)))
        self._room = Room(room_bytes)
        self._wait_s = wait_s
        self._silence_s = silence_s
        self._grace_s = grace_s
        self._whole_s = whole_s
        # One thread of its own, so that what parsing needs beside the bodies is needed once, even where clients leave.
        self._parser = ThreadPoolExecutor(1, thread_name_prefix="parser")

    @contextlib.asynccontextmanager
    async def parsed(self, request: Request, model: TypeAdapter[T]) -> AsyncIterator[T]:
        """What the request's body holds. A large one's permit, and the room for one of much structure, are held until
        the context is left: by then nothing may refer to what was parsed.

        Raises what `read` raises, and InvalidRequest naming the fields at fault.
        """
        async with self.read(request) as body, contextlib.AsyncExitStack() as held:
            aside = body.tell() > _PARSE_INLINE_BYTES
            weight_bytes = await self._do(aside, weigh, body.getvalue())
            if weight_bytes > _LIGHT_BYTES:
                await self._enter(held, self._room.taken(weight_bytes))
            parsed = await self._do(aside, parse, model, body)
            yield parsed
            del parsed

    @contextlib.asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[BytesIO]:
        """The request's body, decompressed; a large one's permit is held until the context is left.

        Raises BodyTooLarge (after decompression), UnsupportedType, UnsupportedEncoding, MalformedBody, Unavailable
        where no permit is to be had, ClientSilent where the body takes too long or a client that holds one falls
        silent or sends too slowly, and ClientGone where it leaves in the middle.
        """
        async with contextlib.AsyncExitStack() as permit:
            yield await self._read(request, permit)

    async def _read(self, request: Request, permit: contextlib.AsyncExitStack) -> BytesIO:
        arriving = _Arriving(request)
        until_s = time.monotonic() + self._whole_s
        try:
            _check_type(request.headers.get("content-type", ""))
            decoding = decoder(request.headers.get("content-encoding", ""))
            declared = request.headers.get("content-length", "")
            if isinstance(decoding, Identity) and declared.isdecimal() and int(declared) > self._limit_bytes:
                raise self._too_large()
            # Grows in place, as a bytearray does; pydantic would copy one of those, though.
            body = BytesIO()
            steps = list(self._steps)
            pace: _Pace | None = None
            while arriving.more:
                chunk = await self._next(arriving, pace, until_s)
                for piece in decoding.feed(chunk):
                    if body.tell() + len(piece) > self._limit_bytes:
                        raise self._too_large()
                    while steps and body.tell() + len(piece) > steps[0][0]:
                        await self._enter(permit, steps.pop(0)[1])
                        pace = pace or _Pace(self._grace_s)
                    body.write(piece)
                    if len(piece) >= STEP_BYTES:
                        await asyncio.sleep(0)
            decoding.finish()
        except (BodyTooLarge, MalformedBody, Unavailable, UnsupportedEncoding, UnsupportedType):
            # Read on and forget: not while others wait for the permit.
            await permit.aclose()
            await _linger(arriving)
            raise
        return body

    async def _do(self, aside: bool, step: Callable[..., R], *args: Any) -> R:
        """A step of the work on a body, in the parser's thread where it may take long."""
        return await asyncio.get_running_loop().run_in_executor(self._parser, step, *args) if aside else step(*args)

    async def _enter(self, held: contextlib.AsyncExitStack, permit: AbstractAsyncContextManager[None]) -> None:
        try:
            async with asyncio.timeout(self._wait_s):
                await held.enter_async_context(permit)
        except TimeoutError:
            raise Unavailable(
                "other bodies as large are being read; send this one later", retry_after_s=math.ceil(self._wait_s)
            ) from None

    async def _next(self, arriving: _Arriving, pace: _Pace | None, until_s: float) -> bytes:
        """`pace`: of a client that holds a permit."""
        begun_s = time.monotonic()
        waits_s = {f"the body had not arrived after {self._whole_s:g} s": until_s - begun_s}
        if pace is not None:
            waits_s[f"nothing of the body arrived for {self._silence_s:g} s"] = self._silence_s
            waits_s[f"the body arrived at less than {_LEAST_BYTES_PER_S // 2**10} KiB/s"] = pace.left_s
        why = min(waits_s, key=waits_s.__getitem__)
        try:
            async with asyncio.timeout(waits_s[why]):
                chunk = await arriving.chunk()
        except TimeoutError:
            raise ClientSilent(why, headers={"Connection": "close"}) from None
        if pace is not None:
            pace.came(len(chunk), time.monotonic() - begun_s)
        return chunk

    def _too_large(self) -> BodyTooLarge:
        return BodyTooLarge(f"the body is larger than {self._limit_bytes // 2**20} MiB after decompression")


class _Pace:
    """How much longer a client may take with what it sends: else many could each hold a permit with a byte now and
    then. While the service itself is at work, or has the client wait, no time counts.
    """

    def __init__(self, grace_s: float) -> None:
        self.left_s = grace_s

    def came(self, sent_bytes: int, took_s: float) -> None:
        self.left_s += sent_bytes / _LEAST_BYTES_PER_S - took_s


class _Arriving:
    """The chunks of a body, and whether there are more: asking for one past the last would wait for ever."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.more = True

    async def chunk(self) -> bytes:
        message = await self._request.receive()
        if message["type"] != "http.request":
            self.more = False
            raise ClientGone("the client left before its body had arrived")
        self.more = message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        return chunk


async def _linger(arriving: _Arriving) -> None:
    """Read on and forget, for a while: closing on a client that still writes would lose it the answer."""
    left = _LINGER_BYTES
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while arriving.more and left > 0:
                left -= len(await arriving.chunk())
