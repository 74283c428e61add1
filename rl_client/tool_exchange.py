"""What is said to a grader that runs what a model asks for: single programs, and sessions, which are workspaces.

Exchanges as those of `rl_client.exchange`, which decides when to ask again. A command may have been run where its
answer is lost, so it is asked for again only where it was never begun; else its session is given up (SessionLost). All
else here can be repeated without harm.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter, ValidationError

from rl_client.errors import Refused, SessionLost
from rl_client.exchange import Deadline, Exchanges
from rl_client.steps import Exchange
from service.contract import (
    ExecRequest,
    ExecResult,
    FileContent,
    FileInfo,
    FilesRequest,
    FolderContent,
    GradeResult,
    RunRequest,
    RunResult,
    SessionGradeRequest,
    SessionInfo,
    SessionRequest,
)
from service.contract.files import path_mistake

T = TypeVar("T")

_RUN, _SESSION, _EXEC, _GRADE = (
    TypeAdapter(RunResult),
    TypeAdapter(SessionInfo),
    TypeAdapter(ExecResult),
    TypeAdapter(GradeResult),
)
_FILE: TypeAdapter[FileInfo | FolderContent] = TypeAdapter(FileInfo | FolderContent)


class ToolExchanges:
    """All of that kind that can be said to one grader."""

    def __init__(self, exchanges: Exchanges) -> None:
        self._exchanges = exchanges

    def run(self, request: RunRequest, deadline_s: float | None) -> Exchange[RunResult]:
        """Raises Refused, DeadlinePassed, GraderError."""
        return (yield from self._told(_RUN, "POST", "/run", request, Deadline(deadline_s)))

    def check(self) -> Exchange[None]:
        """Raises GraderUnfit where there are no sessions, and other errors of a grader that cannot be used."""
        with contextlib.suppress(SessionLost):
            yield from self._asked("GET", _path("none"), None)

    def open(self, request: SessionRequest) -> Exchange[SessionInfo]:
        """Where an answer is lost on its way a session may stay that nobody knows of, until it has been idle for its
        `ttl_s`. Raises Refused, GraderError.
        """
        return (yield from self._told(_SESSION, "POST", "/sessions", request))

    def execute(self, session: str, request: ExecRequest) -> Exchange[ExecResult]:
        """Raises SessionLost, Refused, GraderError."""
        return (yield from self._told(_EXEC, "POST", _path(session, "/exec"), request, once=True))

    def write(self, session: str, files: Mapping[str, FileContent]) -> Exchange[None]:
        """Raises SessionLost, Refused, GraderError, and pydantic.ValidationError of a path that leads elsewhere."""
        yield from self._asked("PUT", _path(session, "/files"), FilesRequest(files=dict(files)))

    def read(self, session: str, path: str, offset: int) -> Exchange[FileInfo | FolderContent]:
        """Raises SessionLost, Refused, GraderError."""
        # Not every path has a form as part of an address.
        if path and (mistake := path_mistake(path)) is not None:
            raise Refused(422, mistake, "path")
        query = f"/files?path={quote(path, safe='')}&offset={offset}"
        return (yield from self._told(_FILE, "GET", _path(session, query), None))

    def grade(self, session: str, request: SessionGradeRequest) -> Exchange[GradeResult]:
        """Raises SessionLost, Refused where there is no such file, or none that is a program, and GraderError."""
        return (yield from self._told(_GRADE, "POST", _path(session, "/grade"), request))

    def close(self, session: str) -> Exchange[None]:
        """Raises SessionLost, GraderError."""
        yield from self._asked("DELETE", _path(session), None)

    # -- asking

    def _told(
        self,
        adapter: TypeAdapter[T],
        method: str,
        path: str,
        request: BaseModel | None,
        deadline: Deadline | None = None,
        *,
        once: bool = False,
    ) -> Exchange[T]:
        content = yield from self._asked(method, path, request, deadline, once=once)
        try:
            return adapter.validate_json(content)
        except ValidationError as error:
            raise self._exchanges.unfit(error) from error

    def _asked(
        self,
        method: str,
        path: str,
        request: BaseModel | None,
        deadline: Deadline | None = None,
        *,
        once: bool = False,
    ) -> Exchange[bytes]:
        body = None if request is None else request.model_dump_json(exclude_defaults=True).encode()
        return (yield from self._exchanges.settled(method, path, body, deadline or Deadline(None), once=once))


def _path(session: str, rest: str = "") -> str:
    return f"/sessions/{quote(session, safe='')}{rest}"
