"""Results kept and found by their keys, in a store of entries that may fail, rot or lie at any time.

An entry is a digest over key and body, and the body: a GradeResult without what was its request's alone, as compressed
JSON; or nothing, for a program that has come to something which another run may not come to. Such a one is not kept
later either, when it happened to do better: a cache that remembers good luck alone would pay for gambling.
"""

from __future__ import annotations

import enum
import hashlib
import zlib
from typing import Final, Protocol

from pydantic import ValidationError

from service.contract import GradeResult
from service.pause import Pause

#: Of a result as JSON: those of thousands of tests with outputs are not worth their room.
MOST_BYTES = 2 * 2**20

#: How long a store that failed is left alone.
_AGAIN_S = 10.0

_DIGEST_BYTES: Final = 32


class StoreFailed(Exception):
    """The store of entries does not do its part; the message says why."""


class EntryStore(Protocol):
    """Bounded in size and in age. Every method raises StoreFailed, and takes no longer than a grade may wait."""

    def get(self, key: str) -> bytes | None: ...

    def put(self, key: str, entry: bytes) -> None:
        """Keep it; one that is there already stands."""
        ...

    def remove(self, key: str) -> None: ...


class Unsettled(enum.Enum):
    """Known, and not to be kept."""

    UNSETTLED = enum.auto()


UNSETTLED: Final = Unsettled.UNSETTLED


class VerdictCache:
    """A help, never a condition: nothing here raises for what becomes of the store."""

    def __init__(self, store: EntryStore, *, host: str = "") -> None:
        """`host`: what else of this host results hang on, for their keys."""
        self.host = host
        self._store = store
        self._pause = Pause(_AGAIN_S)

    def get(self, key: str) -> GradeResult | Unsettled | None:
        """None where nothing is known."""
        if self._pause.on:
            return None
        try:
            entry = self._store.get(key)
            if entry is None:
                return None
            known = _read(key, entry)
            if known is None:
                self._store.remove(key)
            return known
        except StoreFailed as error:
            self._pause.begin(str(error))
            return None

    def keep(self, key: str, result: bytes) -> None:
        """`result`: JSON of a GradeResult."""
        kept = GradeResult.model_validate_json(result).model_copy(update={"id": None, "index": None})
        body = kept.model_dump_json().encode()
        if len(body) <= MOST_BYTES:
            self._put(key, zlib.compress(body, 1))

    def keep_unsettled(self, key: str) -> None:
        self._put(key, b"")

    def take_fault(self) -> str | None:
        """What the store failed of since this was last asked."""
        return self._pause.take_fault()

    def _put(self, key: str, body: bytes) -> None:
        if self._pause.on:
            return
        try:
            self._store.put(key, _digest(key, body) + body)
        except StoreFailed as error:
            self._pause.begin(str(error))


def _digest(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + body).digest()


def _read(key: str, entry: bytes) -> GradeResult | Unsettled | None:
    """None where the entry is not as it was written, under this key."""
    digest, body = entry[:_DIGEST_BYTES], entry[_DIGEST_BYTES:]
    if digest != _digest(key, body):
        return None
    if not body:
        return UNSETTLED
    try:
        unpacked = zlib.decompressobj()
        text = unpacked.decompress(body, MOST_BYTES)
        return GradeResult.model_validate_json(text) if unpacked.eof else None
    except (zlib.error, ValidationError):
        return None
