"""The pages for people: `/`, and the API's documentation at `/docs`. Files alone, and what a browser may do with them.

They hold nothing of this service, so they need no token; what they show they ask for, with the token of whoever looks.
No page runs a script or a style that is not a file of its own, so that nothing that a program printed, or a problem is
called, can become one.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response
from starlette.routing import Route

_ALLOWED: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'{images}; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'{more}"
)
#: Trusted Types: no text becomes markup, not even by a mistake in the script.
_PAGE: Final = _ALLOWED.format(images="", more="; require-trusted-types-for 'script'")
_DOCS: Final = _ALLOWED.format(images=" data:", more="")

_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

#: By path: the package and the file, and what its page may do.
_FILES: Final = {
    "/": ("service.page", "index.html", _PAGE),
    "/page.css": ("service.page", "page.css", _PAGE),
    "/page.js": ("service.page", "page.js", _PAGE),
    "/chart.js": ("service.page", "chart.js", _PAGE),
    "/example.js": ("service.page", "example.js", _PAGE),
    "/icon.svg": ("service.page", "icon.svg", _PAGE),
    "/docs": ("service.page", "docs.html", _DOCS),
    "/docs.js": ("service.page", "docs.js", _DOCS),
    "/swagger-ui.css": ("fastapi_swagger.resources", "swagger-ui.css", _DOCS),
    "/swagger-ui-bundle.js": ("fastapi_swagger.resources", "swagger-ui-bundle.js", _DOCS),
}

PATHS: Final = frozenset(_FILES)


def router() -> APIRouter:
    """The routes, with each file read once."""
    return APIRouter(routes=[_route(path, *file) for path, file in _FILES.items()])


def _route(path: str, package: str, name: str, policy: str) -> Route:
    content = (files(package) / name).read_bytes()
    headers = {"Content-Security-Policy": policy, "Cache-Control": "no-cache"}

    async def serve(_: object) -> Response:
        return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=headers)

    return Route(path, serve, methods=["GET"], include_in_schema=False)
