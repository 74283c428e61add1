"""PUT /problems and GET /problems/{id}."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import Response

from service.contract import PROBLEMS, ProblemInfo, ProblemRef
from service.engines.base import Vetting
from service.guard import client
from service.routes.context import context, json_body, while_connected
from service.vetting import to_vet

router = APIRouter(prefix="/problems", tags=["problems"])


@router.put(
    "",
    status_code=201,
    response_model=ProblemRef,
    responses={200: {"description": "It was stored already.", "model": ProblemRef}},
    openapi_extra=json_body("Problem"),
)
async def put_problem(request: Request) -> Response:
    """Store a problem, to be graded against by its id. Programs that it brings along are compiled first."""
    here = context(request)
    here.refuse_while_draining()
    async with here.bodies.parsed(request, PROBLEMS) as problem:
        if (programs := to_vet(problem)) is not None:
            await while_connected(request.receive, here.engine.vet(Vetting(programs, client=client(request))))
        identifier, created = await here.intake.store(problem)
        del problem
    return Response(
        ProblemRef(id=identifier).model_dump_json(),
        status_code=201 if created else 200,
        media_type="application/json",
        headers={"Location": f"/problems/{identifier}"},
    )


@router.get("/{identifier}", response_model=ProblemInfo)
async def get_problem(
    request: Request, identifier: Annotated[str, Path(description="As `PUT /problems` returned it.")]
) -> Response:
    """What is known of a stored problem, without inputs and outputs."""
    described = await context(request).intake.described(identifier)
    return Response(described.model_dump_json(), media_type="application/json")
