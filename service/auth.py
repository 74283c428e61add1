"""Who may use the service: bearer tokens (RFC 6750) from a file, each with the name of the client that holds it.

A name stands wherever it matters who asked: in logs, in metrics, in fairness between clients. Secrets are kept as
hashes alone. Knows nothing of HTTP.

The file has a line for each token, `name token`; blank lines and those that begin with # do not count. Several tokens
may bear one name, so that a client can change its own without a moment in which neither holds.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import re
import stat
from pathlib import Path

import structlog

_LINE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{0,63})\s+(?P<token>[A-Za-z0-9._~+/-]+=*)")

#: 20 letters and digits drawn at random are 119 bits.
_LEAST_CHARS = 20
_MOST_BYTES = 64 * 2**10

_LOOK_AGAIN_S = 1.0

_log = structlog.get_logger()


class TokensRefused(Exception):
    """The file cannot be trusted or read. The message is one line and quotes no secret."""


class Tokens:
    """The tokens that are good now: those of the file, which is read again when it changes."""

    def __init__(self, path: Path) -> None:
        """Raises TokensRefused."""
        self._path = path
        self._names, self._seen = _read(path)

    def name_of(self, token: str) -> str | None:
        """Whose token it is; None where it is nobody's. How long that takes tells nothing of any token."""
        sent = digest_of(token)
        found = None
        for digest, name in self._names:
            if hmac.compare_digest(digest, sent):
                found = name
        return found

    def is_good(self, digest: bytes) -> bool:
        """Whether the token of that hash (`digest_of`) is among those that are good now."""
        return any(hmac.compare_digest(known, digest) for known, _ in self._names)

    def reload(self) -> None:
        """Read the file again. One that is refused is logged and changes nothing, lest a slip lock everybody out."""
        try:
            self._names, self._seen = _read(self._path)
        except TokensRefused as error:
            self._seen = _signature(self._path)
            _log.error("the tokens file is refused; the tokens read before stay good", error=str(error))
        else:
            names = {name for _, name in self._names}
            _log.info("tokens read", clients=sorted(names), tokens=len(self._names))

    async def watch(self) -> None:
        """Read the file again whenever it changes. Does not return."""
        while True:
            await asyncio.sleep(_LOOK_AGAIN_S)
            if _signature(self._path) != self._seen:
                self.reload()


_Signature = tuple[int, ...] | None


def _signature(path: Path) -> _Signature:
    try:
        return _signed(path.stat())
    except OSError:
        return None


def _signed(info: os.stat_result) -> _Signature:
    return info.st_dev, info.st_ino, info.st_mtime_ns, info.st_ctime_ns, info.st_size


def examined(path: Path, most_bytes: int) -> bytes:
    """What a file holds that nobody but root and this process's user may read or change. Raises TokensRefused."""
    return _opened(path, most_bytes)[0]


def _read(path: Path) -> tuple[list[tuple[bytes, str]], _Signature]:
    """The hash of each token with its name, and how the file looked. Raises TokensRefused."""
    text, signature = _opened(path, _MOST_BYTES)
    return _parsed(path, text), signature


def _opened(path: Path, most_bytes: int) -> tuple[bytes, _Signature]:
    """What it holds, and how it looked. Raises TokensRefused."""
    try:
        # What has been opened is what is examined: a name may come to mean another file in between.
        # Nor is a pipe waited for.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            info = os.fstat(file.fileno())
            _examine(path, info)
            text = file.read(most_bytes + 1)
    except OSError as error:
        raise TokensRefused(f"{path}: {error.strerror}") from error
    if len(text) > most_bytes:
        raise TokensRefused(f"{path}: larger than {most_bytes // 2**10} KiB")
    return text, _signed(info)


def _examine(path: Path, info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise TokensRefused(f"{path}: no plain file")
    if info.st_uid not in (0, os.geteuid()):
        raise TokensRefused(f"{path}: belongs to user {info.st_uid}, who could change it; chown it to root")
    if info.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise TokensRefused(f"{path}: its mode {stat.S_IMODE(info.st_mode):04o} lets others at it; chmod it to 0600")


def _parsed(path: Path, text: bytes) -> list[tuple[bytes, str]]:
    found: dict[bytes, str] = {}
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise TokensRefused(f"{path}: line {number} is not `name token`, of letters, digits and - . _ (~ + / =)")
        if len(match["token"]) < _LEAST_CHARS:
            raise TokensRefused(f"{path}: the token in line {number} has fewer than {_LEAST_CHARS} characters")
        if found.setdefault(digest_of(match["token"]), match["name"]) != match["name"]:
            raise TokensRefused(f"{path}: the token in line {number} is that of another name")
    if not found:
        raise TokensRefused(f"{path}: holds no token")
    return list(found.items())


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
