"""A session that is open: what is asked of it, and the clients that wait for answers.

Its cell is asked and heard in the event loop, and nothing here waits for it there. Knows nothing of HTTP, and not when
a session has to end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

from sandbox.cgroups import Usage
from sandbox.compiling import as_file
from sandbox.errors import GraderFault
from sandbox.run import Output
from sandbox.session import Answer, Done, Ended, Refused, Session
from service.contract import ExecResult, FileEntry, FileInfo, FileResult, FolderContent
from service.contract.sessions import Kind
from service.errors import Conflict, InternalError, NotFound, ServiceError, SessionEnded, SessionsFull, Unavailable
from service.sessions.base import Owner, SessionState
from service.sessions.terminal import LiveTerminal

T = TypeVar("T")

#: Of stdout and of stderr, each, that is handed back: the end.
TAIL_BYTES = 2**20

#: Of a file that is read at once.
READ_BYTES = 8 * 2**20

#: Commands in one session at once.
MOST_COMMANDS = 16

#: How long a command that was killed may take to be gone, or a file to be opened.
_ANSWER_S = 30.0

#: How long a program may take to end once its terminal has gone.
_HANGUP_S = 1.0

_SHELL = "/bin/sh"

_Ask = Callable[[], int]
"""Sends something to the cell; the number under which its answer comes."""

_WHY = {
    "EISDIR": "it is a folder",
    "ENOTDIR": "a part of the path is no folder",
    "ELOOP": "a part of the path is a link, and links are not followed",
    "EACCES": "its mode closes it to its own user",
    "EPERM": "its mode closes it to its own user",
    "ENOSPC": "the session's disk is full",
    "EDQUOT": "the session's disk is full",
    "ENOMEM": "the session's memory is full",
}


class LiveSession:
    """See `service.sessions.base.OpenSession`. `close` it. Whatever waits for it then is told that it is gone."""

    def __init__(self, identifier: str, owner: Owner, session: Session, *, ttl_s: float, ends_s: float) -> None:
        """`ends_s`: on the monotonic clock, when it has to end whatever happens."""
        self.id = identifier
        self.owner = owner
        self.ends_s = ends_s
        self._ttl_s = ttl_s
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._commands = 0
        self._terminals = 0
        self._used = Usage(cpu_s=0.0, peak_bytes=0, file_cache_bytes=0, oom_kills=0)
        self._asked = 0
        self._touched_s = time.monotonic()
        self.lost: str | None = None
        """Why its cell is of no more use."""
        self._loop.add_reader(session.fileno(), self._hear)

    @property
    def cpu_s(self) -> float:
        return self._usage().cpu_s

    def _usage(self) -> Usage:
        """Also once it has ended, when there is no group to ask any more: commands may be told of after that."""
        if self.lost is None:
            self._used = self._session.usage or self._used
        return self._used

    @property
    def expires_s(self) -> float:
        """On the monotonic clock, when it will have been idle for too long."""
        since_s = time.monotonic() if self._asked else self._touched_s
        return min(since_s + self._ttl_s, self.ends_s)

    async def state(self) -> SessionState:
        now_s = time.monotonic()
        return SessionState(self.expires_s - now_s, self.ends_s - now_s, self.cpu_s)

    @property
    def busy(self) -> bool:
        return self._commands > self._terminals

    async def run(self, command: str, stdin: bytes, timeout_s: float) -> ExecResult:
        with self._counted():
            stdout, stderr = Output.new("stdout"), Output.new("stderr")
            try:
                with as_file(stdin) as stdin_fd:
                    return await self._run([_SHELL, "-c", command], stdin_fd, stdout, stderr, timeout_s)
            finally:
                stdout.close()
                stderr.close()

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Raises SessionsFull."""
        if self._commands >= MOST_COMMANDS:
            raise SessionsFull(f"{MOST_COMMANDS} commands are running in this session, as many as may", retry_after_s=1)
        self._commands += 1
        try:
            yield
        finally:
            self._commands -= 1

    @contextlib.asynccontextmanager
    async def terminal(self, argv: Sequence[str], rows: int, columns: int) -> AsyncIterator[LiveTerminal]:
        with self._counted():
            try:
                number, terminal = self._tell(lambda: self._session.start_on_terminal(argv, rows, columns))
            except OSError as error:
                raise Unavailable(f"this host has no terminal to give: {error.strerror}") from None
            self._terminals += 1
            ended = self._waiting[number] = self._loop.create_future()
            try:
                yield LiveTerminal(terminal, cast("asyncio.Future[Ended]", ended), self._touch)
            finally:
                terminal.close()
                await self._hung_up(number, ended)
                self._terminals -= 1
                del self._waiting[number]

    async def _hung_up(self, number: int, ended: asyncio.Future[Answer]) -> None:
        """Have a command end whose terminal is gone: by itself if it does, and so tells its jobs."""
        for wait_s in (_HANGUP_S, _ANSWER_S):
            await asyncio.wait({ended}, timeout=wait_s)
            if ended.done() or self.lost is not None:
                return
            with contextlib.suppress(InternalError):
                self._tell(lambda: self._session.kill(number))
        self._lose("it did not answer")

    def _touch(self) -> None:
        self._touched_s = time.monotonic()

    async def _run(
        self, argv: list[str], stdin_fd: int, stdout: Output, stderr: Output, timeout_s: float
    ) -> ExecResult:
        before, begun_s = self._usage(), time.monotonic()
        number = self._asks(lambda: self._session.start(argv, stdin_fd, stdout.fd, stderr.fd))
        timed_out = False
        try:
            ended = await self._answer(number, timeout_s)
        except TimeoutError:
            timed_out = True
            self._tell(lambda: self._session.kill(number))
            ended = await self._soon(number)
        except asyncio.CancelledError:
            if self.lost is None:
                with contextlib.suppress(InternalError):
                    self._tell(lambda: self._session.kill(number))
            raise
        finally:
            self._waiting.pop(number, None)
        assert isinstance(ended, Ended)
        after = self._usage()
        return ExecResult(
            stdout=stdout.tail(TAIL_BYTES).decode("utf-8", "replace"),
            stderr=stderr.tail(TAIL_BYTES).decode("utf-8", "replace"),
            truncated=max(len(stdout), len(stderr)) > TAIL_BYTES,
            exit_code=ended.exit_code,
            signal=ended.signal,
            timed_out=timed_out,
            cpu_s=max(0.0, after.cpu_s - before.cpu_s),
            memory_bytes=after.peak_bytes or None,
            oom_kills=after.oom_kills - before.oom_kills,
            wall_s=time.monotonic() - begun_s,
        )

    async def write(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            with as_file(data) as fd:
                await self._file(path, lambda path=path, fd=fd: self._session.write(path, fd))  # type: ignore[misc]

    async def read(self, path: str, offset: int) -> FileInfo | FolderContent:
        if path:
            try:
                return await self._read(path, offset)
            except _IsFolder:
                pass
        listed = os.memfd_create("listed", os.MFD_CLOEXEC)
        try:
            done = await self._file(path, lambda: self._session.list(path, listed))
            return await asyncio.to_thread(_entries, listed, more=done.more)
        finally:
            os.close(listed)

    async def source(self, path: str, most_bytes: int) -> bytes:
        done = await self._file(path, lambda: self._session.read(path))
        assert done.fd is not None
        try:
            data = os.pread(done.fd, most_bytes + 1, 0)
        finally:
            os.close(done.fd)
        if len(data) > most_bytes:
            raise Conflict(f"{path!r} holds more than {most_bytes:,} bytes")
        return data

    async def _read(self, path: str, offset: int) -> FileInfo:
        done = await self._file(path, lambda: self._session.read(path), or_folder=True)
        assert done.fd is not None
        try:
            return await asyncio.to_thread(_content, done.fd, offset)
        finally:
            os.close(done.fd)

    async def _file(self, path: str, ask: _Ask, *, or_folder: bool = False) -> Done:
        number = self._asks(ask)
        try:
            answer = await self._soon(number)
        finally:
            self._waiting.pop(number, None)
        if isinstance(answer, Refused):
            if or_folder and answer.why == "EISDIR":
                raise _IsFolder
            if answer.why == "ENOENT":
                raise NotFound(f"there is no {path!r} in this session")
            raise Conflict(f"{path!r}: {_WHY.get(answer.why, 'it is no plain file')}")
        assert isinstance(answer, Done)
        return answer

    # -- the conversation

    def _asks(self, ask: _Ask) -> int:
        """Raises InternalError where the session is lost."""
        number = self._tell(ask)
        self._waiting[number] = self._loop.create_future()
        return number

    def _tell(self, tell: Callable[[], T]) -> T:
        """Raises InternalError where the session is lost."""
        if self.lost is not None:
            raise InternalError(f"the session is lost: {self.lost}")
        try:
            return tell()
        except GraderFault as fault:
            self._lose(str(fault))
            raise InternalError(f"the session is lost: {fault}") from None

    async def _answer(self, number: int, within_s: float) -> Answer:
        """Raises TimeoutError; the session's end is what it was ended with."""
        self._asked += 1
        try:
            done, _ = await asyncio.wait({self._waiting[number]}, timeout=within_s)
            if not done:
                raise TimeoutError
            return self._waiting[number].result()
        finally:
            self._asked -= 1
            self._touch()

    async def _soon(self, number: int) -> Answer:
        """Of what takes no time. Raises InternalError: a cell that does not do even that is lost."""
        try:
            return await self._answer(number, _ANSWER_S)
        except TimeoutError:
            self._lose("it did not answer")
            raise InternalError("the session does not answer, and is closed") from None

    def _hear(self) -> None:
        try:
            answer = self._session.take()
        except GraderFault as fault:
            self._lose(str(fault))
            return
        future = self._waiting.get(answer.number)
        if future is not None and not future.done():
            future.set_result(answer)
        elif isinstance(answer, Done) and answer.fd is not None:
            os.close(answer.fd)

    def _lose(self, why: str) -> None:
        if self.lost is None:
            self.lost = why
            self._end(InternalError(f"the session is lost: {why}"))

    def _end(self, error: ServiceError) -> None:
        self._loop.remove_reader(self._session.fileno())
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
                # Whoever waited may have gone.
                future.exception()

    async def close(self, why: str) -> None:
        """End everything in it."""
        if self.lost is None:
            self.lost = why
            self._end(SessionEnded(why))
        await asyncio.to_thread(self._session.close)


class _IsFolder(Exception):
    """What was to be read as a file is none."""


def _content(fd: int, offset: int) -> FileInfo:
    size = os.fstat(fd).st_size
    data = os.pread(fd, READ_BYTES, offset)
    shown = FileResult.of(data)
    more = offset + len(data) < size
    return FileInfo(text=shown.text, base64=shown.base64, size_bytes=size, truncated=more)


def _entries(fd: int, *, more: bool) -> FolderContent:
    entries = []
    for row in Path(f"/proc/self/fd/{fd}").read_bytes().split(b"\0")[:-1]:
        kind, size, name = row.split(b" ", 2)
        entries.append(
            FileEntry(name=name.decode("utf-8", "replace"), kind=cast(Kind, kind.decode()), size_bytes=int(size))
        )
    return FolderContent(entries=tuple(entries), more=more)
