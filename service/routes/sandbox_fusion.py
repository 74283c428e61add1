"""POST /run_code: a program by itself, for whoever speaks to SandboxFusion, such as verl and `sandbox-fusion`.

verl (0.9) takes any answer but 200 and 504 for a program that failed, and waits for both time limits and 10 s; after a
504 it asks again, three times in all. So a full queue is waited for, not told of, and 504 is the answer a little before
verl leaves.
"""

from __future__ import annotations

import time
from dataclasses import replace

from fastapi import APIRouter
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from service import contract
from service.claims import Claim
from service.engines.base import Ran
from service.errors import DeadlinePassed
from service.routes.context import context, json_body, while_connected
from service.sandbox_fusion import RunCodeRequest, RunCodeResponse

#: What a request has beside its time limits, where it brings no deadline of its own.
_SPARE_S = 8.0

REQUEST: TypeAdapter[RunCodeRequest] = TypeAdapter(RunCodeRequest)

router = APIRouter(tags=["trainers"])


@router.post("/run_code", response_model=RunCodeResponse, openapi_extra=json_body("RunCodeRequest"))
async def run_code(request: Request) -> Response:
    """Run one program once, as SandboxFusion does. Waits where the queue is full."""
    arrived_s = time.monotonic()
    here = context(request)
    here.refuse_while_draining()
    claim = Claim.of(request).without_key("runs take none: nothing of them is kept")
    async with here.bodies.parsed(request, REQUEST) as sent:
        call = claim.on(here.intake.call(sent.run(), arrived_s=arrived_s))
        if call.deadline_s is None:
            call = replace(call, deadline_s=sent.compile_timeout + sent.run_timeout + _SPARE_S)
        del sent

    async def run() -> Ran:
        if (call.time_left_s or 0.0) <= 0:
            raise DeadlinePassed
        return await here.engine.run(call)

    ran = await while_connected(request.receive, here.waiting.for_room(run, call.request_bytes))
    here.note_run(call, ran)
    told = RunCodeResponse.of(contract.RunResult.model_validate_json(ran.result))
    return Response(told.model_dump_json(), media_type="application/json")
