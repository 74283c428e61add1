"""Programs that a data set says are right, or wrong: what is known of one, and whether a result is as its set says.

Knows no data set, and nothing of how programs get to a grader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rl_client.datasets.row import Row
from service.contract import TestRow, Verdict


@dataclass(frozen=True, slots=True)
class Expectation:
    """What its set says of a program's verdicts on (some) tests."""

    permitted: frozenset[Verdict]
    """No test may come to any other."""
    required: frozenset[Verdict]
    """At least one test must come to one of these."""
    tests: re.Pattern[str] | None = None
    """The names of the tests that it is about; None for all."""

    def objection(self, rows: Sequence[TestRow]) -> str | None:
        """How a result is not as expected; None where it is, or where no test is meant."""
        meant = [row for row in rows if self.tests is None or self.tests.fullmatch(row.name or "")]
        for row in meant:
            if row.verdict not in self.permitted:
                return f"{row.name or f'test {row.index}'} came to {row.verdict}"
        if meant and not any(row.verdict in self.required for row in meant):
            return f"no test came to {' or '.join(sorted(self.required))}"
        return None


@dataclass(frozen=True, slots=True)
class Submission:
    """One program with what its set says of it."""

    name: str
    """Tells it from the problem's others, such as `accepted/counting.py` or `solutions[3]`."""
    label: str
    """The set's word for its kind, such as `time_limit_exceeded` or `incorrect_submissions`."""
    correct: bool
    """Whether it should be accepted on every test."""
    language: str
    """As the set calls it."""
    source: str
    """The program, or a text that holds it in a code fence."""
    expected: tuple[Expectation, ...] = ()
    """What is said beyond that, all of which must hold."""
    unusable: str = ""
    """Why it cannot be graded; empty where it can."""

    def objection(self, rows: Sequence[TestRow]) -> str | None:
        """How the verdicts of its tests are not as the set says; None where they are."""
        return next(filter(None, (one.objection(rows) for one in self.expected)), None)


@dataclass(frozen=True, slots=True)
class SubmissionReader:
    """How a set's rows hold programs."""

    columns: tuple[str, ...]
    """What `read` looks at beyond the columns of the problem."""
    read: Callable[[Row], Iterable[Submission]]
    """Those of one row. Raises RowError."""


def solutions(texts: Iterable[object], label: str, language: str = "python") -> Iterator[Submission]:
    """Programs that are right, in a column of nothing but their texts."""
    for index, text in enumerate(texts):
        yield submission(f"{label}[{index}]", label, True, language, text)


def _listed(row: Row) -> Iterator[Submission]:
    content = row.json("solutions") or []
    if not isinstance(content, list):
        raise row.fault("solutions", f"must hold a list, not {type(content).__name__}")
    return solutions(content, "solutions")


LISTED = SubmissionReader(("solutions",), _listed)
"""Of sets whose column `solutions` is a list of right programs in Python, or its JSON text."""


def submission(name: str, label: str, correct: bool, language: str, text: object) -> Submission:
    """One program of a row; what holds no program is unusable, not an error: the row's others may do."""
    if not isinstance(text, str) or not text.strip():
        return Submission(name, label, correct, language, "", unusable="no source")
    return Submission(name, label, correct, language, text)
