"""What a Content-Encoding stands for, decoded as it arrives and in pieces of bounded size."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

import zstandard

from service.errors import MalformedBody, UnsupportedEncoding

#: Output taken from a decompressor in one step, so that the event loop turns between steps.
STEP_BYTES = 2**20

#: zstd offers no bound on output, only on input; a block of 4 bytes may stand for 128 KiB. So the slices of a body that
#: has come to this little as yet give 4 MiB at most, and later ones 32 MiB.
_ZSTD_SMALL_BYTES = 4 * 2**20
_ZSTD_FIRST_SLICE_BYTES = 128
_ZSTD_SLICE_BYTES = 1024

#: RFC 9659: the window of zstd as a content coding is at most 8 MiB.
_ZSTD_WINDOW_BYTES = 8 * 2**20


class Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode `data`, yielding pieces of bounded size. Raises MalformedBody."""
        ...

    def finish(self) -> None:
        """The body has ended. Raises MalformedBody where the stream has not."""
        ...


class Identity:
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
                piece = self._member.decompress(data, STEP_BYTES)
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
            end = start + (_ZSTD_SLICE_BYTES if self._decoded_bytes > _ZSTD_SMALL_BYTES else _ZSTD_FIRST_SLICE_BYTES)
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


def decoder(encoding: str) -> Decoder:
    match encoding.strip().lower():
        case "" | "identity":
            return Identity()
        case "gzip" | "x-gzip":
            return _Gzip()
        case "zstd":
            return _Zstd()
    raise UnsupportedEncoding(
        f"Content-Encoding {encoding!r} is not supported; send the body as identity, gzip or zstd",
        headers={"Accept-Encoding": "gzip, zstd"},
    )
