"""What ensembles may raise, beside `DatasetError`. Messages are one line, but for a list of reasons.

EnsembleError
├── BadRun         what stands for a run cannot be read as one
├── Unfit          the runs cannot be pooled; has every reason
└── BadBudget      samples that there are not
"""

from __future__ import annotations

from collections.abc import Sequence


class EnsembleError(Exception):
    """Anything that an ensemble raises of its own."""


class BadRun(EnsembleError):
    pass


class Unfit(EnsembleError):
    def __init__(self, reasons: Sequence[str]) -> None:
        head = "the runs cannot be pooled"
        lines = [f"{head}:" if len(reasons) == 1 else f"{head}, for {len(reasons)} reasons:", *reasons]
        super().__init__("\n  ".join(lines))
        self.reasons = tuple(reasons)


class BadBudget(EnsembleError):
    pass
