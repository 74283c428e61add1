"""Files under a URL that fsspec serves, such as `s3://bucket/path`, as whole values.

What can go wrong on the way is one of two errors, with words that name the cause. Nothing waits without end for a store
that is asked over a network; of a directory, whose kernel asks, the mount says how long. Knows nothing of what is
stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

import fsspec  # type: ignore[import-untyped]
from fsspec.asyn import AsyncFileSystem  # type: ignore[import-untyped]
from fsspec.core import url_to_fs  # type: ignore[import-untyped]

from service.stores.directory import SharedDirectory
from service.stores.problems import StoreFull, StoreUnreachable

#: What one call may take as a whole, and how fast what is written has to go beyond that.
_WITHIN_S = 120.0
_LEAST_BYTES_PER_S = 2**20

#: Stores in which a name needs no directory made for it: asked for one, s3fs makes a missing bucket.
_OF_OBJECTS: Final = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})

#: As the implementations take them. With its own, s3fs waits for minutes for a server that says nothing.
_S3: Final[dict[str, Any]] = {
    "config_kwargs": {
        "connect_timeout": 3,
        "read_timeout": 10,
        "retries": {"mode": "standard", "total_max_attempts": 2},
    },
    "use_listings_cache": False,
}
_OPTIONS: Final[dict[str, dict[str, Any]]] = {"s3": _S3, "s3a": _S3}

#: Under which of these a store tells when a file was written.
_TIMES: Final = ("mtime", "LastModified", "last_modified", "updated", "created")

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True)
class RemoteFile:
    name: str
    size_bytes: int
    written_s: float
    """Since the epoch; 0 where the store does not tell."""


class Remote:
    """Every method may be called from any thread, and raises StoreUnreachable; what writes raises StoreFull, too."""

    def __init__(self, url: str, *, within_s: float = _WITHIN_S) -> None:
        """`within_s`: what one call may take. Raises ValueError where nothing here serves the URL."""
        scheme = urlsplit(url).scheme
        try:
            self._files, root = url_to_fs(url, **_OPTIONS.get(scheme, {}))
        except (ValueError, ImportError) as error:
            raise ValueError(f"the store's URL cannot be used: {error}") from error
        if scheme in ("s3", "s3a"):
            # On top of botocore's.
            self._files.retries = 1
        self._root = root.rstrip("/")
        self._makes_directories = scheme in {*_OF_OBJECTS, "file"}
        if scheme == "file":
            self._files = SharedDirectory(self._root)
        self._within_s = within_s

    def size(self, name: str) -> int | None:
        """In bytes; None where there is no such file."""
        with _reaching():
            try:
                return int(self._call("info", self._within_s, f"{self._root}/{name}")["size"])
            except FileNotFoundError:
                return None

    def read(self, name: str, *, most_bytes: int | None = None) -> bytes | None:
        """The whole file, or its first `most_bytes`; None where there is none."""
        part = {} if most_bytes is None else {"start": 0, "end": most_bytes}
        with _reaching():
            try:
                return bytes(self._call("cat_file", self._within_s, f"{self._root}/{name}", **part))
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        """Put the file there, or in the place of the one that is.

        Stores of objects show it whole or not at all; of others, only its length and content tell.
        """
        path = f"{self._root}/{name}"
        within_s = self._within_s + len(content) / _LEAST_BYTES_PER_S
        with _reaching():
            if not self._makes_directories:
                self._call("makedirs", within_s, path.rpartition("/")[0], exist_ok=True)
            self._call("pipe_file", within_s, path, content)

    def files(self, folder: str, *, within_s: float) -> list[RemoteFile]:
        """All that is in it and below; nothing where there is no such folder."""
        with _reaching():
            try:
                found = self._call("find", within_s, f"{self._root}/{folder}", detail=True)
            except FileNotFoundError:
                return []
        return [
            RemoteFile(path[len(self._root) + 1 :], int(info["size"] or 0), _written_s(info))
            for path, info in found.items()
        ]

    def remove(self, folder: str, names: Sequence[str], *, within_s: float) -> None:
        """Remove files that were found in that folder, as far as they are there still."""
        paths = [f"{self._root}/{name}" for name in names]
        with _reaching(), contextlib.suppress(FileNotFoundError):
            if isinstance(self._files, SharedDirectory):
                self._files.remove_below(f"{self._root}/{folder}", paths)
            elif paths:
                self._call("rm", within_s, paths)

    def _call(self, method: str, within_s: float, *arguments: Any, **named: Any) -> Any:
        files = self._files
        if not isinstance(files, AsyncFileSystem):
            return getattr(files, method)(*arguments, **named)
        asked = asyncio.run_coroutine_threadsafe(getattr(files, f"_{method}")(*arguments, **named), files.loop)
        try:
            return asked.result(within_s)
        except TimeoutError:
            asked.cancel()
            raise


def _written_s(info: dict[str, Any]) -> float:
    told = next((info[name] for name in _TIMES if info.get(name) is not None), 0.0)
    try:
        if isinstance(told, str):
            told = datetime.fromisoformat(told)
        return told.timestamp() if isinstance(told, datetime) else float(told)
    except ValueError:
        # In words of its own: as good as untold.
        return 0.0


@contextlib.contextmanager
def _reaching() -> Iterator[None]:
    """Raises StoreFull and StoreUnreachable for what goes wrong on the way."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            raise StoreFull(f"no room in the shared store: {error.strerror}") from error
        raise StoreUnreachable(f"{_cause(error)} ({type(error).__name__})") from error


def _cause(error: Exception) -> str:
    """In words that tell nothing but what can be mended."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, PermissionError) or kinds & {"NoCredentialsError", "PartialCredentialsError"}:
        return "it refuses these credentials, or has been given none"
    if isinstance(error, TimeoutError) or kinds & {"ConnectTimeoutError", "ReadTimeoutError"}:
        return "it does not answer in time"
    if isinstance(error, ConnectionError) or kinds & {"EndpointConnectionError", "ConnectionClosedError"}:
        return "nobody answers there"
    if isinstance(error, FileNotFoundError):
        return "what its URL names, such as a bucket, is not there"
    return "it fails"


def check_url(url: str) -> None:
    """Raises ValueError where nothing here serves such a URL."""
    scheme = urlsplit(url).scheme
    if scheme == "file":
        if not urlsplit(url).path.startswith("/") or urlsplit(url).netloc:
            raise ValueError("a directory is named as file:///path")
        return
    if not scheme:
        raise ValueError("a store is named by a URL, such as file:///path")
    try:
        fsspec.get_filesystem_class(scheme)
    except (ValueError, ImportError) as error:
        raise ValueError(f"nothing here serves {scheme}://: {error}") from None
