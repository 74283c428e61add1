"""A file of lines that grows: added to by one process at a time, each line at once, so that an end of any kind loses
none that was added.

The line that a killed process left half written is cut off when the file is opened again.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO

from rl_client.datasets.base import DatasetError


class Lines:
    """To be used as a context manager. Raises DatasetError where the file is none of its kind, or cannot be written."""

    def __init__(self, path: Path | None, note: Callable[[bytes, int], None], *, whole: str, writer: str) -> None:
        """`note`: told of each line, and where it starts, in order; raises ValueError of one that is none of `whole`
        ("an audit's report"). `writer`: who else may be writing it ("audit").

        Without a path it is a file of its own that goes when it is closed.
        """
        self._path = path
        self._note = note
        self._whole = whole
        self._writer = writer
        self._file: IO[bytes]

    def __enter__(self) -> Lines:
        try:
            self._file = tempfile.TemporaryFile() if self._path is None else self._path.open("a+b")
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        try:
            self._begin()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, *lines: bytes) -> None:
        """Add lines, which hold no line end, at once; none of them where the disk has not room for all."""
        # Past the file's buffer, which would keep what could not be written, and try it again when the file is closed.
        fd = self._file.fileno()
        start = end = os.fstat(fd).st_size
        left = memoryview(b"".join(line + b"\n" for line in lines))
        try:
            while left:
                written = os.pwrite(fd, left, end)
                left, end = left[written:], end + written
        except OSError as error:
            os.ftruncate(fd, start)
            kept = "" if self._path is None else "; what was done is kept, and the same command goes on"
            raise self._error(f"{error.strerror or error}{kept}") from error
        for line in lines:
            self._note(line, start)
            start += len(line) + 1

    def at(self, start: int) -> bytes:
        """The line that starts there."""
        self._file.seek(start)
        return self._file.readline()

    def _begin(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._error(f"another {self._writer} is writing it") from None
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        self._file.seek(0)
        start = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                self._note(line, start)
            except ValueError:
                raise self._error(f"line {number} is none of {self._whole}") from None
            start += len(line)
        self._file.truncate(start)

    def _error(self, reason: str) -> DatasetError:
        return DatasetError(self._path or Path(tempfile.gettempdir()), reason)
