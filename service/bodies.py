"""Request bodies: decoded as they arrive, bounded after decompression, parsed straight from bytes.

A body is never held twice, and a decompression bomb is refused as soon as its output passes the limit,
having cost little more memory than the limit. Knows nothing of what the bodies mean.

Small bodies are taken in as they come. One that turns out larger than `LARGE_BYTES` needs one of a few permits to be
read on, parsed and stored; without one it waits, unread, and so do its client's writes. Whatever clients send at once,
memory holds as many large bodies as there are permits: a megabyte of gzip may stand for one of the largest.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any, Protocol, TypeVar

import zstandard
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request

from service.errors import (
    BodyTooLarge,
    ClientGone,
    ClientSilent,
    MalformedBody,
    Unavailable,
    UnsupportedEncoding,
    invalid_request,
)
from service.structure import check_structure

T = TypeVar("T")

#: Output taken from a decompressor in one step, so that the event loop turns between steps.
_STEP_BYTES = 2**20

#: What a body needs a permit to be larger than, after decompression.
LARGE_BYTES = 4 * 2**20

#: Large bodies in hand at once, how long others wait for that, and how long a client with a permit may send nothing.
_PERMITS = 2
_PATIENCE_S = 30.0

#: zstd offers no bound on output, only on input; a block of 4 bytes may stand for 128 KiB. So the slices of a body that
#: is small as yet give 4 MiB at most, and later ones 32 MiB.
_ZSTD_FIRST_SLICE_BYTES = 128
_ZSTD_SLICE_BYTES = 1024

#: RFC 9659: the window of zstd as a content coding is at most 8 MiB.
_ZSTD_WINDOW_BYTES = 8 * 2**20

#: Bodies larger than this are parsed in a thread, one at a time.
_PARSE_INLINE_BYTES = 256 * 2**10

#: How long a body may take to arrive, whatever its size.
_WHOLE_S = 300.0

#: Bodies no larger than this are looked at again by a slower parser, where that can tell more.
_EXPLAINED_BYTES = 64 * 2**20

#: What is still read of a refused body, so that a client in the middle of sending gets to read the answer.
_LINGER_BYTES = 64 * 2**20
_LINGER_S = 5.0


class _Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode `data`, yielding pieces of bounded size. Raises MalformedBody."""
        ...

    def finish(self) -> None:
        """The body has ended. Raises MalformedBody where the stream has not."""
        ...


class _Identity:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def finish(self) -> None:
        pass


