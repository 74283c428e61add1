"""POST /grade and POST /grade/batch."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from fastapi import APIRouter
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.claims import Claim
from service.contract import BatchRequest, GradeRequest, GradeResult
from service.engines.base import Graded, Job
from service.errors import ClientGone, ServiceError, StoredProblemCorrupt
from service.routes.context import Context, context, json_body, while_connected

router = APIRouter(tags=["grading"])

_REQUEST = TypeAdapter(GradeRequest)
_BATCH = TypeAdapter(BatchRequest)


@router.post("/grade", response_model=GradeResult, openapi_extra=json_body("GradeRequest"))
async def grade(request: Request) -> Response:
    """Grade one program on one problem."""
    arrived_s = time.monotonic()
    here = context(request)
    here.refuse_while_draining()
    claim = Claim.of(request)
    async with here.bodies.parsed(request, _REQUEST) as asked:
        job = await here.intake.job(asked, arrived_s=arrived_s)
        by_id = isinstance(asked.problem, str)
        # The problem that it may have carried is in the store, and not to be held while the job waits.
        del asked
    return await answered(request, here, claim, job, by_id=by_id)


async def answered(request: Request, here: Context, claim: Claim, job: Job, *, by_id: bool) -> Response:
    """Grade it, and answer. `by_id`: whether the problem did not come along."""
    job = await claim.under_key(job, here.engine, keep_s=here.settings.job_keep_s)
    try:
        with here.intake.held([job]):
            graded = await while_connected(request.receive, _graded(here, job))
    except StoredProblemCorrupt as error:
        if by_id:
            raise
        # It came along whole: what became of it since is no mistake of the client's.
        graded = await _fault(here, job, error)
    here.note(job, graded.summary)
    return Response(graded.result, media_type="application/json")


@router.post(
    "/grade/batch",
    response_class=Response,
    responses={
        200: {
            "description": "One GradeResult a line as each ends, in any order; `index` tells which.",
            "content": {"application/x-ndjson": {"schema": {"$ref": "#/components/schemas/GradeResult"}}},
        }
    },
    openapi_extra=json_body("BatchRequest"),
)
async def grade_batch(request: Request) -> Response:
    """Grade many programs; nothing is run where one of them is invalid."""
    arrived_s = time.monotonic()
    here = context(request)
    here.refuse_while_draining()
    claim = Claim.of(request).without_key("batches take none: send items that may be asked for again by themselves")
    async with here.bodies.parsed(request, _BATCH) as asked:
        jobs = await here.intake.jobs(asked.items, arrived_s=arrived_s)
        jobs = [claim.on(job) for job in jobs]
        del asked
    return _Lines(here, jobs)


class _Lines(Response):
    """The answer to a batch: a line for each result as it ends, until all are there or the client leaves."""

    media_type = "application/x-ndjson"

    def __init__(self, here: Context, jobs: Sequence[Job]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._here = here
        self._jobs = jobs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Raises before anything is sent where the queue is full, so that the answer is a 429.
        admission = self._here.engine.admission(sum(job.request_bytes for job in self._jobs))
        with admission, self._here.intake.held(self._jobs):
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            with contextlib.suppress(ClientGone):
                await while_connected(receive, self._stream(send))

    async def _stream(self, send: Send) -> None:
        async with contextlib.aclosing(as_each_ends(self._here, self._jobs)) as results:
            async for graded in results:
                body = graded.result + b"\n"
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def as_each_ends(here: Context, jobs: Sequence[Job]) -> AsyncGenerator[Graded, None]:
    """Grade a batch, a window of it at a time, so that single grades find their turn in between.

    Every job yields a result: what cannot be graded any more is an internal_error.
    """
    waiting = iter(jobs)
    under_way: set[asyncio.Task[Graded]] = set()
    try:
        while True:
            for job in itertools.islice(waiting, here.engine.batch_window - len(under_way)):
                under_way.add(asyncio.create_task(_one(here, job)))
            if not under_way:
                return
            done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def _one(here: Context, job: Job) -> Graded:
    # Until now it waited for its own batch, not for a worker.
    job = replace(job, accepted_s=time.monotonic())
    try:
        graded = await _graded(here, job, admitted=True)
    except ServiceError as error:
        graded = await _fault(here, job, error)
    here.note(job, graded.summary)
    return graded


async def _graded(here: Context, job: Job, *, admitted: bool = False) -> Graded:
    try:
        return await here.engine.grade(job, admitted=admitted)
    except StoredProblemCorrupt:
        here.intake.doubt(job.problem_id)
        raise


async def _fault(here: Context, job: Job, error: ServiceError) -> Graded:
    graded = await asyncio.to_thread(here.engine.fault, job, error.detail)
    here.metrics.graded(graded.summary)
    return graded
