"""Problems on disk, one file each, named by the SHA-256 of its content.

A file is written aside, synced and renamed, so that readers and other writers see all of it or nothing;
what is read is checked against its name, so that damage is reported and never graded against. Knows nothing
of what a problem holds: it stores the canonical JSON whose hash is the id.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from service.stores.quota import NoRoom, Quota, note_use

_ID = re.compile(r"sha256:([0-9a-f]{64})")

#: What a full disk says: no space, quota, or the file size limit of this process.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


#: Problems of which a process remembers that they are stored.
_MOST_REMEMBERED = 10_000


#: Of a file: its length, inode and times of change. The last one nobody can set.
_Stamp = tuple[int, int, int, int]


class ProblemStoreError(Exception):
    """Anything the store can raise."""


class UnknownProblem(ProblemStoreError):
    """No problem of that id is stored (or it is no id at all)."""


class CorruptProblem(ProblemStoreError):
    """What is stored under the id is not what was put there."""


class StoreFull(ProblemStoreError):
    """The disk takes no more, or the store may hold no more."""


class StoreUnreachable(ProblemStoreError):
    """The store that is shared with others does not do its part."""


def problem_id(content: bytes) -> str:
    """The id of a problem's canonical JSON."""
    return _id(hashlib.sha256(content))


class ProblemStore:
    """A directory of problems; any number of processes may share it."""

    def __init__(
        self,
        directory: Path,
        *,
        limit_bytes: int | None = None,
        removed: Callable[[int], None] = lambda _: None,
        in_use_s: float | None = None,
    ) -> None:
        """`limit_bytes`: of all that is stored; None for as much as the disk takes. `removed`: told how many problems
        have made room for another. `in_use_s`: as of Quota.
        """
        self._directory = directory
        self._quota = (
            None if limit_bytes is None else Quota(self._files, limit_bytes, removed=removed, in_use_s=in_use_s)
        )
        # Sizes of the files known to be whole, so that a problem sent inline with each of 10,000 grades is
        # read back once.
        self._whole: dict[str, _Stamp] = {}

    def put(self, content: Iterable[bytes]) -> tuple[str, bool]:
        """Store canonical JSON, given in pieces; returns its id and whether it is new here. Raises StoreFull.

        No more than a piece is held at a time. A damaged file under the same id is replaced.
        """
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            return self._write(content)
        except OSError as error:
            if error.errno in _FULL:
                raise StoreFull(f"no room for a problem: {error.strerror}") from error
            raise
        except NoRoom as error:
            raise StoreFull(f"no room for a problem: {error}") from error

    @contextlib.contextmanager
    def held(self, identifiers: Iterable[str]) -> Iterator[None]:
        """None of these problems is removed meanwhile by this process to make room."""
        with self._quota.held(map(self._path, identifiers)) if self._quota else contextlib.nullcontext():
            yield

    def used(self, identifier: str) -> None:
        """Note that the problem is in use, lest it be removed to make room."""
        if self._quota is None:
            return
        with contextlib.suppress(FileNotFoundError):
            # A use changes the file's times, which it is known by.
            whole, path = self.remembers(identifier), self._path(identifier)
            if note_use(path) and whole:
                self._remember(identifier, path.stat())

    def contains(self, identifier: str) -> bool:
        """Whether something is stored under the id, without reading it."""
        try:
            return self._path(identifier).is_file()
        except UnknownProblem:
            return False

    def get(self, identifier: str) -> bytes:
        """The canonical JSON of a problem. Raises UnknownProblem, CorruptProblem."""
        try:
            with self._path(identifier).open("rb") as file:
                stat = os.fstat(file.fileno())
                content = file.read()
        except FileNotFoundError:
            raise UnknownProblem(identifier) from None
        if problem_id(content) != identifier:
            self.doubt(identifier)
            raise CorruptProblem(identifier)
        self._remember(identifier, stat)
        return content

    def sweep(self) -> None:
        """Remove what writers that were killed left half-written; a live writer is done within the hour."""
        oldest = time.time() - 3600
        for path in self._directory.glob(".new-*"):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def size(self, identifier: str) -> int | None:
        """Bytes stored under the id; None where nothing is."""
        try:
            return self._path(identifier).stat().st_size
        except (FileNotFoundError, UnknownProblem):
            return None

    def remembers(self, identifier: str) -> bool:
        """Whether a problem was seen whole by this process, and nobody has touched its file since; reads no file."""
        stamp = self._whole.get(identifier)
        try:
            return stamp is not None and _stamp(self._path(identifier).stat()) == stamp
        except FileNotFoundError:
            return False

    def doubt(self, identifier: str) -> None:
        """Look at the file again before it is taken for whole: a disk may rot without a time changing."""
        self._whole.pop(identifier, None)

    def _remember(self, identifier: str, stat: os.stat_result) -> None:
        self._whole[identifier] = _stamp(stat)
        if len(self._whole) > _MOST_REMEMBERED:
            with contextlib.suppress(KeyError, RuntimeError):
                # Another thread may do the same.
                del self._whole[next(iter(self._whole))]

    def _is_whole(self, identifier: str, size: int) -> bool:
        if self.remembers(identifier):
            return True
        try:
            with self._path(identifier).open("rb") as file:
                # Before it is read: a change meanwhile must not be taken for part of what was seen.
                stat = os.fstat(file.fileno())
                if stat.st_size != size or _id(hashlib.file_digest(file, "sha256")) != identifier:
                    return False
                self._remember(identifier, stat)
                return True
        except FileNotFoundError:
            return False

    def _files(self) -> Iterator[Path]:
        return self._directory.glob("??/*.json")

    def _path(self, identifier: str) -> Path:
        match = _ID.fullmatch(identifier)
        if match is None:
            raise UnknownProblem(identifier)
        digest = match.group(1)
        return self._directory / digest[:2] / f"{digest[2:]}.json"

    def _write(self, content: Iterable[bytes]) -> tuple[str, bool]:
        # Aside, in the one directory that is there before the id is known.
        fd, name = tempfile.mkstemp(dir=self._directory, prefix=".new-")
        try:
            digest = hashlib.sha256()
            with os.fdopen(fd, "wb") as file:
                for piece in content:
                    digest.update(piece)
                    file.write(piece)
                size = file.tell()
                identifier = _id(digest)
                if self._is_whole(identifier, size):
                    Path(name).unlink()
                    return identifier, False
                file.flush()
                # Without it a power cut after the rename may leave a whole name on a half-written file.
                os.fsync(file.fileno())
            path = self._path(identifier)
            path.parent.mkdir(exist_ok=True)
            with self._quota.room(size) if self._quota else contextlib.nullcontext():
                Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        self._remember(identifier, path.stat())
        return identifier, True


def _stamp(stat: os.stat_result) -> _Stamp:
    return stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns


def _id(digest: hashlib._Hash) -> str:
    return f"sha256:{digest.hexdigest()}"
