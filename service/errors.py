"""Every error the service answers with, in one tree, and the one handler that turns them into problem+json
(RFC 9457).

    ServiceError
    ├── MalformedBody        400  the body cannot be decoded: corrupt gzip or zstd, a broken upload
    ├── NotFound             404  no such problem, no such path
    ├── MethodNotAllowed     405
    ├── ClientSilent         408  a large body stopped arriving
    ├── BodyTooLarge         413  past the body limit, counted after decompression
    ├── UnsupportedEncoding  415  a Content-Encoding the service does not speak
    ├── InvalidRequest       422  not JSON, or JSON outside the contract; names the field at fault
    ├── QueueFull            429  with Retry-After
    ├── ClientGone           499  nobody reads this one; it ends the work and stands in the log
    ├── StoredProblemCorrupt 500  what lies in the store is not what its id says
    ├── InternalError        500  a fault of the service
    ├── Unavailable          503  shutting down, or no room for another large body; with Retry-After
    └── DiskFull             507  the data directory takes no more

No answer carries a stack trace, a source or test data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from service.contract import field_path, mistakes

MEDIA_TYPE = "application/problem+json"

#: Errors listed in one answer: enough to mend a request by, and no flood for a body with 10,000 mistakes.
_MOST_ERRORS = 20

#: Past so many mistakes none is named: pydantic tells of all or none, at half a kilobyte each.
_MOST_TOLD = 1000


@dataclass(frozen=True, slots=True)
class FieldError:
    """One mistake in a request:

    `field` is a path such as `problem.tests[3].input`, None for the body as a whole.
    """

    field: str | None
    detail: str


class ProblemDetails(BaseModel):
    """RFC 9457, with the extensions `field`, `errors` and `request_id`."""

    type: str = Field(description="`urn:rkgrade:error:` and a name that does not change.")
    title: str
    status: int
    detail: str = Field(description="What is wrong with this request, for people.")
    field: str | None = Field(None, description="The first field at fault.")
    errors: list[FieldError] | None = Field(None, description="Every mistake that was found, up to a bound.")
    request_id: str | None = Field(None, description="As in the header X-Request-ID and in the log.")


#: OpenAPI's word on every answer that is an error.
DOCUMENTED: dict[int | str, dict[str, Any]] = {
    code: {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
    }
    for code, description in ((422, "Invalid"), ("4XX", "Refused"), ("5XX", "Failed"))
}


class ServiceError(Exception):
    """Anything the service answers a request with in place of a result."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "internal-error"
    title: ClassVar[str] = "The service failed"

    def __init__(
        self,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})

    def response(self, request_id: str | None = None) -> Response:
        """The error as application/problem+json."""
        content = ProblemDetails(
            type=f"urn:rkgrade:error:{self.type}",
            title=self.title,
            status=self.status,
            detail=self.detail,
            field=self.errors[0].field if self.errors else None,
            errors=list(self.errors[:_MOST_ERRORS]) or None,
            request_id=request_id,
        )
        return Response(
            content.model_dump_json(exclude_none=True),
            status_code=self.status,
            headers=self.headers,
            media_type=MEDIA_TYPE,
        )


class MalformedBody(ServiceError):
    status = 400
    type = "malformed-body"
    title = "The body cannot be decoded"


class NotFound(ServiceError):
    status = 404
    type = "not-found"
    title = "There is no such thing here"


class MethodNotAllowed(ServiceError):
    status = 405
    type = "method-not-allowed"
    title = "The method is not allowed here"


class ClientSilent(ServiceError):
    status = 408
    type = "client-silent"
    title = "The body stopped arriving"


class BodyTooLarge(ServiceError):
    status = 413
    type = "body-too-large"
    title = "The body is past the limit"


class UnsupportedEncoding(ServiceError):
    status = 415
    type = "unsupported-encoding"
    title = "The Content-Encoding is not supported"


class InvalidRequest(ServiceError):
    status = 422
    type = "invalid-request"
    title = "The request is not valid"

    @classmethod
    def at(cls, field: str, detail: str) -> InvalidRequest:
        """One mistake at one field."""
        return cls(f"{field}: {detail}", errors=[FieldError(field, detail)])


class QueueFull(ServiceError):
    status = 429
    type = "queue-full"
    title = "The queue is full"

    def __init__(self, detail: str, *, retry_after_s: int) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)})


class ClientGone(ServiceError):
    status = 499
    type = "client-gone"
    title = "The client left"


class StoredProblemCorrupt(ServiceError):
    type = "stored-problem-corrupt"
    title = "The stored problem is damaged"


class InternalError(ServiceError):
    pass


class Unavailable(ServiceError):
    status = 503
    type = "unavailable"
    title = "The service does not take work now"

    def __init__(self, detail: str, *, retry_after_s: int = 5) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)})


class DiskFull(ServiceError):
    status = 507
    type = "disk-full"
    title = "The data directory is full"


def invalid_request(error: ValidationError) -> InvalidRequest:
    """Translate pydantic's word on a JSON body."""
    if error.error_count() > _MOST_TOLD:
        return InvalidRequest(
            f"the body holds {error.error_count():,} mistakes, too many to name; most are fields that are not known"
        )
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return InvalidRequest(f"the body is not JSON: {first['msg']}")
    return invalid_fields([FieldError(_shown(path) or None, sentence) for path, sentence in mistakes(error)])


def _shown(path: str) -> str:
    """The path as UTF-8 can hold it: names of fields are the client's, too."""
    return path.encode(errors="backslashreplace").decode()


def invalid_fields(errors: Sequence[FieldError]) -> InvalidRequest:
    """One answer for several mistakes; there must be one."""
    first = errors[0]
    detail = first.detail if first.field is None else f"{first.field}: {first.detail}"
    if len(errors) > 1:
        detail += f" (and {len(errors) - 1} more)"
    return InvalidRequest(detail, errors=errors)


def _from_http(error: HTTPException, request: Request) -> ServiceError:
    if error.status_code == 404:
        return NotFound(f"nothing is served at {request.url.path}")
    if error.status_code == 405:
        return MethodNotAllowed(f"{request.url.path} does not take {request.method}", headers=error.headers)
    if error.status_code < 500:
        return MalformedBody(str(error.detail) or HTTPStatus(error.status_code).phrase)
    return InternalError("the service failed at this request; its log says more")


def add_handlers(app: FastAPI, count: Callable[[str], None]) -> None:
    """Make every error of `app` a problem+json answer, and `count` each by its type."""

    def answer(request: Request, error: ServiceError) -> Response:
        count(error.type)
        return error.response(getattr(request.state, "request_id", None))

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
