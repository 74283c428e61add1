"""A bound on what the files of a store take on the disk: the least recently used make room for new ones.

Never one that is in use, which is one held by this process, or used by any within the last hour. When a file was last
used stands in its time of access, so that all processes that share the directory go by the same.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

#: How long what was used counts as in use.
IN_USE_S = 3600.0

#: A use is noted no more often than this.
_NOTE_AGAIN_S = 600.0

#: A share of the limit that is freed beyond what is needed, so that not each new file looks through all.
_SLACK = 0.1

_BLOCK_BYTES = 4096


class NoRoom(Exception):
    """A new file finds no room; the message says why."""


class Quota:
    def __init__(
        self,
        files: Callable[[], Iterable[Path]],
        limit_bytes: int,
        *,
        removed: Callable[[int], None] = lambda _: None,
        in_use_s: float | None = None,
    ) -> None:
        """`files`: all that count, asked anew each time. `removed`: told how many have made room for another.
        `in_use_s`: how long what was used counts as in use; of what can be had again, no time at all.
        """
        self._in_use_s = in_use_s
        self._files = files
        self._limit_bytes = limit_bytes
        self._removed = removed
        self._held: Counter[Path] = Counter()
        self._lock = threading.Lock()
        # What was there when it was looked for last, and is new since; what others do meanwhile is found out later.
        self._taken_bytes: int | None = None

    @contextlib.contextmanager
    def held(self, paths: Iterable[Path]) -> Iterator[None]:
        """None of them is removed meanwhile by this process."""
        paths = list(paths)
        with self._lock:
            self._held.update(paths)
        try:
            yield
        finally:
            with self._lock:
                self._held.subtract(paths)
                self._held = +self._held

    @contextlib.contextmanager
    def room(self, size_bytes: int) -> Iterator[None]:
        """Room for a new file of that size, to be put in place now. Raises NoRoom."""
        needed_bytes = on_disk(size_bytes)
        with self._lock:
            if self._taken_bytes is None or self._taken_bytes + needed_bytes > self._limit_bytes:
                self._taken_bytes = self._make_room(needed_bytes)
            yield
            self._taken_bytes += needed_bytes

    def _make_room(self, needed_bytes: int) -> int:
        """How much is taken afterwards."""
        if needed_bytes > self._limit_bytes:
            raise NoRoom(f"it is larger than all that may be stored, {self._limit_bytes // 2**20} MiB")
        found = []
        for path in self._files():
            with contextlib.suppress(FileNotFoundError):
                found.append((path.stat(), path))
        taken_bytes = sum(on_disk(stat.st_size) for stat, _ in found)
        if taken_bytes + needed_bytes <= self._limit_bytes:
            return taken_bytes
        since_s = time.time() - (IN_USE_S if self._in_use_s is None else self._in_use_s)
        goal_bytes = max(0, int(self._limit_bytes * (1 - _SLACK)) - needed_bytes)
        removed = 0
        for stat, path in sorted(found, key=lambda one: one[0].st_atime):
            if taken_bytes <= goal_bytes or stat.st_atime > since_s:
                break
            if path not in self._held:
                path.unlink(missing_ok=True)
                taken_bytes -= on_disk(stat.st_size)
                removed += 1
        self._removed(removed)
        if taken_bytes + needed_bytes > self._limit_bytes:
            raise NoRoom(f"{self._limit_bytes // 2**20} MiB may be stored, and all that is stored is in use")
        return taken_bytes


def note_use(path: Path) -> bool:
    """Have the file count as used now; whether that changed it. Raises FileNotFoundError."""
    stat, now_s = path.stat(), time.time()
    if now_s - stat.st_atime < _NOTE_AGAIN_S:
        return False
    os.utime(path, ns=(int(now_s * 1e9), stat.st_mtime_ns))
    return True


def on_disk(size_bytes: int) -> int:
    """What a file of that length takes."""
    return -(-size_bytes // _BLOCK_BYTES) * _BLOCK_BYTES
