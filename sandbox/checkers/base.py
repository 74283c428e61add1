"""The seam between the judge and whatever decides on a program's output: a text comparison, or a program."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

from sandbox.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class CheckerOutcome:
    verdict: Verdict
    """`accepted`, `wrong_answer` or `checker_error`."""
    message: str = ""
    """For people; may quote the test's data, so it is shown only on request (`detail: outputs`)."""
    score: float | None = None
    """Share of the full score, where the checker gave points: 1.0 is all of it."""
    provoked: bool = False
    """Of a `checker_error`: the jury's program does well where nobody tries it (a checker on the expected answer, an
    interactor beside a program that says nothing), so that it was this program which brought the fault about."""


class Checker(Protocol):
    """Decides on the output of a run that ended cleanly. Holds no state between calls."""

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        """Compare one output, mapped into memory as written by the program, with the expected one."""
        ...


@dataclass(frozen=True, slots=True)
class JuryProgram:
    """A program that comes with the problem: a checker or an interactor, as source."""

    language: str
    """Id or alias in the registry."""
    files: tuple[tuple[str, bytes], ...]
    """Names and texts. Of several C or C++ files all are compiled together; of several Python files `main.py` runs."""
    uses_testlib: bool = False
    """Whether it includes testlib.h; the language is then C++."""
    field: str = "checker.source"
    """Where the problem holds its text, for whoever is told that it is of no use."""


class CheckerProtocol(enum.StrEnum):
    """How a checker is asked, and how it answers (`sandbox.checkers.programs`)."""

    TESTLIB = "testlib"
    KATTIS = "kattis"
    PYTHON = "python"


class Partial(enum.StrEnum):
    """When points (testlib: exit status 7, `_pc(x)`; python: a number between 0 and 1) accept a test."""

    REJECT = "reject"
    """Never: only a plain "ok" does."""
    ACCEPT = "accept"
    """Where they are more than 0."""
    SCORE = "score"
    """Where they reach the full score."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """What points mean for the verdict. They are reported either way, as shares of the full score."""

    partial: Partial = Partial.REJECT
    full_score: float = 1.0
    """The points of a right answer."""


@dataclass(frozen=True, slots=True)
class CheckerProgram:
    """A checker that is a program. It runs in a cell of its own (`sandbox.checking`), by its protocol's rules."""

    protocol: CheckerProtocol
    program: JuryProgram
    flags: tuple[str, ...] = ()
    """Further arguments."""
    scoring: Scoring = Scoring()
