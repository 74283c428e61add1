"""A session of a grader's for a program that works in it: `Session` for threads, `AsyncSession` for event loops.

    async with await grader.open_session(SessionRequest(files={"main.py": FileContent(text="print(1)")})) as session:
        print((await session.run("python3 main.py")).stdout)

Made by `Grader.open_session` and `AsyncGrader.open_session`. Knows nothing of models.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any

from rl_client.errors import ClientError
from rl_client.steps import Exchange
from rl_client.tool_exchange import ToolExchanges
from service.contract import (
    ExecRequest,
    ExecResult,
    FileContent,
    FileInfo,
    FolderContent,
    GradeResult,
    SessionGradeRequest,
)


class Session:
    """Used by any number of threads."""

    def __init__(self, id: str, says: ToolExchanges, take: Callable[[Exchange[Any]], Any]) -> None:
        """`take`: takes the steps of an exchange."""
        self.id = id
        self._says = says
        self._take = take

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Where the grader cannot be told, it ends by itself.
        with contextlib.suppress(ClientError):
            self.close()

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> ExecResult:
        """Run a command by `sh -c` in the workspace. `timeout_s`: wall seconds, after which it is killed.

        Raises SessionLost, Refused, GraderError, and pydantic.ValidationError of a command that is none.
        """
        request = ExecRequest(command=command, stdin=stdin, timeout_s=timeout_s)
        return self._take(self._says.execute(self.id, request))  # type: ignore[no-any-return]

    def write(self, files: Mapping[str, FileContent]) -> None:
        """Raises SessionLost, Refused, GraderError, and pydantic.ValidationError of a path that leads elsewhere."""
        self._take(self._says.write(self.id, files))

    def read(self, path: str = "", *, offset: int = 0) -> FileInfo | FolderContent:
        """What a file holds, from `offset` bytes on, or what is in a folder.

        Raises SessionLost, Refused, GraderError.
        """
        return self._take(self._says.read(self.id, path, offset))  # type: ignore[no-any-return]

    def grade(self, request: SessionGradeRequest) -> GradeResult:
        """Grade a file. Raises SessionLost, GraderError, and Refused where there is none, or none that is a program."""
        return self._take(self._says.grade(self.id, request))  # type: ignore[no-any-return]

    def close(self) -> None:
        """Raises SessionLost, GraderError."""
        self._take(self._says.close(self.id))


class AsyncSession:
    """Used by any number of tasks of its grader's event loop. Methods and errors are those of `Session`."""

    def __init__(self, id: str, says: ToolExchanges, take: Callable[[Exchange[Any]], Awaitable[Any]]) -> None:
        self.id = id
        self._says = says
        self._take = take

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ClientError):
            await self.close()

    async def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> ExecResult:
        request = ExecRequest(command=command, stdin=stdin, timeout_s=timeout_s)
        return await self._take(self._says.execute(self.id, request))  # type: ignore[no-any-return]

    async def write(self, files: Mapping[str, FileContent]) -> None:
        await self._take(self._says.write(self.id, files))

    async def read(self, path: str = "", *, offset: int = 0) -> FileInfo | FolderContent:
        return await self._take(self._says.read(self.id, path, offset))  # type: ignore[no-any-return]

    async def grade(self, request: SessionGradeRequest) -> GradeResult:
        return await self._take(self._says.grade(self.id, request))  # type: ignore[no-any-return]

    async def close(self) -> None:
        await self._take(self._says.close(self.id))
