"""Completions that are there already: a JSON line for each.

    {"key": "abc300_a", "completion": "Add them.\n```python\n...```"}
    {"key": "abc300_a", "source": "print(...)"}

`key` is what the set calls the problem; in its place may stand `problem_id`. Samples of a problem are counted in the
order of their lines.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from rl_client.datasets.base import DatasetError
from rl_client.datasets.row import Row, RowError
from rl_client.datasets.rows import read_rows
from rl_client.evaluate.errors import BadCompletions
from rl_client.evaluate.rows import Generation
from rl_client.evaluate.tasks import Task
from rl_client.sendable import sendable


def hash_of(path: Path) -> str:
    """Of the file. Raises DatasetError."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(path, error.strerror or str(error)) from error


class Completions:
    """Those of a file, as samples of tasks. `others`: how many are of other problems."""

    def __init__(self, path: Path, tasks: Iterable[Task]) -> None:
        self._path = path
        self._tasks: dict[str, list[Task]] = defaultdict(list)
        for task in tasks:
            for name in {task.key, task.problem_id} - {""}:
                self._tasks[name].append(task)
        self.others = 0

    def __iter__(self) -> Iterator[Generation]:
        """Raises BadCompletions, and DatasetError of a file that cannot be read."""
        self.others = 0
        samples: Counter[str] = Counter()
        for record in read_rows(self._path, ("key", "problem_id", "completion", "source", "finish_reason")):
            try:
                row = Row(record.load())
                name = row.text("key") or row.text("problem_id")
                text, source = row.text("completion"), row.text("source")
                finish_reason = row.text("finish_reason")
                if not name:
                    raise row.fault("key", "missing, and so is problem_id")
                if (text is None) == (source is None):
                    raise row.fault("completion", "exactly one of completion and source is needed")
            except RowError as error:
                raise BadCompletions(f"{self._path} row {record.number}: {error.detail}") from None
            tasks = self._tasks.get(name, [])
            self.others += not tasks
            for task in tasks:
                yield Generation(
                    task=task.id,
                    problem_id=task.problem_id,
                    key=task.key,
                    sample=samples[task.id],
                    text=sendable(text or ""),
                    source=None if source is None else sendable(source),
                    finish_reason=finish_reason,
                )
                samples[task.id] += 1
