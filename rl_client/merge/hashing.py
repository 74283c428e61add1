"""The hashes of files, made of what is read of them anyway."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from rl_client.merge.arithmetic import Raw
from rl_client.merge.errors import BadCheckpoint
from rl_client.merge.records import FileRecord

_READ_BYTES = 2**20


class FileHash:
    """sha256 of a file, of which pieces come by: where they leave something out, or end, it reads the file itself."""

    def __init__(self, path: Path, ended: threading.Event | None = None) -> None:
        """`ended`: set where nobody wants the hash any more."""
        self._path = path
        self._ended = ended or threading.Event()
        self._digest = hashlib.sha256()
        self._at = 0

    def follow(self, offset: int, content: Raw) -> None:
        """A piece of the file. Raises BadCheckpoint."""
        if offset > self._at:
            self._read(offset)
        # What lies before is hashed already: pieces need not come in their order.
        new = content[max(self._at - offset, 0) :]
        self._digest.update(new.data)
        self._at += new.size

    def finish(self) -> FileRecord:
        """Raises BadCheckpoint."""
        self._read(None)
        return FileRecord(bytes=self._at, sha256=self._digest.hexdigest())

    def _read(self, end: int | None) -> None:
        """Up to there, or up to the end of the file."""
        buffer = bytearray(_READ_BYTES)
        try:
            with self._path.open("rb", buffering=0) as file:
                file.seek(self._at)
                while not self._ended.is_set():
                    wanted = _READ_BYTES if end is None else min(_READ_BYTES, end - self._at)
                    count = file.readinto(memoryview(buffer)[:wanted])
                    if not count:
                        break
                    self._digest.update(memoryview(buffer)[:count])
                    self._at += count
        except OSError as error:
            raise BadCheckpoint(self._path, error.strerror or str(error)) from error


def hashed(path: Path) -> FileRecord:
    """Raises BadCheckpoint."""
    return FileHash(path).finish()
