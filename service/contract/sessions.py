"""Sessions: a workspace in a cell, in which a model runs commands one after the other, as in a terminal."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, field_validator

from service.contract.base import Request, Response
from service.contract.fields import MemoryMb, Processes, Text
from service.contract.files import FilePath, Files
from service.contract.requests import GradeOptions, GradeRequest
from service.contract.runs import MAX_STDIN_CHARS

MAX_COMMAND_BYTES: Final = 60 * 1024
"""In UTF-8: what goes into one message to a warden (`sandbox.jail.wire`), and is one argument of a program's."""

#: Beside what is on its two disks a session needs some memory to run in.
_LEAST_BESIDE_DISKS_MB: Final = 64

TtlSeconds = Annotated[float, Field(strict=True, ge=1, le=86_400, allow_inf_nan=False)]
DiskMb = Annotated[int, Field(strict=True, ge=1, le=16_384)]
Inodes = Annotated[int, Field(strict=True, ge=16, le=1_000_000)]
SessionCpuSeconds = Annotated[float, Field(strict=True, ge=0.1, le=86_400, allow_inf_nan=False)]
TimeoutSeconds = Annotated[float, Field(strict=True, ge=0.01, le=3600, allow_inf_nan=False)]


Kind = Literal["file", "folder", "link", "other"]


class SessionLimits(Request):
    """What a session may use, all of its commands together."""

    disk_mb: DiskMb = Field(
        default=256, description="Of the workspace, and as much again of /tmp, in MiB; the most that one file can hold."
    )
    files: Inodes = Field(default=8192, description="Files and folders in the workspace, and as many in /tmp.")
    memory_mb: MemoryMb = Field(
        default=1024,
        validate_default=True,
        description="Memory in MiB, files included; at least 64 MiB more than both disks.",
    )
    processes: Processes = Field(default=128, description="Processes and threads alive at once.")
    cpu_s: SessionCpuSeconds = Field(default=3600.0, description="CPU seconds, after which the session is closed.")

    @field_validator("memory_mb")
    @classmethod
    def _holds_the_disks(cls, value: int, info: Any) -> int:
        disk_mb = info.data.get("disk_mb")
        if disk_mb is not None and value < (least := 2 * disk_mb + _LEAST_BESIDE_DISKS_MB):
            raise ValueError(f"Files are memory: with two disks of {disk_mb} MiB it takes {least} MiB at least")
        return value


class SessionRequest(Request):
    """A new session."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ttl_s": 600.0, "files": {"main.py": {"text": "print(1)\n"}}}]}
    )

    ttl_s: TtlSeconds = Field(default=600.0, description="Seconds without a request after which it is closed.")
    limits: SessionLimits = Field(default_factory=SessionLimits, description="What it may use.")
    files: Files = Field(default_factory=dict, description="Files of the workspace, by their paths in it.")


class SessionInfo(Response):
    """A session that is open."""

    id: str = Field(description="Names it; known to nobody else.")
    expires_at: datetime = Field(description="When it is closed, unless something is asked of it before.")
    closes_at: datetime = Field(description="When it is closed whatever happens.")
    cpu_s: float = Field(description="CPU seconds that it has used.")


def _can_be_given(command: str) -> str:
    if "\0" in command:
        raise ValueError("A command cannot hold a NUL")
    if len(command.encode()) > MAX_COMMAND_BYTES:
        raise ValueError(f"A command has at most {MAX_COMMAND_BYTES:,} bytes in UTF-8; PUT .../files takes more")
    return command


Command = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=MAX_COMMAND_BYTES,
        description=f"Run by `sh -c` in the workspace, `/box`; at most {MAX_COMMAND_BYTES:,} bytes in UTF-8.",
    ),
    AfterValidator(_can_be_given),
]


class ExecRequest(Request):
    """A command."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"command": "python3 main.py", "stdin": "1\n"}]})

    command: Command
    stdin: Text = Field(default="", max_length=MAX_STDIN_CHARS, description="What it reads.")
    timeout_s: TimeoutSeconds = Field(
        default=30.0, description="Wall seconds, after which it is killed with all that it has started."
    )


class ExecResult(Response):
    """What came of a command."""

    stdout: str = Field(description="Its end, at most 1 MiB; invalid UTF-8 is replaced.")
    stderr: str = Field(description="Its end, at most 1 MiB; invalid UTF-8 is replaced.")
    truncated: bool = Field(description="Whether either was longer.")
    exit_code: int | None = Field(description="Exit status; null where a signal ended it.")
    signal: int | None = Field(description="Signal that ended it.")
    timed_out: bool = Field(description="Whether it was killed for its timeout.")
    cpu_s: float = Field(description="CPU seconds that the session used meanwhile, all of its processes together.")
    memory_bytes: int | None = Field(
        default=None,
        description="The most memory that the session has held yet, files included; null without control groups.",
    )
    oom_kills: int = Field(
        default=0, description="Processes that were killed meanwhile because the session's memory was used up."
    )
    wall_s: float = Field(description="Wall seconds.")


# A kernel keeps both in 16 bits; no window has more.
WindowCells = Annotated[int, Field(ge=1, le=4096)]


class WindowSize(Request):
    """The window of a terminal has, or now has, this size."""

    rows: WindowCells = Field(description="Lines.")
    columns: WindowCells = Field(description="Characters of a line.")


class TerminalRequest(Request):
    """A terminal, as the query of its address says."""

    command: Command = "exec bash"
    rows: WindowCells = Field(default=24, description="Lines of its window.")
    columns: WindowCells = Field(default=80, description="Characters of a line.")
    term: str = Field(
        default="xterm-256color",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9+._-]{0,63}$",
        description="What kind of terminal the client is, for `TERM`.",
    )


class TerminalEnd(Response):
    """How the command on a terminal ended."""

    exit_code: int | None = Field(description="Exit status; null where a signal ended it.")
    signal: int | None = Field(description="Signal that ended it.")


class FilesRequest(Request):
    """Files to be written."""

    files: Files = Field(min_length=1, description="By their paths in the workspace; folders are made.")


class FileEntry(Response):
    """One entry of a folder."""

    name: str = Field(description="Invalid UTF-8 is replaced.")
    kind: Kind
    size_bytes: int


class FolderContent(Response):
    """What a folder holds."""

    entries: tuple[FileEntry, ...] = Field(description="In the order of names, at most 2048.")
    more: bool = Field(description="Whether there are more.")


class FileInfo(Response):
    """What a file holds, from `offset` on."""

    text: str | None = Field(default=None, description="Where it is UTF-8.")
    base64: str | None = Field(default=None, description="Where it is not.")
    size_bytes: int = Field(description="Of the whole file.")
    truncated: bool = Field(description="Whether there is more: at most 8 MiB are read at once.")


class SessionGradeRequest(GradeOptions):
    """A grade of a file of the workspace."""

    path: FilePath = Field(description="Of the program in the workspace.")

    def on(self, source: str) -> GradeRequest:
        """The grade of the program that was found there. Raises pydantic.ValidationError."""
        fields = {name: getattr(self, name) for name in GradeOptions.model_fields}
        return GradeRequest(source=source, **fields)
