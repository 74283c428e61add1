"""The report of an audit on disk: a line a problem, added as each is done, so that an end of any kind loses none.

An audit that is begun again reads what is there and leaves out what was graded already. Of several lines on the same
problem of a set the last counts. The line that a killed process left half written is cut off.
"""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

from pydantic import ValidationError

from rl_client.audit.rows import ProblemRow
from rl_client.datasets.base import DatasetError


class Report:
    """To be used as a context manager. Raises DatasetError where the file is none, or cannot be written."""

    def __init__(self, path: Path | None) -> None:
        """Without a path it is a file of its own that goes when the audit ends."""
        self._path = path
        self._file: IO[bytes]
        self._latest: dict[tuple[str, str], int] = {}
        self._done: set[str] = set()

    def __enter__(self) -> Report:
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

    def __len__(self) -> int:
        """Problems that it tells of."""
        return len(self._latest)

    def has(self, audit: str) -> bool:
        """Whether the same was graded already, without a fault of the grader's own."""
        return audit in self._done

    def add(self, row: ProblemRow) -> None:
        """Add a line, at once."""
        try:
            start = self._file.seek(0, 2)
            self._file.write(row.model_dump_json().encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        self._note(row, start)

    def rows(self) -> Iterator[ProblemRow]:
        """The line that counts of each problem, read from the file one by one."""
        for start in sorted(self._latest.values()):
            self._file.seek(start)
            yield ProblemRow.model_validate_json(self._file.readline())

    def _begin(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._error("another audit is writing it") from None
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        self._file.seek(0)
        start = 0
        for number, line in enumerate(self._file, 1):
            try:
                row = ProblemRow.model_validate_json(line)
            except ValidationError:
                if line.endswith(b"\n"):
                    raise self._error(f"line {number} is none of an audit's report") from None
                break
            if not line.endswith(b"\n"):
                break
            self._note(row, start)
            start += len(line)
        self._file.truncate(start)

    def _note(self, row: ProblemRow, start: int) -> None:
        self._latest[row.problem_id, row.key] = start
        # What failed by a fault of the grader's is graded again the next time.
        if row.internal_errors:
            self._done.discard(row.audit)
        else:
            self._done.add(row.audit)

    def _error(self, reason: str) -> DatasetError:
        return DatasetError(self._path or Path(tempfile.gettempdir()), reason)
