"""POST /run_code: a program by itself, for whoever speaks to SandboxFusion, such as verl and `sandbox-fusion`.

verl (0.9) takes any answer but 200 and 504 for a program that failed, and waits for both time limits and 10 s; after a
504 it asks again, three times in all. So a full queue is waited for, not told of; whatever the service cannot do, or
fails at, is a 504; and so is the answer a little before verl leaves.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace

import structlog
from fastapi import APIRouter
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from sandbox.verdicts import Verdict
from service import contract
from service.claims import Claim
from service.engines.base import Ran
from service.errors import AskAgain, InternalError, ServiceError, Unavailable
from service.routes.context import context, json_body, while_connected
from service.sandbox_fusion import RunCodeRequest, RunCodeResponse

#: What a request has beside its time limits, where it brings no deadline of its own.
_SPARE_S = 8.0

REQUEST: TypeAdapter[RunCodeRequest] = TypeAdapter(RunCodeRequest)

router = APIRouter(tags=["trainers"])

_log = structlog.get_logger()


@router.post("/run_code", response_model=RunCodeResponse, openapi_extra=json_body("RunCodeRequest"))
async def run_code(request: Request) -> Response:
    """Run one program once, as SandboxFusion does. Waits where the queue is full; 504 is to be asked again."""
    with asked_again():
        return await _answer(request)


async def _answer(request: Request) -> Response:
    arrived_s = time.monotonic()
    here = context(request)
    here.refuse_while_draining()
    claim = Claim.of(request).without_key("runs take none: nothing of them is kept")
    async with here.bodies.parsed(request, REQUEST) as sent:
        call = claim.on(here.intake.call(sent.run(), arrived_s=arrived_s))
        if call.deadline_s is None:
            patience_s = sent.compile_timeout + sent.run_timeout + _SPARE_S
            call = replace(call, deadline_s=arrived_s + patience_s - call.accepted_s)
        del sent

    async def run() -> Ran:
        async with here.waiting.place(call.request_bytes, within_s=call.time_left_s):
            return await here.engine.run(call, admitted=True)

    ran = await while_connected(request.receive, run())
    here.note_run(call, ran)
    result = contract.RunResult.model_validate_json(ran.result)
    if result.status is Verdict.INTERNAL_ERROR:
        raise InternalError(result.message)
    return Response(RunCodeResponse.of(result).model_dump_json(), media_type="application/json")


@contextlib.contextmanager
def asked_again() -> Iterator[None]:
    """Raises AskAgain for whatever is not the request's own fault."""
    try:
        yield
    except (Unavailable, InternalError) as error:
        raise AskAgain(error.detail, headers=error.headers) from error
    except ServiceError:
        raise
    except Exception as error:
        _log.exception("the service failed at a run")
        raise AskAgain("the service failed at this request; its log says more") from error
