"""Files that are there whole or not at all, written line by line."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO

from rl_client.datasets.base import DatasetError


class Output:
    """A file of lines: written aside, and put in its place when the `with` block ends without an error.

    `-` is stdout; a device or a pipe is written to as it is. Errors of writing are raised as DatasetError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._aside: Path | None = None
        self._file: IO[bytes]

    def __enter__(self) -> Output:
        try:
            if self._path == Path("-"):
                self._file = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
            elif self._path.exists() and not self._path.is_file():
                self._file = self._path.open("wb")
            else:
                fd, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
                self._file, self._aside = os.fdopen(fd, "wb"), Path(name)
                # mkstemp's files are for their owner alone; this one is to be like any other.
                mask = os.umask(0)
                os.umask(mask)
                self._aside.chmod(0o666 & ~mask)
        except OSError as error:
            raise self._error(error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
            if self._aside is not None and kind is None:
                self._aside.replace(self._path)
        except OSError as failed:
            if kind is None:
                raise self._error(failed) from failed
        finally:
            if self._aside is not None:
                self._aside.unlink(missing_ok=True)

    def write_line(self, content: bytes) -> None:
        """Write bytes that hold no line end, and one behind them."""
        self.write(content)
        self.write(b"\n")

    def write(self, content: bytes) -> None:
        """Write bytes as they are."""
        try:
            self._file.write(content)
        except OSError as error:
            raise self._error(error) from error

    def _error(self, error: OSError) -> DatasetError:
        return DatasetError(self._path, error.strerror or str(error))