class _Gzip:
    """RFC 1952, any number of members."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._member.eof:
                self._member = zlib.decompressobj(wbits=31)
            self._begun = True
            try:
                piece = self._member.decompress(data, _STEP_BYTES)
            except zlib.error as error:
                raise MalformedBody(f"the gzip stream is corrupt: {error}") from None
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if piece:
                yield piece

    def finish(self) -> None:
        if self._begun and not self._member.eof:
            raise MalformedBody("the gzip stream ends too early")


class _Zstd:
    """RFC 8878, any number of frames."""

    def __init__(self) -> None:
        self._context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._frame = self._context.decompressobj()
        self._begun = False
        self._decoded_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        start = 0
        while start < len(data):
            end = start + (_ZSTD_SLICE_BYTES if self._decoded_bytes > LARGE_BYTES else _ZSTD_FIRST_SLICE_BYTES)
            piece, start = data[start:end], end
            while piece:
                if self._frame.eof:
                    self._frame = self._context.decompressobj()
                self._begun = True
                try:
                    decoded = self._frame.decompress(piece)
                except zstandard.ZstdError as error:
                    raise MalformedBody(f"the zstd stream is corrupt: {error}") from None
                piece = self._frame.unused_data if self._frame.eof else b""
                if decoded:
                    self._decoded_bytes += len(decoded)
                    yield decoded

    def finish(self) -> None:
        if self._begun and not self._frame.eof:
            raise MalformedBody("the zstd stream ends too early")


def _decoder(encoding: str) -> _Decoder:
    match encoding.strip().lower():
        case "" | "identity":
            return _Identity()
        case "gzip" | "x-gzip":
            return _Gzip()
        case "zstd":
            return _Zstd()
    raise UnsupportedEncoding(
        f"Content-Encoding {encoding!r} is not supported; send the body as identity, gzip or zstd",
        headers={"Accept-Encoding": "gzip, zstd"},
    )


class Bodies:
    """Reads the bodies of one service."""

    def __init__(
        self,
        limit_bytes: int,
        *,
        permits: int = _PERMITS,
        wait_s: float = _PATIENCE_S,
        silence_s: float = _PATIENCE_S,
        whole_s: float = _WHOLE_S,
    ) -> None:
        """`limit_bytes`: of a body after decompression. `permits`: large bodies in hand at once. `wait_s`: for a
        permit. `silence_s`: how long a client that holds one may send nothing. `whole_s`: how long any body may take to
        arrive.
        """
        self._limit_bytes = limit_bytes
        self._permits = asyncio.Semaphore(permits)
        self._wait_s = wait_s
        self._silence_s = silence_s
        self._whole_s = whole_s
        # One thread of its own, so that what parsing needs beside the bodies is needed once, even where clients leave.
        self._parser = ThreadPoolExecutor(1, thread_name_prefix="parser")

    @contextlib.asynccontextmanager
    async def parsed(self, request: Request, model: TypeAdapter[T]) -> AsyncIterator[T]:
        """What the request's body holds. A large one's permit is held until the context is left: by then nothing may
        refer to what was parsed.

        Raises what `read` raises, and InvalidRequest naming the fields at fault.
        """
        async with self.read(request) as body:
            if body.tell() <= _PARSE_INLINE_BYTES:
                parsed = _parse(model, body)
            else:
                parsed = await asyncio.get_running_loop().run_in_executor(self._parser, _parse, model, body)
            yield parsed
            del parsed

    @contextlib.asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[BytesIO]:
        """The request's body, decompressed; a large one's permit is held until the context is left.

        Raises BodyTooLarge (after decompression), UnsupportedEncoding, MalformedBody, Unavailable where no permit is to
        be had, ClientSilent where the body takes too long or a client that holds one falls silent, and ClientGone where
        it leaves in the middle.
        """
        async with contextlib.AsyncExitStack() as permit:
            yield await self._read(request, permit)

    async def _read(self, request: Request, permit: contextlib.AsyncExitStack) -> BytesIO:
        arriving = _Arriving(request)
        until_s = time.monotonic() + self._whole_s
        try:
            decoder = _decoder(request.headers.get("content-encoding", ""))
            declared = request.headers.get("content-length", "")
            if isinstance(decoder, _Identity) and declared.isdecimal() and int(declared) > self._limit_bytes:
                raise self._too_large()
            # Grows in place, as a bytearray does; pydantic would copy one of those, though.
            body = BytesIO()
            large = False
            while arriving.more:
                chunk = await self._next(arriving, large, until_s)
                for piece in decoder.feed(chunk):
                    if body.tell() + len(piece) > self._limit_bytes:
                        raise self._too_large()
                    if not large and body.tell() + len(piece) > LARGE_BYTES:
                        await self._enter(permit)
                        large = True
                    body.write(piece)
                    if len(piece) >= _STEP_BYTES:
                        await asyncio.sleep(0)
            decoder.finish()
        except (BodyTooLarge, MalformedBody, Unavailable, UnsupportedEncoding):
            # Read on and forget: not while others wait for the permit.
            await permit.aclose()
            await _linger(arriving)
            raise
        return body

    async def _enter(self, permit: contextlib.AsyncExitStack) -> None:
        try:
            async with asyncio.timeout(self._wait_s):
                await permit.enter_async_context(self._permits)
        except TimeoutError:
            raise Unavailable(
                "other large bodies are being read; send this one later", retry_after_s=math.ceil(self._wait_s)
            ) from None

    async def _next(self, arriving: _Arriving, large: bool, until_s: float) -> bytes:
        left_s = until_s - time.monotonic()
        try:
            async with asyncio.timeout(min(left_s, self._silence_s) if large else left_s):
                return await arriving.chunk()
        except TimeoutError:
            why = f"nothing of the body arrived for {self._silence_s:g} s"
            if time.monotonic() >= until_s:
                why = f"the body had not arrived after {self._whole_s:g} s"
            raise ClientSilent(why, headers={"Connection": "close"}) from None

    def _too_large(self) -> BodyTooLarge:
        return BodyTooLarge(f"the body is larger than {self._limit_bytes // 2**20} MiB after decompression")


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


def _parse(model: TypeAdapter[T], body: BytesIO) -> T:
    """Check a JSON body, and let go of it. Raises InvalidRequest."""
    data = body.getvalue()
    body.close()
    check_structure(data)
    try:
        return model.validate_json(data)
    except ValidationError as error:
        if len(data) <= _EXPLAINED_BYTES and _is_no_json(error):
            _explain(model, data)
        raise invalid_request(error) from None
    finally:
        del data


def _is_no_json(error: ValidationError) -> bool:
    if error.error_count() > 1:
        return False
    return error.errors(include_url=False, include_context=False, include_input=False)[0]["type"] == "json_invalid"


def _explain(model: TypeAdapter[Any], data: bytes) -> None:
    """Raise InvalidRequest where a less strict parser can tell the field at fault.

    That is half a surrogate pair: JSON can spell it, and pydantic's parser gives its place as line and column.
    """
    try:
        model.validate_python(json.loads(data))
    except ValidationError as error:
        raise invalid_request(error) from None
    except (ValueError, RecursionError):
        return
