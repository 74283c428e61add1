"""POST /run: a program by itself, for a tool that a model calls."""

from __future__ import annotations

import time

from fastapi import APIRouter
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from service.claims import Claim
from service.contract import RunRequest, RunResult
from service.routes.context import context, json_body, while_connected

router = APIRouter(tags=["tools"])

_REQUEST = TypeAdapter(RunRequest)


@router.post("/run", response_model=RunResult, openapi_extra=json_body("RunRequest"))
async def run(request: Request) -> Response:
    """Run one program once, with files in and out; nothing of it is kept."""
    arrived_s = time.monotonic()
    here = context(request)
    here.refuse_while_draining()
    claim = Claim.of(request).without_key("runs take none: nothing of them is kept")
    async with here.bodies.parsed(request, _REQUEST) as asked:
        call = claim.on(here.intake.call(asked, arrived_s=arrived_s))
        del asked
    ran = await while_connected(request.receive, here.engine.run(call))
    here.note_run(call, ran)
    return Response(ran.result, media_type="application/json")
