"""Request bodies: decoded as they arrive, bounded after decompression, parsed straight from bytes.

A body is never held twice, and a decompression bomb is refused as soon as its output passes the limit,
having cost little more memory than the limit. Knows nothing of what the bodies mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import zstandard
from pydantic import ValidationError
from starlette.requests import Request

from service.errors import BodyTooLarge, ClientGone, MalformedBody, UnsupportedEncoding, invalid_request

T = TypeVar("T")

#: Output taken from a decompressor in one step, so that the event loop turns between steps.
_STEP_BYTES = 2**20

#: zstd offers no bound on output, only on input; a block of 4 bytes may stand for 128 KiB, so one slice of
#: 1 KiB yields at most 32 MiB.
_ZSTD_SLICE_BYTES = 1024

#: RFC 9659: the window of zstd as a content coding is at most 8 MiB.
_ZSTD_WINDOW_BYTES = 8 * 2**20

#: Bodies larger than this are parsed in a thread.
_PARSE_INLINE_BYTES = 2**20

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

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_SLICE_BYTES):
            piece = data[start : start + _ZSTD_SLICE_BYTES]
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


async def read_body(request: Request, limit_bytes: int) -> bytearray:
    """The request's body, decompressed.

    Raises BodyTooLarge past `limit_bytes` (after decompression), UnsupportedEncoding, MalformedBody, and
    ClientGone where the client leaves in the middle.
    """
    arriving = _Arriving(request)
    try:
        decoder = _decoder(request.headers.get("content-encoding", ""))
        declared = request.headers.get("content-length", "")
        if isinstance(decoder, _Identity) and declared.isdecimal() and int(declared) > limit_bytes:
            raise _too_large(limit_bytes)
        body = bytearray()
        while arriving.more:
            for piece in decoder.feed(await arriving.chunk()):
                if len(body) + len(piece) > limit_bytes:
                    raise _too_large(limit_bytes)
                body += piece
                if len(piece) >= _STEP_BYTES:
                    await asyncio.sleep(0)
        decoder.finish()
    except (BodyTooLarge, MalformedBody, UnsupportedEncoding):
        await _linger(arriving)
        raise
    return body


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


def _too_large(limit_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is larger than {limit_bytes // 2**20} MiB after decompression")


async def _linger(arriving: _Arriving) -> None:
    """Read on and forget, for a while: closing on a client that still writes would lose it the answer."""
    left = _LINGER_BYTES
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while arriving.more and left > 0:
                left -= len(await arriving.chunk())


async def parse_body(parse: Callable[[bytearray], T], body: bytearray) -> T:
    """Check a JSON body by one of the contract's parsers; raises InvalidRequest naming the fields at fault."""
    if len(body) <= _PARSE_INLINE_BYTES:
        return _parse(parse, body)
    return await asyncio.to_thread(_parse, parse, body)


def _parse(parse: Callable[[bytearray], T], body: bytearray) -> T:
    try:
        return parse(body)
    except ValidationError as error:
        raise invalid_request(error) from None


async def read_parsed(request: Request, parse: Callable[[bytearray], T], limit_bytes: int) -> T:
    """`read_body` and `parse_body` in one. Raises what they raise."""
    return await parse_body(parse, await read_body(request, limit_bytes))
