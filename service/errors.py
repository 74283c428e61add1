"""Every error the service answers with, in one tree. How they are answered is said in `problem_json`.

ServiceError
├── MalformedBody        400  the body cannot be decoded: corrupt gzip or zstd, a broken upload
├── Unauthorized         401  no token, or none that is good here
├── CrossSite            403  a browser asks on behalf of another site's page
├── NotFound             404  no such problem, no such path
│   ├── NoSession             no session of that id, or another client's
│   └── SessionEnded          the session is there no more; says why
├── MethodNotAllowed     405
├── ClientSilent         408  a large body stopped arriving
├── BodyTooLarge         413  past the body limit, counted after decompression
├── UnsupportedEncoding  415  a Content-Encoding the service does not speak
├── UnsupportedType      415  a Content-Type other than JSON
├── Misdirected          421  the Host header names somebody else
├── InvalidRequest       422  not JSON, or JSON outside the contract; names the field at fault
├── KeyReused            422  an Idempotency-Key that stands for another request
├── UpgradeRequired      426  a terminal, asked for by plain HTTP
├── Conflict             409  a file of a session is not what the request takes it for
├── JobDeleted           409  what a request waits for was deleted by another one
├── QueueFull            429  with Retry-After
├── SessionsFull         429  as many sessions, or commands in one, as may be; with Retry-After
├── ClientGone           499  nobody reads this one; it ends the work and stands in the log
├── StoredProblemCorrupt 500  what lies in the store is not what its id says
├── InternalError        500  a fault of the service
├── NotOffered           501  what this service, as it was started, does not do
├── Unavailable          503  shutting down, or no room for another large body; with Retry-After
├── AskAgain             504  what cannot be done now, told to those who ask again after nothing else; with Retry-After
├── DeadlinePassed       504  the client's own deadline; nobody waits any more
└── DiskFull             507  the data directory takes no more
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from pydantic import ValidationError

from service.contract import MOST_TOLD, mistakes


@dataclass(frozen=True, slots=True)
class FieldError:
    """One mistake in a request:

    `field` is a path such as `problem.tests[3].input`, None for the body as a whole.
    """

    field: str | None
    detail: str


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
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        if retry_after_s is not None:
            self.headers["Retry-After"] = str(retry_after_s)

    def apart(self) -> Self:
        """The same without a traceback, which holds all that was in hand where it was raised."""
        other = type(self).__new__(type(self), *self.args)
        other.__dict__.update(self.__dict__)
        return other


class MalformedBody(ServiceError):
    status = 400
    type = "malformed-body"
    title = "The body cannot be decoded"


class Unauthorized(ServiceError):
    status = 401
    type = "unauthorized"
    title = "A token is needed"


class CrossSite(ServiceError):
    status = 403
    type = "cross-site"
    title = "The request comes from another site"


class NotFound(ServiceError):
    status = 404
    type = "not-found"
    title = "There is no such thing here"


class NoSession(NotFound):
    """Of its own type: a client that has opened one takes this for its loss, and not for a file that is not there."""

    type = "no-session"
    title = "There is no such session here"

    def __init__(self) -> None:
        super().__init__("no session of that id is open here: it has ended, or never was")


class SessionEnded(NotFound):
    """Its time, its CPU time or its client's patience is over."""

    type = "session-ended"
    title = "The session has ended"

    def __init__(self, ended: str) -> None:
        """`ended`: why, in the words of the metric `rkgrade_sessions_total`."""
        super().__init__(f"the session has ended: {ended}")
        self.ended = ended


class MethodNotAllowed(ServiceError):
    status = 405
    type = "method-not-allowed"
    title = "The method is not allowed here"


class ClientSilent(ServiceError):
    status = 408
    type = "client-silent"
    title = "The body stopped arriving"


class Conflict(ServiceError):
    status = 409
    type = "conflict"
    title = "The session's files are not like that"


class BodyTooLarge(ServiceError):
    status = 413
    type = "body-too-large"
    title = "The body is past the limit"


class UnsupportedEncoding(ServiceError):
    status = 415
    type = "unsupported-encoding"
    title = "The Content-Encoding is not supported"


class UnsupportedType(ServiceError):
    status = 415
    type = "unsupported-type"
    title = "The Content-Type is not supported"


class Misdirected(ServiceError):
    status = 421
    type = "misdirected"
    title = "The Host header names another service"


class InvalidRequest(ServiceError):
    status = 422
    type = "invalid-request"
    title = "The request is not valid"

    @classmethod
    def at(cls, field: str, detail: str) -> InvalidRequest:
        """One mistake at one field."""
        return cls(f"{field}: {detail}", errors=[FieldError(field, detail)])


class JobDeleted(ServiceError):
    status = 409
    type = "job-deleted"
    title = "The job was deleted"

    def __init__(self) -> None:
        super().__init__("the job under this key was deleted (DELETE /jobs/{id}) before it was done")


class KeyReused(ServiceError):
    status = 422
    type = "key-reused"
    title = "The key stands for another request"

    def __init__(self) -> None:
        detail = "this key came with another request before; a new request takes a new one"
        super().__init__(detail, errors=[FieldError("Idempotency-Key", detail)])


class UpgradeRequired(ServiceError):
    status = 426
    type = "upgrade-required"
    title = "A WebSocket is needed"


class QueueFull(ServiceError):
    status = 429
    type = "queue-full"
    title = "The queue is full"


class SessionsFull(ServiceError):
    status = 429
    type = "sessions-full"
    title = "There is no room for more"


class ClientGone(ServiceError):
    status = 499
    type = "client-gone"
    title = "The client left"


class StoredProblemCorrupt(ServiceError):
    type = "stored-problem-corrupt"
    title = "The stored problem is damaged"


class InternalError(ServiceError):
    pass


class NotOffered(ServiceError):
    status = 501
    type = "not-offered"
    title = "This service does not do that"


class Unavailable(ServiceError):
    status = 503
    type = "unavailable"
    title = "The service does not take work now"

    def __init__(self, detail: str, *, retry_after_s: int = 5) -> None:
        super().__init__(detail, retry_after_s=retry_after_s)


class AskAgain(ServiceError):
    status = 504
    type = "ask-again"
    title = "Ask again"


class DeadlinePassed(ServiceError):
    status = 504
    type = "deadline-passed"
    title = "The deadline has passed"

    def __init__(self) -> None:
        super().__init__("the deadline that came with this request passed before its result was there")


class DiskFull(ServiceError):
    status = 507
    type = "disk-full"
    title = "The data directory is full"


def invalid_request(error: ValidationError) -> InvalidRequest:
    """Translate pydantic's word on a JSON body."""
    if error.error_count() > MOST_TOLD:
        return InvalidRequest(f"the body holds {mistakes(error)[0][1]}")
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
