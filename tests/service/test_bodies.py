from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest
import zstandard
from starlette.requests import Request
from starlette.types import Message

from service.bodies import read_body
from service.errors import BodyTooLarge, ClientGone, MalformedBody, ServiceError, UnsupportedEncoding

MIB = 2**20
TEXT = b'{"kind": "stdio"}' * 1000


def decode(encoding: str | None, *chunks: bytes, limit_bytes: int = MIB, length: int | None = None) -> bytes:
    """What `read_body` makes of a body that arrives in these chunks."""
    headers = [] if encoding is None else [(b"content-encoding", encoding.encode())]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    last = len(chunks) - 1
    arriving: Iterator[Message] = iter(
        {"type": "http.request", "body": chunk, "more_body": number < last}
        for number, chunk in enumerate(chunks or (b"",))
    )

    async def receive() -> Message:
        return next(arriving)

    request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
    return bytes(asyncio.run(read_body(request, limit_bytes)))


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def two_frames() -> bytes:
    return zstandard.compress(TEXT[:5000]) + zstandard.compress(TEXT[5000:])


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        (None, TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("GZIP", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:5000]) + gzip.compress(TEXT[5000:])),
        ("zstd", zstandard.compress(TEXT)),
        ("zstd", two_frames()),
    ],
)
@pytest.mark.parametrize("size", [1, 100, 10**6])
def test_bodies_are_decoded_however_they_are_cut(encoding: str | None, body: bytes, size: int) -> None:
    assert decode(encoding, *in_pieces(body, size)) == TEXT


@pytest.mark.parametrize("encoding", [None, "gzip", "zstd"])
def test_an_empty_body_is_empty(encoding: str | None) -> None:
    assert decode(encoding) == b""


@pytest.mark.parametrize(
    ("encoding", "body"), [(None, TEXT), ("gzip", gzip.compress(TEXT)), ("zstd", zstandard.compress(TEXT))]
)
def test_the_limit_counts_decompressed_bytes_exactly(encoding: str | None, body: bytes) -> None:
    assert decode(encoding, body, limit_bytes=len(TEXT)) == TEXT
    with pytest.raises(BodyTooLarge):
        decode(encoding, body, limit_bytes=len(TEXT) - 1)


def test_a_declared_length_past_the_limit_is_refused_unread() -> None:
    with pytest.raises(BodyTooLarge):
        decode(None, b"x", length=MIB + 1)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_costs_little_more_than_the_limit(encoding: str) -> None:
    compressor = zlib.compressobj(9, wbits=31) if encoding == "gzip" else zstandard.ZstdCompressor().compressobj()
    zeros = bytes(MIB)
    bomb = b"".join(compressor.compress(zeros) for _ in range(512)) + compressor.flush()
    assert len(bomb) < MIB
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLarge):
            decode(encoding, bomb, limit_bytes=8 * MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * MIB


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"this is no gzip"),
        ("gzip", gzip.compress(TEXT)[:-10]),
        ("gzip", gzip.compress(TEXT)[:-8] + b"\0" * 8),
        ("gzip", gzip.compress(TEXT) + b"trailing garbage"),
        ("zstd", b"this is no zstd"),
        ("zstd", zstandard.compress(TEXT)[:-10]),
        ("zstd", zstandard.compress(TEXT) + b"trailing garbage"),
    ],
)
def test_a_corrupt_stream_is_malformed(encoding: str, body: bytes) -> None:
    with pytest.raises(MalformedBody):
        decode(encoding, body)


def test_a_zstd_window_past_the_rfc_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = compressor.compress(b"x" * 1000) + compressor.flush()
    with pytest.raises(MalformedBody):
        decode("zstd", body)


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip"])
def test_other_encodings_are_not_supported(encoding: str) -> None:
    with pytest.raises(UnsupportedEncoding) as refused:
        decode(encoding, TEXT)
    assert refused.value.headers["Accept-Encoding"] == "gzip, zstd"


def test_a_refused_body_is_read_on_so_that_the_client_gets_to_read_the_answer() -> None:
    read: list[bytes] = []

    async def receive() -> Message:
        read.append(b"")
        return {"type": "http.request", "body": bytes(MIB), "more_body": len(read) < 5}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(ServiceError):
        asyncio.run(read_body(request, MIB // 2))
    assert len(read) == 5


def test_a_client_that_leaves_in_the_middle_is_told_apart() -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(ClientGone):
        asyncio.run(read_body(request, MIB))
