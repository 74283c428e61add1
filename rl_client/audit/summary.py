"""All problems of a report together. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from rl_client.audit.rows import ProblemRow, Thresholds

#: Quarantined problems that are shown one by one; the file has them all.
SHOWN = 20


@dataclass(slots=True)
class Side:
    """The right, or the wrong, programs of all problems."""

    labelled: int = 0
    graded: int = 0
    agreed: int = 0
    rates: int = 0
    """Problems that have a rate."""
    sum_of_rates: float = 0.0

    @property
    def pooled(self) -> float | None:
        """The rate over all programs."""
        return self.agreed / self.graded if self.graded else None

    @property
    def mean(self) -> float | None:
        """The mean of the problems' rates."""
        return self.sum_of_rates / self.rates if self.rates else None


@dataclass(slots=True)
class Summary:
    problems: int = 0
    without_rate: int = 0
    """Problems with neither rate, of which nothing is known."""
    correct: Side = field(default_factory=Side)
    incorrect: Side = field(default_factory=Side)
    verdicts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    kinds: Counter[str] = field(default_factory=Counter)
    """Programs whose result is not as their set says, by how it is not."""
    skipped: Counter[str] = field(default_factory=Counter)
    quarantined: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    worst: list[ProblemRow] = field(default_factory=list)
    """The first quarantined ones."""


def summarize(rows: Iterable[ProblemRow], thresholds: Thresholds) -> Summary:
    """By these thresholds, whichever the rows were made with."""
    found = Summary()
    for row in map(thresholds.judged, rows):
        found.problems += 1
        found.without_rate += row.tpr is None and row.tnr is None
        for side, counts, rate in ((found.correct, row.correct, row.tpr), (found.incorrect, row.incorrect, row.tnr)):
            side.labelled += counts.labelled
            side.graded += counts.graded
            side.agreed += counts.agreed
            if rate is not None:
                side.rates += 1
                side.sum_of_rates += rate
        for label, verdicts in row.verdicts.items():
            found.verdicts[label].update(verdicts)
        found.kinds.update(one.kind for one in row.disagreements)
        found.skipped.update(row.skipped)
        found.reasons.update(row.quarantine)
        if row.quarantine:
            found.quarantined += 1
            if len(found.worst) < SHOWN:
                found.worst.append(row.model_copy(update={"disagreements": ()}))
    return found
