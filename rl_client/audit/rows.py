"""What an audit says of one problem, as a line of its report, and when that is reason to keep it from training.

Pure. Rates are those of the CodeContests+ paper (arXiv 2506.05817): the true positive rate (TPR) is the share of right
programs that every test accepts, the true negative rate (TNR) the share of wrong ones that some test rejects. Here they
are over programs that were run: one that does not compile says nothing of the tests, and a fault of the grader's says
nothing of the program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Reason = Literal["tpr", "tnr", "checker_error"]
Disagreement = Literal["false_negative", "false_positive", "unexpected", "fault", "compile_error"]
"""
false_negative  a right program that was rejected
false_positive  a wrong program that was accepted
unexpected      rejected, as a wrong program should be, but otherwise than its set says
fault           the grader, or the problem's checker, failed at it
compile_error   it does not compile here
"""


def _shown(text: object) -> object:
    """Text of others as UTF-8 can hold it: half a surrogate pair, or a byte of a file's name, has no such form."""
    return text.encode(errors="backslashreplace").decode() if isinstance(text, str) else text


Shown = Annotated[str, BeforeValidator(_shown)]


class _Line(BaseModel):
    """Later versions may add fields; an older one reads on."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class SideRow(_Line):
    """The right programs of a problem, or the wrong ones."""

    labelled: int = Field(description="In the data set.")
    graded: int = Field(description="Run on the tests, to an end of their own.")
    agreed: int = Field(description="Of these, accepted if right, rejected if wrong.")

    def rate(self, least: int) -> float | None:
        """The share that agreed; null of fewer than `least` (or of none)."""
        return self.agreed / self.graded if self.graded >= max(least, 1) else None


class DisagreementRow(_Line):
    """One program whose result is not as its set says."""

    name: Shown
    label: Shown
    language: str
    kind: Disagreement
    verdict: str
    test: Shown | None = Field(default=None, description="Name or number of the first failing test, by input length.")
    input_length: int | None = Field(default=None, description="Of that test, in bytes.")
    message: Shown = Field(default="", description="The grader's word; holds nothing of the tests' data.")
    source: str | None = Field(default=None, description="The program, where it was asked for.")


class ProblemRow(_Line):
    """One problem."""

    file: Shown
    row: int | None
    key: Shown
    problem_id: str
    kind: str
    tests: int
    audit: str = Field(description="Hash of what was graded and how; the same again need not be graded again.")
    tpr: float | None
    tnr: float | None
    correct: SideRow
    incorrect: SideRow
    verdicts: dict[Shown, dict[str, int]] = Field(description="How many programs of a label came to a verdict.")
    unexpected: int = Field(description="Wrong programs that were rejected, but otherwise than their set says.")
    compile_errors: int
    checker_errors: int
    internal_errors: int
    skipped: dict[Shown, int] = Field(description="How many programs were not graded, by reason.")
    disagreements: tuple[DisagreementRow, ...]
    quarantine: tuple[Reason, ...] = Field(description="Why the problem should not be trained on; empty where it may.")
    grader: str = Field(description="Version of the grader; empty where it graded nothing.")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a problem is quarantined. A null rate is no reason: nothing is known on that side."""

    min_tpr: float
    min_tnr: float
    least: int
    """Programs of a side below which it has no rate."""
    max_checker_errors: float
    """Share of the programs run at which the problem's own checker or interactor may fail."""

    def reasons(self, row: ProblemRow) -> tuple[Reason, ...]:
        tpr, tnr = row.correct.rate(self.least), row.incorrect.rate(self.least)
        run = row.correct.graded + row.incorrect.graded + row.checker_errors
        found: list[Reason] = []
        if tpr is not None and tpr < self.min_tpr:
            found.append("tpr")
        if tnr is not None and tnr < self.min_tnr:
            found.append("tnr")
        if run and row.checker_errors / run > self.max_checker_errors:
            found.append("checker_error")
        return tuple(found)

    def judged(self, row: ProblemRow) -> ProblemRow:
        """The row with rates and reasons by these thresholds, whichever it was made with."""
        rates = {"tpr": row.correct.rate(self.least), "tnr": row.incorrect.rate(self.least)}
        return row.model_copy(update=rates | {"quarantine": self.reasons(row)})
