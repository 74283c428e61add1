"""Models' texts as they can be sent."""

from __future__ import annotations


def sendable(text: str) -> str:
    """A text with half of a surrogate pair has no form to be sent in, and came from a model all the same."""
    return text if text.isascii() else text.encode(errors="replace").decode()
