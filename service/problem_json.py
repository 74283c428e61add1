"""How errors are answered: as application/problem+json (RFC 9457), by one handler for all.

No answer carries a stack trace, a source or test data.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from service.contract import field_path
from service.errors import (
    FieldError,
    InternalError,
    MalformedBody,
    MethodNotAllowed,
    NotFound,
    ServiceError,
    SessionEnded,
    invalid_fields,
)

MEDIA_TYPE = "application/problem+json"

#: Errors listed in one answer: enough to mend a request by, and no flood for a body with 10,000 mistakes.
_MOST_ERRORS = 20


class ProblemDetails(BaseModel):
    """RFC 9457, with the extensions `field`, `errors`, `ended` and `request_id`."""

    type: str = Field(description="`urn:rkgrade:error:` and a name that does not change.")
    title: str
    status: int
    detail: str = Field(description="What is wrong with this request, for people.")
    field: str | None = Field(None, description="The first field at fault.")
    errors: list[FieldError] | None = Field(None, description="Every mistake that was found, up to a bound.")
    ended: str | None = Field(None, description="Why the session has ended, in one word, such as `cpu` or `idle`.")
    request_id: str | None = Field(None, description="As in the header X-Request-ID and in the log.")


#: OpenAPI's word on every answer that is an error.
DOCUMENTED: dict[int | str, dict[str, Any]] = {
    code: {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
    }
    for code, description in ((422, "Invalid"), ("4XX", "Refused"), ("5XX", "Failed"))
}


def details(error: ServiceError, request_id: str | None = None) -> ProblemDetails:
    return ProblemDetails(
        type=f"urn:rkgrade:error:{error.type}",
        title=error.title,
        status=error.status,
        detail=error.detail,
        field=error.errors[0].field if error.errors else None,
        errors=list(error.errors[:_MOST_ERRORS]) or None,
        ended=error.ended if isinstance(error, SessionEnded) else None,
        request_id=request_id,
    )


def answer_to(error: ServiceError, request_id: str | None = None) -> Response:
    return Response(
        details(error, request_id).model_dump_json(exclude_defaults=True),
        status_code=error.status,
        headers=error.headers,
        media_type=MEDIA_TYPE,
    )


_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")


def _allowed(request: Request) -> list[str]:
    """What methods the path takes; Starlette names those of the first of its routes alone."""
    routes: list[BaseRoute] = request.app.routes
    asked = {key: value for key, value in request.scope.items() if key not in ("path_params", "endpoint", "route")}
    return [
        method
        for method in _METHODS
        if any(route.matches({**asked, "method": method})[0] is Match.FULL for route in routes)
    ]


def _from_http(error: HTTPException, request: Request) -> ServiceError:
    if error.status_code == 404:
        return NotFound(f"nothing is served at {request.url.path}")
    if error.status_code == 405:
        return MethodNotAllowed(
            f"{request.url.path} does not take {request.method}", headers={"Allow": ", ".join(_allowed(request))}
        )
    if error.status_code < 500:
        return MalformedBody(str(error.detail) or HTTPStatus(error.status_code).phrase)
    return InternalError("the service failed at this request; its log says more")


def add_handlers(app: FastAPI, count: Callable[[str], None]) -> None:
    """Make every error of `app` a problem+json answer, and `count` each by its type."""

    def answer(request: Request, error: ServiceError) -> Response:
        count(error.type)
        return answer_to(error, getattr(request.state, "request_id", None))

    async def on_service_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, ServiceError)
        return answer(request, error)

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return answer(request, _from_http(error, request))

    async def on_parameter_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        found = [FieldError(field_path(e["loc"][1:]) or None, e["msg"]) for e in error.errors()]
        return answer(request, invalid_fields(found))

    async def on_fault(request: Request, error: Exception) -> Response:
        return answer(request, InternalError("the service failed at this request; its log says more"))

    app.add_exception_handler(ServiceError, on_service_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_parameter_error)
    app.add_exception_handler(Exception, on_fault)
