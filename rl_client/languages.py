"""What a grader's languages are called. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from service.contract import LanguageRow


def ids_by_name(languages: Iterable[LanguageRow]) -> dict[str, str]:
    """The id of a language by all its names, in lower case."""
    return {name.lower(): one.id for one in languages for name in (one.id, *one.aliases)}
