"""What hosts tell of themselves, and what of that the API may promise: it runs no program itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from service.contract import GraderInfo
from service.engines.base import LanguageInfo


class Offer(BaseModel):
    """One host's; JSON in Redis."""

    model_config = ConfigDict(frozen=True)

    sandbox: str
    secure: bool
    languages: tuple[LanguageInfo, ...]
    graders: Mapping[str, GraderInfo]
    """By language id: what results say of the grader."""


def common(offers: Sequence[Offer]) -> tuple[LanguageInfo, ...]:
    """The languages that every host offers: any host may take any job."""
    if not offers:
        return ()
    everywhere = set.intersection(*({language.id for language in offer.languages} for offer in offers))
    return tuple(language for language in offers[0].languages if language.id in everywhere)
