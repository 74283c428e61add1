"""How a message quotes a text that a stranger wrote: a little of it, and printable."""

from __future__ import annotations

#: How much of a text a message quotes.
QUOTED_BYTES = 60

#: How much of that stands before the difference.
_QUOTED_BEFORE = 20


def quote(text: bytes | memoryview, at: int = 0) -> str:
    """At most QUOTED_BYTES of `text` around offset `at`, printable, in quotation marks."""
    start = 0 if len(text) <= QUOTED_BYTES else max(0, at - _QUOTED_BEFORE)
    shown = bytes(text[start : start + QUOTED_BYTES]).decode("utf-8", "backslashreplace")
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    before = "..." if start > 0 else ""
    after = "..." if start + QUOTED_BYTES < len(text) else ""
    return f"{before}'{shown}'{after}"
