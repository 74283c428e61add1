"""/sessions: workspaces in which clients run commands; each is there for the client that opened it alone."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import TypeAdapter, ValidationError
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from service.claims import Claim
from service.contract import (
    ExecRequest,
    ExecResult,
    FileInfo,
    FilesRequest,
    FolderContent,
    GradeResult,
    SessionGradeRequest,
    SessionInfo,
    SessionRequest,
)
from service.contract.fields import MAX_SOURCE_CHARS
from service.contract.files import path_mistake
from service.errors import Conflict, InvalidRequest, NotOffered, invalid_request
from service.guard import client, token
from service.routes.context import Context, context, json_body, while_connected
from service.routes.grade import answered
from service.sessions.base import OpenSession, Owner, Sessions

router = APIRouter(prefix="/sessions", tags=["sessions"])

_SESSION, _EXEC, _FILES = TypeAdapter(SessionRequest), TypeAdapter(ExecRequest), TypeAdapter(FilesRequest)
_GRADE = TypeAdapter(SessionGradeRequest)

Identifier = Annotated[str, Path(description="As `POST /sessions` returned it.")]


@router.post("", status_code=201, response_model=SessionInfo, openapi_extra=json_body("SessionRequest"))
async def post_session(request: Request) -> Response:
    """Open a workspace."""
    here = context(request)
    here.refuse_while_draining()
    sessions = sessions_of(here)
    async with here.bodies.parsed(request, _SESSION) as asked:
        files = {path: content.data for path, content in asked.files.items()}
        settled = asked.model_copy(update={"files": {}})
        del asked
    live = await sessions.open(settled, files, Owner(client(request), token(request)))
    return Response(
        (await _info(live)).model_dump_json(),
        status_code=201,
        media_type="application/json",
        headers={"Location": f"/sessions/{live.id}"},
    )


@router.get("/{identifier}", response_model=SessionInfo)
async def get_session(request: Request, identifier: Identifier) -> Response:
    """When it ends, and what it has used; asking does not count as using it."""
    return _json(await _info(await find(request, identifier)))


@router.delete("/{identifier}", status_code=204, response_class=Response)
async def delete_session(request: Request, identifier: Identifier) -> Response:
    """End everything in it, and keep nothing of it."""
    await sessions_of(context(request)).end(identifier, client(request))
    return Response(status_code=204)


@router.post("/{identifier}/exec", response_model=ExecResult, openapi_extra=json_body("ExecRequest"))
async def post_exec(request: Request, identifier: Identifier) -> Response:
    """Run a command in it; what that leaves running goes on until the session ends."""
    here = context(request)
    here.refuse_while_draining()
    live = await find(request, identifier)
    async with here.bodies.parsed(request, _EXEC) as asked:
        command, stdin, timeout_s = asked.command, asked.stdin.encode(), asked.timeout_s
        del asked
    here.metrics.commanded()
    return _json(await while_connected(request.receive, live.run(command, stdin, timeout_s)))


@router.put("/{identifier}/files", status_code=204, response_class=Response, openapi_extra=json_body("FilesRequest"))
async def put_files(request: Request, identifier: Identifier) -> Response:
    """Make or replace files of the workspace."""
    here = context(request)
    live = await find(request, identifier)
    async with here.bodies.parsed(request, _FILES) as asked:
        files = {path: content.data for path, content in asked.files.items()}
        del asked
    await live.write(files)
    return Response(status_code=204)


@router.get("/{identifier}/files", response_model=FileInfo | FolderContent)
async def get_files(
    request: Request,
    identifier: Identifier,
    path: Annotated[str, Query(description="Of a file or folder in the workspace; empty for the workspace.")] = "",
    offset: Annotated[int, Query(ge=0, le=2**40, description="Where to begin, in bytes of the file.")] = 0,
) -> Response:
    """What a file holds, or what is in a folder. Links are not followed."""
    if path and (mistake := path_mistake(path)) is not None:
        raise InvalidRequest.at("path", mistake)
    return _json(await (await find(request, identifier)).read(path, offset))


@router.post("/{identifier}/grade", response_model=GradeResult, openapi_extra=json_body("SessionGradeRequest"))
async def post_grade(request: Request, identifier: Identifier) -> Response:
    """Grade a file of the workspace as `POST /grade` would: in a cell of its own, without the session's other files."""
    arrived_s = time.monotonic()
    here = context(request)
    here.refuse_while_draining()
    live = await find(request, identifier)
    claim = Claim.of(request)
    async with here.bodies.parsed(request, _GRADE) as asked:
        source = await live.source(asked.path, 4 * MAX_SOURCE_CHARS)
        try:
            text = source.decode()
        except UnicodeDecodeError:
            raise Conflict(f"{asked.path!r} is no UTF-8, and so no program") from None
        try:
            grade = asked.on(text)
        except ValidationError as error:
            raise invalid_request(error) from None
        job = await here.intake.job(grade, arrived_s=arrived_s)
        by_id = isinstance(asked.problem, str)
        del asked, grade
    return await answered(request, here, claim, job, by_id=by_id)


def sessions_of(here: Context) -> Sessions:
    """Raises NotOffered."""
    if here.engine.sessions is None:
        raise NotOffered("there are no sessions: they are turned off here (RKGRADE_SESSIONS is 0)")
    return here.engine.sessions


async def find(request: HTTPConnection, identifier: str) -> OpenSession:
    """Raises NotOffered, SessionEnded, and NoSession for what is not its client's."""
    return await sessions_of(context(request)).find(identifier, client(request))


async def _info(live: OpenSession) -> SessionInfo:
    state, now = await live.state(), datetime.now(UTC)
    return SessionInfo(
        id=live.id,
        expires_at=now + timedelta(seconds=state.expires_in_s),
        closes_at=now + timedelta(seconds=state.closes_in_s),
        cpu_s=state.cpu_s,
    )


def _json(answer: SessionInfo | ExecResult | FileInfo | FolderContent) -> Response:
    return Response(answer.model_dump_json(), media_type="application/json")
