"""GET /languages."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request

from service.routes.context import context

router = APIRouter(tags=["languages"])


class LanguageRow(BaseModel):
    id: str
    name: str
    version: str
    aliases: tuple[str, ...]


@router.get("/languages")
async def list_languages(request: Request) -> list[LanguageRow]:
    """The languages that can be graded here; `language` of a request is an id or an alias, in any case."""
    return [
        LanguageRow(id=one.id, name=one.name, version=one.version, aliases=one.aliases)
        for one in context(request).engine.languages
    ]
