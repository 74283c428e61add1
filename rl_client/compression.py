"""How large bodies are sent: as they are, or compressed. Whoever has `zstandard` installed has zstd."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from typing import Literal
from urllib.parse import urlsplit

Compression = Literal["auto", "zstd", "gzip", "none"]
"""`auto`: zstd where that is installed, else gzip; none to this machine itself, where it costs more than it saves."""

#: Smaller bodies are sent as they are.
LEAST_BYTES = 64 * 2**10

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def chosen(compression: Compression, url: str) -> Literal["zstd", "gzip", "none"]:
    """What to send bodies to `url` with. Raises ValueError where that is not there."""
    has_zstd = find_spec("zstandard") is not None
    match compression:
        case "auto":
            if urlsplit(url).hostname in _LOOPBACK:
                return "none"
            return "zstd" if has_zstd else "gzip"
        case "zstd" if not has_zstd:
            raise ValueError("compression is zstd, which needs the package zstandard")
        case "zstd" | "gzip" | "none":
            return compression
    raise ValueError(f"compression is auto, zstd, gzip or none, not {compression!r}")


def compressed(body: bytes, coding: Literal["zstd", "gzip", "none"]) -> tuple[bytes, dict[str, str]]:
    """The body to send, and the headers that say so."""
    if coding == "none" or len(body) < LEAST_BYTES:
        return body, {}
    if coding == "gzip":
        return gzip.compress(body, compresslevel=1, mtime=0), {"Content-Encoding": "gzip"}
    import zstandard

    return zstandard.ZstdCompressor(level=3).compress(body), {"Content-Encoding": "zstd"}
