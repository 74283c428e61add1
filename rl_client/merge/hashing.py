"""The hashes of files that are read anyway, by a thread beside what reads them."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from rl_client.merge.errors import BadCheckpoint
from rl_client.merge.records import FileRecord

_READ_BYTES = 2**20


def hashed(path: Path, ended: threading.Event | None = None) -> FileRecord:
    """Raises BadCheckpoint."""
    digest, size = hashlib.sha256(), 0
    buffer = bytearray(_READ_BYTES)
    try:
        with path.open("rb", buffering=0) as file:
            while (count := file.readinto(buffer)) and not (ended is not None and ended.is_set()):
                digest.update(memoryview(buffer)[:count])
                size += count
    except OSError as error:
        raise BadCheckpoint(path, error.strerror or str(error)) from error
    return FileRecord(bytes=size, sha256=digest.hexdigest())


class Hashing:
    """The hashes of files, one after the other; to be used as a context manager, whose end does not wait for them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._ended = threading.Event()
        self._executor = ThreadPoolExecutor(1, "hashing")
        self._records: dict[Path, Future[FileRecord]] = {
            path: self._executor.submit(hashed, path, self._ended) for path in paths
        }

    def __enter__(self) -> Hashing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._executor.shutdown(cancel_futures=True)

    def of(self, path: Path) -> FileRecord:
        """Waits for it. Raises BadCheckpoint."""
        return self._records[path].result()
