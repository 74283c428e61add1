"""Entries in an SQLite file of the data directory, which all workers of a host share.

SQLite keeps them from getting into each other's way, and a writer that is killed leaves nothing half-written. The bound
holds for the pages that are in use; the file itself grows no further, since new entries take freed pages first. A file
that is damaged is replaced.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from service.verdicts.cache import StoreFailed

T = TypeVar("T")

#: How long anybody waits for another writer, who needs well below a millisecond.
_WITHIN_S = 0.25

#: Removed at once where there are too many, as a share: not each new entry is to make room for itself alone.
_SLACK = 10

#: Clocks go back; what is from further ahead is no older than anything.
_AHEAD_S = 60

_SCHEMA = """
CREATE TABLE IF NOT EXISTS verdicts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    at REAL NOT NULL,
    entry BLOB NOT NULL
)
"""


class DiskVerdicts:
    """See `service.verdicts.cache.EntryStore`. For one thread."""

    def __init__(self, path: Path, *, limit_bytes: int, keep_s: int) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._keep_s = keep_s
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    def get(self, key: str) -> bytes | None:
        now_s = time.time()
        row = self._done(
            lambda to: to.execute(
                "SELECT entry FROM verdicts WHERE key = ? AND at BETWEEN ? AND ?",
                (key, now_s - self._keep_s, now_s + _AHEAD_S),
            ).fetchone()
        )
        return None if row is None else bytes(row[0])

    def put(self, key: str, entry: bytes) -> None:
        self._done(lambda to: self._put(to, key, entry))

    def remove(self, key: str) -> None:
        self._done(lambda to: to.execute("DELETE FROM verdicts WHERE key = ?", (key,)))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _put(self, to: sqlite3.Connection, key: str, entry: bytes) -> None:
        now_s = time.time()
        to.execute("BEGIN IMMEDIATE")
        # Ids rise with time.
        to.execute(
            "DELETE FROM verdicts WHERE at NOT BETWEEN ?2 AND ?3 "
            "AND (key = ?1 OR id IN (SELECT id FROM verdicts ORDER BY id LIMIT 100))",
            (key, now_s - self._keep_s, now_s + _AHEAD_S),
        )
        to.execute("INSERT OR IGNORE INTO verdicts (key, at, entry) VALUES (?, ?, ?)", (key, now_s, entry))
        while _used_bytes(to) > self._limit_bytes:
            first, last = to.execute("SELECT min(id), max(id) FROM verdicts").fetchone()
            if first is None:
                break
            to.execute("DELETE FROM verdicts WHERE id <= ?", (first + (last - first) // _SLACK,))
        to.execute("COMMIT")

    def _done(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Raises StoreFailed."""
        try:
            if self._connection is None:
                self._connection = self._opened()
            try:
                return work(self._connection)
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        except (sqlite3.Error, OSError) as error:
            self.close()
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                self._discard()
            raise StoreFailed(f"{self._path}: {error}") from error

    def _opened(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = sqlite3.connect(self._path, timeout=_WITHIN_S, isolation_level=None)
        try:
            self._inode = self._path.stat().st_ino
            connection.execute("PRAGMA journal_mode = WAL")
            # A power cut may take the latest entries, and leaves the others.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def _discard(self) -> None:
        """Remove the damaged file, unless another worker has replaced it."""
        with contextlib.suppress(OSError):
            if self._path.stat().st_ino == self._inode:
                for name in ("", "-wal", "-shm"):
                    Path(f"{self._path}{name}").unlink(missing_ok=True)


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
