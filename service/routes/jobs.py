"""POST /jobs, GET /jobs/{id} and DELETE /jobs/{id}: grades that nobody waits for on a connection."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field, TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from service.claims import Claim, fingerprint
from service.contract import GradeRequest, GradeResult
from service.engines.base import JobState
from service.errors import NotFound
from service.guard import client
from service.problem_json import ProblemDetails, details
from service.routes.context import context, json_body

router = APIRouter(prefix="/jobs", tags=["jobs"])

_REQUEST = TypeAdapter(GradeRequest)

Identifier = Annotated[str, Path(description="As `POST /jobs` returned it.")]


class JobRef(BaseModel):
    id: str


class JobInfo(BaseModel):
    """A job on its way; once it has ended, its result, or the error that stands in its place."""

    id: str
    status: Literal["waiting", "running", "done", "failed"]
    result: GradeResult | None = Field(None, description="Where it is done.")
    error: ProblemDetails | None = Field(None, description="Where it failed.")


@router.post("", status_code=202, response_model=JobRef, openapi_extra=json_body("GradeRequest"))
async def post_job(request: Request) -> Response:
    """Take a grade on, and answer at once; again under the same `Idempotency-Key` it is the same job."""
    arrived_s = time.monotonic()
    here = context(request)
    here.refuse_while_draining()
    claim = Claim.of(request)
    async with here.bodies.parsed(request, _REQUEST) as asked:
        job = await here.intake.job(asked, arrived_s=arrived_s)
        del asked
    job = await claim.under_key(job, here.engine, keep_s=here.settings.job_keep_s)
    job = replace(job, keep_s=here.settings.job_keep_s, fingerprint=fingerprint(job))
    await here.engine.submit(job, here.noting(job))
    return Response(
        JobRef(id=job.id).model_dump_json(),
        status_code=202,
        media_type="application/json",
        headers={"Location": f"/jobs/{job.id}"},
    )


@router.get("/{identifier}", response_model=JobInfo)
async def get_job(request: Request, identifier: Identifier) -> Response:
    """How far a job is; its result for as long as that is kept."""
    state = await context(request).engine.state(identifier, client=client(request))
    if state is None:
        raise _unknown(identifier)
    return Response(_written(identifier, state), media_type="application/json")


@router.delete("/{identifier}", status_code=204, response_class=Response)
async def delete_job(request: Request, identifier: Identifier) -> Response:
    """Stop a job, or forget its result."""
    if not await context(request).engine.forget(identifier, client=client(request)):
        raise _unknown(identifier)
    return Response(status_code=204)


def _unknown(identifier: str) -> NotFound:
    return NotFound(f"no job {identifier} is known here; results are kept for a while only")


def _written(identifier: str, state: JobState) -> bytes:
    """A JobInfo, around the result as it was made."""
    error: Any = None if state.error is None else details(state.error).model_dump(exclude_defaults=True)
    head = json.dumps({"id": identifier, "status": state.status, "error": error})[:-1].encode()
    return head + b', "result": ' + (b"null" if state.result is None else state.result) + b"}"
