"""What a Content-Encoding stands for."""

from __future__ import annotations

import gzip

import pytest
import zstandard

from service.encodings import decoder
from service.errors import MalformedBody, UnsupportedEncoding

TEXT = b'{"kind": "stdio"}' * 1000


def decode(encoding: str, *chunks: bytes) -> bytes:
    """What is made of a body that arrives in these chunks."""
    decoding = decoder(encoding)
    decoded = b"".join(piece for chunk in chunks for piece in decoding.feed(chunk))
    decoding.finish()
    return decoded


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def two_frames() -> bytes:
    return zstandard.compress(TEXT[:5000]) + zstandard.compress(TEXT[5000:])


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("GZIP", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:5000]) + gzip.compress(TEXT[5000:])),
        ("zstd", zstandard.compress(TEXT)),
        ("zstd", two_frames()),
    ],
)
@pytest.mark.parametrize("size", [1, 100, 10**6])
def test_bodies_are_decoded_however_they_are_cut(encoding: str, body: bytes, size: int) -> None:
    assert decode(encoding, *in_pieces(body, size)) == TEXT


@pytest.mark.parametrize("encoding", ["", "gzip", "zstd"])
def test_an_empty_body_is_empty(encoding: str) -> None:
    assert decode(encoding) == b""


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
