"""The report of an audit on disk: a line a problem, added as each is done, so that an end of any kind loses none.

An audit that is begun again reads what is there and leaves out what was graded already. Of several lines on the same
problem of a set the last counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from rl_client.audit.rows import ProblemRow
from rl_client.datasets.lines import Lines


class Report:
    """To be used as a context manager. Raises DatasetError where the file is none, or cannot be written."""

    def __init__(self, path: Path | None) -> None:
        """Without a path it is a file of its own that goes when the audit ends."""
        self._lines = Lines(path, self._note, whole="an audit's report", writer="audit")
        self._latest: dict[tuple[str, str], int] = {}
        self._done: set[str] = set()

    def __enter__(self) -> Report:
        self._lines.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.__exit__(kind, error, trace)

    def __len__(self) -> int:
        """Problems that it tells of."""
        return len(self._latest)

    def has(self, audit: str) -> bool:
        """Whether the same was graded already, without a fault of the grader's own."""
        return audit in self._done

    def add(self, row: ProblemRow) -> None:
        """Add a line, at once."""
        self._lines.add(row.model_dump_json().encode())

    def rows(self) -> Iterator[ProblemRow]:
        """The line that counts of each problem, read from the file one by one."""
        for start in sorted(self._latest.values()):
            yield ProblemRow.model_validate_json(self._lines.at(start))

    def _note(self, line: bytes, start: int) -> None:
        """Raises pydantic.ValidationError."""
        row = ProblemRow.model_validate_json(line)
        self._latest[row.problem_id, row.key] = start
        # What failed by a fault of the grader's is graded again the next time.
        if row.internal_errors:
            self._done.discard(row.audit)
        else:
            self._done.add(row.audit)
