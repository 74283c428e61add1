"""What an evaluation keeps on disk, added to as it comes: `generations.jsonl` and `grades.jsonl`.

Both are read when an evaluation begins, so that nothing is sampled or graded twice. Texts stay on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rl_client.datasets.lines import Lines
from rl_client.evaluate.rows import Generation, Grade, Usage

GENERATIONS = "generations.jsonl"
GRADES = "grades.jsonl"


@dataclass(frozen=True, slots=True)
class Kept:
    """What is in memory of a sample."""

    start: int
    """Of its line."""
    grade: str
    """Hash of what its grade is kept by."""
    finish_reason: str | None
    turns: int
    calls: int
    usage: Usage | None


class _Store:
    _lines: Lines

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.__exit__(kind, error, trace)


class Generations(_Store):
    """To be used as a context manager. Raises DatasetError where the file is none, or cannot be written."""

    def __init__(self, path: Path, grade: Callable[[Generation], str]) -> None:
        """`grade`: the hash of what a sample's grade is kept by."""
        self._lines = Lines(path, self._note, whole="an evaluation's generations", writer="evaluation")
        self._grade = grade
        self._kept: dict[tuple[str, int], Kept] = {}

    def __enter__(self) -> Generations:
        self._lines.__enter__()
        return self

    def __len__(self) -> int:
        """Samples that there are."""
        return len(self._kept)

    def get(self, task: str, sample: int) -> Kept | None:
        """None where there is no such sample yet."""
        return self._kept.get((task, sample))

    def read(self, task: str, sample: int) -> Generation:
        """All of it. Raises KeyError."""
        return Generation.model_validate_json(self._lines.at(self._kept[task, sample].start))

    def add(self, generations: Sequence[Generation]) -> None:
        """Add those of one request, at once."""
        self._lines.add(*(one.model_dump_json(exclude_defaults=True).encode() for one in generations))

    def _note(self, line: bytes, start: int) -> None:
        one = Generation.model_validate_json(line)
        self._kept[one.task, one.sample] = Kept(
            start, self._grade(one), one.finish_reason, one.turns, one.calls, one.usage
        )


class Grades(_Store):
    """To be used as a context manager. Raises DatasetError where the file is none, or cannot be written.

    Of several lines on the same program the last counts.
    """

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path, self._note, whole="an evaluation's grades", writer="evaluation")
        self._kept: dict[str, Grade] = {}

    def __enter__(self) -> Grades:
        self._lines.__enter__()
        return self

    def get(self, grade: str) -> Grade | None:
        """None where it was not graded yet."""
        return self._kept.get(grade)

    def has(self, grade: str) -> bool:
        """Whether it was graded, without a fault of the grader's own."""
        kept = self._kept.get(grade)
        return kept is not None and not kept.is_fault

    def add(self, grade: Grade) -> None:
        """Add a line, at once."""
        self._lines.add(grade.model_dump_json().encode())

    def _note(self, line: bytes, start: int) -> None:
        one = Grade.model_validate_json(line)
        self._kept[one.grade] = one
