"""What merging checkpoints may raise. Messages are one line, but for the list of differences.

MergeError
├── BadCheckpoint  a folder or a file in it cannot be read as a checkpoint; names the file
├── Differences    the checkpoints cannot be averaged; has every reason
├── NotFinite      a checkpoint holds NaN or infinity; names the tensor
├── OutputTaken    where the output is to go there is something else
└── CannotWrite    the disk is full, or it takes no more for another reason
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class MergeError(Exception):
    """Anything that merging raises of its own."""


class BadCheckpoint(MergeError):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {' '.join(reason.split())}")
        self.path = path
        self.reason = reason


class Differences(MergeError):
    def __init__(self, differences: Sequence[str]) -> None:
        lines = [f"the checkpoints cannot be averaged, for {len(differences)} reasons:", *differences]
        if len(differences) == 1:
            lines[0] = "the checkpoints cannot be averaged:"
        super().__init__("\n  ".join(lines))
        self.differences = tuple(differences)


class NotFinite(MergeError):
    def __init__(self, path: Path, tensor: str, nan: int, infinite: int) -> None:
        """`nan`, `infinite`: how many elements of the part of the tensor that was read."""
        counts = [f"{count:,} {kind}" for count, kind in ((nan, "NaN"), (infinite, "infinite")) if count]
        super().__init__(f"{path}: tensor {tensor} holds {' and '.join(counts)} elements, so no average of it is right")
        self.tensor = tensor


class OutputTaken(MergeError):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class CannotWrite(MergeError):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
