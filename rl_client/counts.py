"""How numbers of things are told: `1 row`, `1,200 rows`. Pure."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """`thing`: words whose plural has an s at its end."""
    return f"{number:,} {thing if number == 1 else thing + 's'}"
