"""Sessions of a keeper elsewhere: each thing asked of one is a message, and so is its answer.

    ask      open + files | end | state | exec + stdin | write + files | read | source
             tty | tty-read | tty-write + what is typed | tty-resize | tty-close
             cancel                of an ask that may have been answered by now
    answer   done + what was asked for | error

How messages travel is for others to know. `service.sessions.hosted` is the other end.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from service.contract import ExecResult, FileInfo, FolderContent, SessionRequest, TerminalEnd
from service.contract.base import Response
from service.engines.frames import Frame
from service.errors import (
    Conflict,
    FieldError,
    InternalError,
    InvalidRequest,
    NoSession,
    NotFound,
    ServiceError,
    SessionEnded,
    SessionsFull,
    Unavailable,
)
from service.sessions.base import Owner, SessionState

#: How long a host may take over what takes no time, beside what it waits for on purpose.
SOON_S: Final = 60.0

#: How long a host waits for a terminal to print, or to be typed into, before it says that nothing has come of it yet.
POLL_S: Final = 10.0

Ask = Callable[[Frame, float], Awaitable[Frame]]
"""Sends a frame to the host of the session, and waits so many seconds for its answer."""

_ERRORS: Final = {
    error.type: error for error in (Conflict, InvalidRequest, NoSession, NotFound, SessionsFull, Unavailable)
}


def error_frame(error: ServiceError) -> Frame:
    errors = [[one.field, one.detail] for one in error.errors]
    ended = error.ended if isinstance(error, SessionEnded) else None
    fields = {"type": error.type, "detail": error.detail, "errors": errors, "headers": error.headers, "ended": ended}
    return Frame("error", fields)


def answered(answer: Frame) -> Frame:
    """Raises what the answer stands for, where that is an error."""
    if answer.kind == "done":
        return answer
    if answer.kind != "error":
        raise InternalError(f"the session's host answered {answer.kind!r}; is it of another version?")
    if answer.fields["ended"] is not None:
        raise SessionEnded(answer.fields["ended"])
    kind = _ERRORS.get(answer.fields["type"], InternalError)
    error = kind.__new__(kind)
    ServiceError.__init__(
        error,
        answer.fields["detail"],
        errors=[FieldError(field, detail) for field, detail in answer.fields["errors"]],
        headers=answer.fields["headers"],
    )
    raise error


def packed(files: Mapping[str, bytes]) -> tuple[list[tuple[str, int]], bytes]:
    """Their paths and lengths, and what they hold, one after the other."""
    return [(path, len(data)) for path, data in files.items()], b"".join(files.values())


def unpacked(lengths: Sequence[tuple[str, int]], body: bytes) -> dict[str, bytes]:
    files, start = {}, 0
    for path, length in lengths:
        files[path] = body[start : start + length]
        start += length
    return files


def opening(request: SessionRequest, files: Mapping[str, bytes], owner: Owner) -> Frame:
    """What a host is asked for a session with; the request's own files are left out."""
    lengths, body = packed(files)
    token = None if owner.token is None else owner.token.hex()
    fields = {"request": request.model_dump(mode="json"), "files": lengths, "client": owner.client, "token": token}
    return Frame("open", fields, body)


@dataclass(frozen=True, slots=True)
class RemoteSession:
    """See `service.sessions.base.OpenSession`."""

    id: str
    client: str
    ask: Ask

    async def state(self) -> SessionState:
        said = await self._ask("state")
        return SessionState(**said.fields)

    async def run(self, command: str, stdin: bytes, timeout_s: float) -> ExecResult:
        said = await self._ask("exec", stdin, wait_s=timeout_s, command=command, timeout_s=timeout_s)
        return _read(ExecResult, said)

    async def write(self, files: Mapping[str, bytes]) -> None:
        lengths, body = packed(files)
        await self._ask("write", body, files=lengths)

    async def read(self, path: str, offset: int) -> FileInfo | FolderContent:
        said = await self._ask("read", path=path, offset=offset)
        return _read(FolderContent, said) if said.fields["folder"] else _read(FileInfo, said)

    async def source(self, path: str, most_bytes: int) -> bytes:
        return (await self._ask("source", path=path, most_bytes=most_bytes)).body

    @contextlib.asynccontextmanager
    async def terminal(self, argv: Sequence[str], rows: int, columns: int) -> AsyncIterator[RemoteTerminal]:
        terminal = RemoteTerminal(self, uuid.uuid4().hex)
        try:
            await terminal.ask("tty", argv=list(argv), rows=rows, columns=columns)
            yield terminal
        finally:
            # What cannot be told now, a host finds out: that its session has ended, or that nobody here lives.
            with contextlib.suppress(ServiceError):
                await terminal.ask("tty-close")

    async def _ask(self, kind: str, body: bytes = b"", *, wait_s: float = 0.0, **fields: Any) -> Frame:
        frame = Frame(kind, {"session": self.id, "client": self.client, **fields}, body)
        return answered(await self.ask(frame, wait_s + SOON_S))


class RemoteTerminal:
    """See `service.sessions.base.OpenTerminal`. Each end has one message of it in hand, and waits for its answer."""

    def __init__(self, session: RemoteSession, identifier: str) -> None:
        self._session = session
        self._identifier = identifier

    async def ask(self, kind: str, body: bytes = b"", **fields: Any) -> Frame:
        return await self._session._ask(kind, body, wait_s=POLL_S, terminal=self._identifier, **fields)

    async def read(self) -> bytes:
        while True:
            said = await self.ask("tty-read")
            if said.body or said.fields["over"]:
                return said.body

    async def write(self, data: bytes) -> None:
        rest = data
        while rest:
            said = await self.ask("tty-write", rest)
            rest = rest[said.fields["taken"] :]

    async def resize(self, rows: int, columns: int) -> None:
        await self.ask("tty-resize", rows=rows, columns=columns)

    async def ended(self) -> TerminalEnd:
        while True:
            said = await self.ask("tty-end")
            if said.body:
                return _read(TerminalEnd, said)


_Model = TypeVar("_Model", bound=Response)


def _read(model: type[_Model], said: Frame) -> _Model:
    """Raises InternalError."""
    try:
        return model.model_validate_json(said.body)
    except ValidationError as error:
        raise InternalError(f"the session's host answered what is no {model.__name__}: {error}") from None
