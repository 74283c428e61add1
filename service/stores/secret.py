"""The secret that hosts of one grader share, and the store does not know: from a file that the operator laid there."""

from __future__ import annotations

import hashlib
from pathlib import Path

from service.auth import TokensRefused, examined

#: 32 hexadecimal digits, drawn at random, are 128 bits.
_LEAST_BYTES = 32
_MOST_BYTES = 4096


def read_secret(path: Path) -> bytes:
    """Raises ValueError, which says what is wrong with the file and quotes nothing of it."""
    try:
        text = examined(path, _MOST_BYTES).strip()
    except TokensRefused as error:
        raise ValueError(str(error)) from error
    if len(text) < _LEAST_BYTES:
        raise ValueError(f"{path}: has fewer than {_LEAST_BYTES} characters")
    return hashlib.sha256(text).digest()
