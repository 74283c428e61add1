"""Compiled programs in the store that hosts share, beside the problems: one host compiles, the others fetch.

Problems are known by their content, so that no store can pass another one off. What a source compiles to cannot be
told from the source, and whoever could exchange it would decide verdicts. So each program is signed, together with what
it is the program of, under a secret that the graders' hosts share and the store never sees: an entry of somebody
else's, or one that has rotted, is no entry. A store can still withhold programs, which costs compiling them.

What they take together is bounded: those that were written first make room.
"""

from __future__ import annotations

import hmac
import random
import struct
from collections.abc import Callable
from typing import Final

import zstandard

from sandbox.compiling import SharedProgram
from service.pause import Pause
from service.stores.problems import ProblemStoreError
from service.stores.quota import on_disk
from service.stores.remote import Remote

_FOLDER: Final = "programs"
_MAGIC: Final = b"rkgrade program 1\n"
_MAC_BYTES: Final = 32
_LENGTH = struct.Struct("!I")

#: Of one entry. Larger programs are compiled on each host.
_MOST_BYTES = 64 * 2**20

#: What a look may take: compiling takes seconds, too.
_WITHIN_S = 15.0

#: A look at all that is there costs as much as hundreds of puts. On average there is one whenever so large a part of
#: the bound has been put, by however many workers on however many hosts; and it may take longer.
_LOOK_AFTER = 1 / 16
_LOOK_WITHIN_S = 60.0

#: A share of the bound that is freed beyond what is needed.
_SLACK = 0.1

#: How long a store that failed is left alone.
_AGAIN_S = 30.0


class SecretUnknown(Exception):
    """The secret cannot be had now; the message says why."""


class CompiledStore:
    """See `sandbox.compiling.SharedPrograms`."""

    def __init__(self, url: str, secret: Callable[[], bytes], *, limit_bytes: int | None = None) -> None:
        """`secret`: what hosts share, asked for each time; raises SecretUnknown. `limit_bytes`: what all programs may
        take; None for as much as there is. Raises ValueError for a URL that nothing serves.
        """
        self._remote = Remote(url, within_s=_WITHIN_S)
        self._secret = secret
        self._limit_bytes = limit_bytes
        self._pause = Pause(_AGAIN_S)

    def get(self, key: str) -> SharedProgram | None:
        if self._pause.on:
            return None
        try:
            secret = self._secret()
            entry = self._remote.read(_name(key), most_bytes=_MOST_BYTES)
        except (ProblemStoreError, SecretUnknown) as error:
            self._pause.begin(str(error))
            return None
        return None if entry is None else _opened(entry, key, secret)

    def put(self, key: str, program: SharedProgram) -> None:
        if self._pause.on:
            return
        message = program.message.encode()
        packed = zstandard.compress(_LENGTH.pack(len(message)) + message + program.artefact)
        if len(_MAGIC) + _MAC_BYTES + len(packed) > _MOST_BYTES:
            return
        try:
            self._remote.write(_name(key), _MAGIC + _mac(packed, key, self._secret()) + packed)
            if self._limit_bytes is not None and random.random() * self._limit_bytes * _LOOK_AFTER < len(packed):
                self._make_room(self._limit_bytes)
        except (ProblemStoreError, SecretUnknown) as error:
            self._pause.begin(str(error))

    def _make_room(self, limit_bytes: int) -> None:
        """Raises ProblemStoreError."""
        found = self._remote.files(_FOLDER, within_s=_LOOK_WITHIN_S)
        taken_bytes = sum(on_disk(one.size_bytes) for one in found)
        if taken_bytes <= limit_bytes:
            return
        doomed = []
        for one in sorted(found, key=lambda one: one.written_s):
            if taken_bytes <= limit_bytes * (1 - _SLACK):
                break
            taken_bytes -= on_disk(one.size_bytes)
            doomed.append(one.name)
        self._remote.remove(_FOLDER, doomed, within_s=_LOOK_WITHIN_S)

    def take_fault(self) -> str | None:
        """What it failed of since this was last asked."""
        return self._pause.take_fault()


def _name(key: str) -> str:
    return f"{_FOLDER}/{key[:2]}/{key[2:]}"


def _mac(packed: bytes, key: str, secret: bytes) -> bytes:
    return hmac.digest(secret, _MAGIC + key.encode() + b"\n" + packed, "sha256")


def _opened(entry: bytes, key: str, secret: bytes) -> SharedProgram | None:
    """None where it is not as a host of ours wrote it."""
    start = len(_MAGIC) + _MAC_BYTES
    mac, packed = entry[len(_MAGIC) : start], entry[start:]
    if not entry.startswith(_MAGIC) or not hmac.compare_digest(mac, _mac(packed, key, secret)):
        return None
    # Only what we packed ourselves is unpacked.
    text = zstandard.decompress(packed)
    (length,) = _LENGTH.unpack_from(text)
    message, artefact = text[_LENGTH.size : _LENGTH.size + length], text[_LENGTH.size + length :]
    return SharedProgram(artefact, message.decode())
