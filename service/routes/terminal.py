"""/sessions/{id}/tty: a terminal of a session, by a WebSocket (RFC 6455).

Binary messages are what is typed and what is printed, text messages are JSON: from the client the window's size, to it,
once and at the end, how the command ended or what went wrong.
"""

from __future__ import annotations

import asyncio
from typing import Final, NoReturn

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from service.contract import TerminalEnd, TerminalRequest, WindowSize
from service.errors import Conflict, ServiceError, UpgradeRequired, invalid_request
from service.problem_json import details
from service.routes.context import context
from service.routes.sessions import Identifier, find
from service.sessions.base import OpenTerminal

#: Of one message from a client; what is longer closes the connection (1009).
MOST_MESSAGE_BYTES: Final = 64 * 1024

#: Messages that wait to be typed. Their client is not read meanwhile, and cannot say that it lives, which it has to
#: within 20 s (`service.cli`).
_MOST_WAITING: Final = 4
_TAKEN_WITHIN_S: Final = 10.0

#: Close codes (RFC 6455, section 7.4.1).
_OK, _POLICY, _FAULT = 1000, 1008, 1011

router = APIRouter(prefix="/sessions", tags=["sessions"])


@router.get("/{identifier}/tty", include_in_schema=False)
async def get_tty(request: Request, identifier: Identifier) -> Response:
    raise UpgradeRequired(
        "a terminal is a WebSocket; a proxy in between has to pass on Upgrade and Connection",
        headers={"Upgrade": "websocket", "Connection": "Upgrade"},
    )


@router.websocket("/{identifier}/tty")
async def tty(socket: WebSocket, identifier: str) -> None:
    here = context(socket)
    here.refuse_while_draining()
    live = await find(socket, identifier)
    try:
        asked = TerminalRequest.model_validate(dict(socket.query_params))
    except ValidationError as error:
        raise invalid_request(error) from None
    argv = ["/usr/bin/env", f"TERM={asked.term}", "/bin/sh", "-c", asked.command]
    async with live.terminal(argv, asked.rows, asked.columns) as terminal:
        here.metrics.commanded()
        await socket.accept()
        try:
            end = await _served(socket, terminal)
            last, code = end.model_dump_json(), _OK
        except ServiceError as error:
            request_id = getattr(socket.state, "request_id", None)
            last = details(error, request_id).model_dump_json(exclude_defaults=True)
            code = _FAULT if error.status >= 500 else _POLICY
        except WebSocketDisconnect:
            return
    try:
        await socket.send_text(last)
        await socket.close(code)
    except WebSocketDisconnect:
        return


async def _served(socket: WebSocket, terminal: OpenTerminal) -> TerminalEnd:
    """How the command ended. Raises WebSocketDisconnect, and what the client did wrong or the session ended with."""
    typed: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
    printing = asyncio.create_task(_print(socket, terminal))
    tasks = {
        printing,
        asyncio.create_task(_receive(socket, terminal, typed)),
        asyncio.create_task(_type(terminal, typed)),
    }
    try:
        for task in (await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED))[0] - {printing}:
            # None of the others ends but by an error.
            task.result()
        return printing.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _print(socket: WebSocket, terminal: OpenTerminal) -> TerminalEnd:
    # Sending waits for the client to have read (`service.connections`).
    while data := await terminal.read():
        await socket.send_bytes(data)
    return await terminal.ended()


async def _receive(socket: WebSocket, terminal: OpenTerminal, typed: asyncio.Queue[bytes]) -> NoReturn:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message["code"], message.get("reason"))
        if (text := message.get("text")) is not None:
            try:
                size = WindowSize.model_validate_json(text, strict=True)
            except ValidationError as error:
                raise invalid_request(error) from None
            await terminal.resize(size.rows, size.columns)
            continue
        try:
            async with asyncio.timeout(_TAKEN_WITHIN_S):
                await typed.put(message["bytes"])
        except TimeoutError:
            raise Conflict("what was typed is not read, and there is no room for more") from None


async def _type(terminal: OpenTerminal, typed: asyncio.Queue[bytes]) -> NoReturn:
    while True:
        await terminal.write(await typed.get())
