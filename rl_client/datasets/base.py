"""What every dataset reader shares: the error it raises, and reading text that must survive unchanged.

A reader turns another's problem format into `service.contract.Problem`. It knows nothing of how problems are
graded or sent.
"""

from __future__ import annotations

from pathlib import Path


class DatasetError(Exception):
    """A data set that cannot be read as it stands. The message is one line and names the file at fault."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def read_text(path: Path) -> str:
    """The file's content, byte for byte: no newline is translated, no byte-order mark dropped.

    Raises DatasetError where the file cannot be read or is not UTF-8, the only encoding that JSON carries.
    """
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise DatasetError(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise DatasetError(path, f"not UTF-8: {error.reason} at byte {error.start}") from error
