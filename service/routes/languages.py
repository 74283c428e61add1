"""GET /languages."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request

from service.contract import LanguageRow
from service.routes.context import context

router = APIRouter(tags=["languages"])


@router.get("/languages")
async def list_languages(request: Request) -> list[LanguageRow]:
    """The languages that can be graded here; `language` of a request is an id or an alias, in any case."""
    here = context(request)
    return [
        LanguageRow(
            id=one.id,
            name=one.name,
            version=one.version,
            aliases=one.aliases,
            suffix=one.suffix,
            time_factor=here.settings.time_factors.get(one.id, 1.0),
        )
        for one in here.engine.languages
    ]
