"""What routes need of sessions, wherever they live: in this process, or at a cluster's host (`service.engines.rq`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from service.contract import ExecResult, FileInfo, FolderContent, SessionRequest, TerminalEnd


@dataclass(frozen=True, slots=True)
class Owner:
    """Who opened a session."""

    client: str
    """The name that belongs to the token; empty where none was needed."""
    token: bytes | None
    """The token's hash."""


@dataclass(frozen=True, slots=True)
class SessionState:
    expires_in_s: float
    """Until it will have been idle for too long."""
    closes_in_s: float
    """Until it has to end whatever happens."""
    cpu_s: float


class OpenTerminal(Protocol):
    """A command that runs on a terminal of a session."""

    async def read(self) -> bytes:
        """The next of what it prints; empty where that was all."""
        ...

    async def write(self, data: bytes) -> None:
        """Type, and wait until all of it is taken."""
        ...

    async def resize(self, rows: int, columns: int) -> None: ...

    async def ended(self) -> TerminalEnd:
        """How the command ended. Raises SessionEnded."""
        ...


class OpenSession(Protocol):
    """All of it raises SessionEnded where the session ends meanwhile, and InternalError for a fault."""

    @property
    def id(self) -> str: ...

    async def state(self) -> SessionState:
        """Asking counts as no use of it."""
        ...

    async def run(self, command: str, stdin: bytes, timeout_s: float) -> ExecResult:
        """Run a command; cancelling ends it. Raises SessionsFull."""
        ...

    def terminal(self, argv: Sequence[str], rows: int, columns: int) -> AbstractAsyncContextManager[OpenTerminal]:
        """Run a command on a terminal of its own, until it ends or is left. What it prints counts as no use of the
        session; what is typed does. Raises SessionsFull, Unavailable.
        """
        ...

    async def write(self, files: Mapping[str, bytes]) -> None:
        """Write files, one after the other. Raises Conflict for the first that cannot be."""
        ...

    async def read(self, path: str, offset: int) -> FileInfo | FolderContent:
        """What a file or a folder holds; an empty path is the workspace. Raises NotFound, Conflict."""
        ...

    async def source(self, path: str, most_bytes: int) -> bytes:
        """A whole file. Raises NotFound, and Conflict where it is larger."""
        ...


class Sessions(Protocol):
    """All that a client of this service may have open."""

    token_is_good: Callable[[bytes], bool]
    """Whether the token of that hash may still be used here; a session ends with its own."""

    async def open(self, request: SessionRequest, files: Mapping[str, bytes], owner: Owner) -> OpenSession:
        """Raises SessionsFull, InvalidRequest naming the field, NotOffered, Unavailable."""
        ...

    async def find(self, identifier: str, client: str) -> OpenSession:
        """Raises SessionEnded where it was that client's, and NoSession of any other id; Unavailable."""
        ...

    async def end(self, identifier: str, client: str) -> None:
        """Close a session, as its client asks. Raises as `find` does."""
        ...
