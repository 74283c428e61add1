"""The end that answers what is asked of sessions from elsewhere (`service.sessions.asks`), from a keeper's here.

Knows not how asks come, nor who asks but by a name: a terminal is ended once its asker is told to be gone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeVar

import structlog

from service.contract import FolderContent, SessionRequest
from service.contract.base import Response
from service.engines.frames import Frame
from service.errors import InternalError, NotFound, ServiceError
from service.sessions.asks import POLL_S, error_frame, unpacked
from service.sessions.base import Owner
from service.sessions.keeper import Keeper
from service.sessions.live import LiveSession
from service.sessions.terminal import LiveTerminal

T = TypeVar("T")

_DONE: Final = Frame("done", {})

_log = structlog.get_logger()


@dataclass(eq=False, slots=True)
class _Held:
    """A terminal, open until it is asked to be closed."""

    asker: str
    session: str
    client: str
    terminal: asyncio.Future[LiveTerminal]
    closed: asyncio.Event
    task: asyncio.Task[None] | None = None


class Hosted:
    """`answer` each ask in a task of its own; cancelling one ends what it waits for."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._held: dict[str, _Held] = {}
        self._of_session: Mapping[str, Callable[[LiveSession, Frame, str], Awaitable[Frame]]] = {
            "state": self._state,
            "exec": self._exec,
            "write": self._write,
            "read": self._read,
            "source": self._source,
            "tty": self._tty,
        }
        self._of_terminal: Mapping[str, Callable[[LiveTerminal, Frame], Awaitable[Frame]]] = {
            "tty-read": self._tty_read,
            "tty-write": self._tty_write,
            "tty-resize": self._tty_resize,
            "tty-end": self._tty_end,
        }

    async def answer(self, ask: Frame, asker: str) -> Frame:
        try:
            return await self._answered(ask, asker)
        except ServiceError as error:
            return error_frame(error)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # An API of another version, as while a cluster is replaced piece by piece.
            return error_frame(InternalError(f"a host cannot read what it is asked: {type(error).__name__}: {error}"))
        except OSError as error:
            _log.error("what was asked of a session failed", ask=ask.kind, error=str(error))
            return error_frame(InternalError("the session's host failed at this; its log says more"))

    @property
    def askers(self) -> set[str]:
        """Whose terminals are open."""
        return {held.asker for held in self._held.values()}

    def hang_up(self, asker: str) -> None:
        """Close the terminals of one that is gone."""
        for held in self._held.values():
            if held.asker == asker:
                held.closed.set()

    async def close(self) -> None:
        """Close all terminals, and wait for that."""
        for held in self._held.values():
            held.closed.set()
        await asyncio.gather(*(held.task for held in self._held.values() if held.task), return_exceptions=True)

    async def _answered(self, ask: Frame, asker: str) -> Frame:
        if ask.kind == "open":
            files = unpacked(ask.fields["files"], ask.body)
            token = ask.fields["token"]
            owner = Owner(ask.fields["client"], None if token is None else bytes.fromhex(token))
            live = await self._keeper.open(SessionRequest.model_validate(ask.fields["request"]), files, owner)
            return Frame("done", {"session": live.id})
        identifier, client = ask.fields["session"], ask.fields["client"]
        if ask.kind == "end":
            await self._keeper.end(identifier, client)
            return _DONE
        if ask.kind in self._of_session:
            return await self._of_session[ask.kind](await self._keeper.find(identifier, client), ask, asker)
        # Even where its session has ended: it knows why.
        held = self._held.get(ask.fields["terminal"])
        if held is None or (held.session, held.client) != (identifier, client):
            raise NotFound("no terminal of that id is open in this session")
        if ask.kind == "tty-close":
            return await self._tty_close(held)
        return await self._of_terminal[ask.kind](await asyncio.shield(held.terminal), ask)

    # -- of a session

    async def _state(self, live: LiveSession, ask: Frame, asker: str) -> Frame:
        return Frame("done", asdict(await live.state()))

    async def _exec(self, live: LiveSession, ask: Frame, asker: str) -> Frame:
        return _said(await live.run(ask.fields["command"], ask.body, ask.fields["timeout_s"]))

    async def _write(self, live: LiveSession, ask: Frame, asker: str) -> Frame:
        await live.write(unpacked(ask.fields["files"], ask.body))
        return _DONE

    async def _read(self, live: LiveSession, ask: Frame, asker: str) -> Frame:
        content = await live.read(ask.fields["path"], ask.fields["offset"])
        return _said(content, folder=isinstance(content, FolderContent))

    async def _source(self, live: LiveSession, ask: Frame, asker: str) -> Frame:
        return Frame("done", {}, await live.source(ask.fields["path"], ask.fields["most_bytes"]))

    # -- of a terminal

    async def _tty(self, live: LiveSession, ask: Frame, asker: str) -> Frame:
        held = _Held(asker, live.id, live.owner.client, asyncio.get_running_loop().create_future(), asyncio.Event())
        identifier = ask.fields["terminal"]
        self._held[identifier] = held
        held.task = asyncio.create_task(self._hold(identifier, held, live, ask))
        await asyncio.shield(held.terminal)
        return _DONE

    async def _hold(self, identifier: str, held: _Held, live: LiveSession, ask: Frame) -> None:
        try:
            async with live.terminal(ask.fields["argv"], ask.fields["rows"], ask.fields["columns"]) as terminal:
                held.terminal.set_result(terminal)
                await held.closed.wait()
        except Exception as error:
            if not held.terminal.done():
                held.terminal.set_exception(error)
                # Whoever asked for it may have gone.
                held.terminal.exception()
            elif not isinstance(error, ServiceError):
                raise
        finally:
            held.terminal.cancel()
            del self._held[identifier]

    async def _tty_close(self, held: _Held) -> Frame:
        held.closed.set()
        if held.task is not None:
            await asyncio.wait({held.task})
        return _DONE

    async def _tty_read(self, terminal: LiveTerminal, ask: Frame) -> Frame:
        data = await _within_poll(terminal.read())
        return Frame("done", {"over": data == b""}, data or b"")

    async def _tty_write(self, terminal: LiveTerminal, ask: Frame) -> Frame:
        return Frame("done", {"taken": await _within_poll(terminal.take(ask.body)) or 0})

    async def _tty_resize(self, terminal: LiveTerminal, ask: Frame) -> Frame:
        await terminal.resize(ask.fields["rows"], ask.fields["columns"])
        return _DONE

    async def _tty_end(self, terminal: LiveTerminal, ask: Frame) -> Frame:
        end = await _within_poll(terminal.ended())
        return _DONE if end is None else _said(end)


async def _within_poll(work: Awaitable[T]) -> T | None:
    """What it came to; None where it has not yet, and is to be asked for again."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(POLL_S):
            return await work
    return None


def _said(model: Response, **fields: Any) -> Frame:
    return Frame("done", fields, model.model_dump_json().encode())
