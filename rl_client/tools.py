"""Tools for models: Python that runs once, and a terminal that stays; and what a model is told of what they did.

    python = PythonTool(grader)
    await python("print(6 * 7)")        # 'completed. [stdout]\n42\n[/stdout]'

A tool answers whatever it is asked with a text for the model: what is wrong with the model's own doing, and limits that
it meets, stand there. It raises only where nothing can be told: the grader is gone for longer than its client's
patience, or the session is. A fault of the grader's at a single run is tried again, then told as what it is, and costs
no call.

Figures without a source are ours. Those of CWM (facebookresearch/cwm), the published code of the lab behind arXiv
2605.28751, are the nearest to the paper's, which are not known: 10 s for a call, empty stdin, answers cut.
Knows no trainer, and not how calls are written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import ref

from pydantic import ValidationError

from rl_client.async_client import AsyncGrader
from rl_client.errors import GraderUnfit, Refused, SessionLost
from rl_client.keeping import keep
from rl_client.sendable import sendable
from rl_client.sessions import AsyncSession
from service.contract import (
    ExecResult,
    FileContent,
    FolderContent,
    RunLimits,
    RunRequest,
    RunResult,
    SessionLimits,
    SessionRequest,
    Verdict,
    first_mistake,
)

#: How often a run is tried that the grader fails at.
TRIES = 3


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """What one rollout may ask of its tools."""

    calls: int = 16
    """Of all tools together."""
    timeout_s: float = 10.0
    """Of one call, in wall seconds, and CPU seconds for Python."""
    memory_mb: int = 512
    """Of a run of Python, or of a session with its files."""
    disk_mb: int = 64
    """Of a session's workspace, and of its /tmp."""
    session_ttl_s: float = 300.0
    """How long a session is there when nothing is heard any more of who works in it. A model may take longer: its
    `Terminal` keeps the session."""
    session_cpu_s: float = 600.0
    """CPU seconds of a session in all."""
    observation_chars: int = 4096
    """Of what is told of one call; the middle is left out of more."""

    def __post_init__(self) -> None:
        if self.calls < 1 or self.observation_chars < 1:
            raise ValueError("there is at least one call, and something is told of it")
        self.of_run()
        self.of_session({})

    def of_run(self) -> RunLimits:
        """Raises pydantic.ValidationError of what no grader takes."""
        return RunLimits(cpu_s=self.timeout_s, wall_s=self.timeout_s, memory_mb=self.memory_mb)

    def of_session(self, files: dict[str, FileContent]) -> SessionRequest:
        """Raises as `of_run` does."""
        limits = SessionLimits(memory_mb=self.memory_mb, disk_mb=self.disk_mb, cpu_s=self.session_cpu_s)
        return SessionRequest(ttl_s=self.session_ttl_s, limits=limits, files=files)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool."""

    name: str
    description: str
    argument: str
    """Its one text."""
    argument_description: str
    required: bool = True

    def schema(self) -> dict[str, Any]:
        """As chat templates and OpenAI's API take it."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": {
                    "type": "object",
                    "properties": {self.argument: {"type": "string", "description": self.argument_description}},
                    "required": [self.argument] if self.required else [],
                },
            },
        }


PYTHON = ToolSpec(
    "python",
    "Run a Python program, and see what it prints. Each call is a fresh process with an empty stdin; nothing is kept.",
    "code",
    "The program.",
)
BASH = ToolSpec(
    "bash",
    "Run a shell command in the workspace, whose files stay from call to call. There is no network.",
    "command",
    "The command, run by sh -c.",
)
SUBMIT = ToolSpec(
    "submit",
    "Hand in a file of the workspace as the answer. Nothing can be done after that.",
    "path",
    "The file; solution and the suffix of the language, such as solution.py, where it is left out.",
    required=False,
)


class _Counted:
    """How much a rollout has asked for."""

    def __init__(self, limits: ToolLimits) -> None:
        self.limits = limits
        self.calls = 0
        self.faults = 0
        """Calls that the grader failed at."""

    @property
    def calls_left(self) -> int:
        return max(0, self.limits.calls - self.calls)

    def refusal(self) -> str | None:
        """Counts a call; what to say where there are none left."""
        if not self.calls_left:
            return NO_CALLS_LEFT
        self.calls += 1
        return None

    def fault(self) -> str:
        """Counts a fault in the last call's place."""
        self.calls -= 1
        self.faults += 1
        return "error: the tool failed, not the program; this call does not count"


NO_CALLS_LEFT = "error: No calls are left"


class PythonTool(_Counted):
    """`POST /run` for the calls of one rollout."""

    def __init__(self, grader: AsyncGrader, limits: ToolLimits | None = None) -> None:
        super().__init__(limits or ToolLimits())
        self._grader = grader

    async def __call__(self, code: str) -> str:
        """What the program did, in words. Raises GraderError."""
        if (refusal := self.refusal()) is not None:
            return refusal
        limits = self.limits
        try:
            request = RunRequest(language="python", source=sendable(code), limits=limits.of_run())
            for _ in range(TRIES):
                result = await self._grader.run(request)
                if result.status != Verdict.INTERNAL_ERROR:
                    return told_of_run(result, limits)
        except ValidationError as error:
            return f"error: {first_mistake(error)}"
        except Refused as error:
            if error.field not in (None, "source"):
                raise _unfit(error) from error
            return f"error: {error.detail}"
        return self.fault()


class Terminal(_Counted):
    """A session for the calls of one rollout, opened with its first. `close` it."""

    def __init__(
        self,
        grader: AsyncGrader,
        limits: ToolLimits | None = None,
        *,
        files: Mapping[str, str] | None = None,
        session: AsyncSession | None = None,
        keeps: bool = True,
    ) -> None:
        """`files`: texts that the workspace begins with, by their paths. `session`: one that is open, for what another
        process has begun. `keeps`: whether the session that this opens is used now and then, however long the model
        takes, for as long as this object is there.
        """
        super().__init__(limits or ToolLimits())
        self._grader = grader
        self._files = {path: FileContent(text=text) for path, text in (files or {}).items()}
        self._session = session
        self._turn = asyncio.Lock()
        self._used_up = False
        self._keeps = keeps
        self._keeping: asyncio.Task[None] | None = None

    async def bash(self, command: str) -> str:
        """What the command did, in words. Raises SessionLost, GraderError."""

        async def done(session: AsyncSession) -> str:
            result = await session.run(sendable(command), timeout_s=self.limits.timeout_s)
            return told_of_command(result, self.limits)

        return await self._doing(done)

    async def write(self, path: str, text: str) -> str:
        """Make or replace a file. Raises SessionLost, GraderError."""

        async def written(session: AsyncSession) -> str:
            await session.write({path: FileContent(text=sendable(text))})
            return "completed."

        return await self._doing(written)

    async def read(self, path: str = "") -> str:
        """What a file holds, or a folder. Raises SessionLost, GraderError."""

        async def seen(session: AsyncSession) -> str:
            found = await session.read(path)
            if isinstance(found, FolderContent):
                names = [f"{one.name}/" if one.kind == "folder" else one.name for one in found.entries]
                return clipped("\n".join(names), self.limits.observation_chars)
            if found.text is None:
                return f"error: it is no text: {found.size_bytes} bytes"
            return clipped(found.text, self.limits.observation_chars)

        return await self._doing(seen)

    @property
    def session(self) -> AsyncSession | None:
        """The one that is open; None where none was, or it has used up its CPU time."""
        return None if self._used_up else self._session

    async def close(self) -> None:
        """Safe to call twice. Where the grader cannot be told, the session ends by itself."""
        session, self._session = self._session, None
        if self._keeping is not None:
            self._keeping.cancel()
        if session is not None:
            await session.__aexit__(None, None, None)

    def lost(self, error: SessionLost) -> None:
        """Take note of a session that has ended. Raises `error` where that was no doing of the model's."""
        if not error.is_own:
            raise error
        self._used_up = True

    async def _doing(self, do: Callable[[AsyncSession], Awaitable[str]]) -> str:
        if (refusal := self.refusal()) is not None:
            return refusal
        # A turn may have several calls, which are written to be done one after the other, in one session.
        async with self._turn:
            return await self._done(do)

    async def _done(self, do: Callable[[AsyncSession], Awaitable[str]]) -> str:
        if self._used_up:
            return _USED_UP
        try:
            return await do(await self._opened())
        except SessionLost as error:
            self.lost(error)
            return _USED_UP
        except ValidationError as error:
            return f"error: {first_mistake(error)}"
        except Refused as error:
            return f"error: {error.detail}"

    async def _opened(self) -> AsyncSession:
        if self._session is None:
            try:
                self._session = await self._grader.open_session(self.limits.of_session(self._files))
            except Refused as error:
                raise _unfit(error) from error
            if self._keeps:
                self._keeping = keep(self._grader, self._session.id, self.limits.session_ttl_s, ref(self))
        return self._session


def _unfit(error: Refused) -> GraderUnfit:
    """What is asked for by whoever set the limits, and not by the model, is nothing to tell it of."""
    return GraderUnfit(f"the grader does not take these limits: {error.detail}")


_USED_UP = "error: The workspace has used up its CPU time, and is gone"


# ---------------------------------------------------------------------------------------------------------------
# What a model is told


def told_of_run(result: RunResult, limits: ToolLimits) -> str:
    """Of a program, as CWM tells it: `completed. [stdout]...[/stdout] [stderr]...[/stderr]`, `error: Timeout`.

    Raises ValueError of an `internal_error`, which is none of the program's.
    """
    match result.status:
        case "ok":
            word = "completed."
        case Verdict.TIME_LIMIT | Verdict.IDLE:
            word = f"error: Timeout ({limits.timeout_s:g} s)"
        case Verdict.MEMORY_LIMIT:
            word = f"error: Out of memory ({limits.memory_mb} MiB)"
        case Verdict.OUTPUT_LIMIT:
            word = "error: Too much output"
        case "compile_error":
            said = result.message if result.compile is None else result.compile.message
            return f"error: It does not compile {_section('stderr', said, limits.observation_chars)}"
        case Verdict.RUNTIME_ERROR:
            word = f"error: {_ended(result.exit_code, result.signal)}"
        case _:
            raise ValueError(f"{result.status} is the grader's, not the program's")
    return _with_output(word, result.stdout, result.stderr, limits)


def told_of_command(result: ExecResult, limits: ToolLimits) -> str:
    """Of a command, in the same words."""
    if result.timed_out:
        word = f"error: Timeout ({limits.timeout_s:g} s)"
    elif result.exit_code == 0:
        word = "completed."
    else:
        word = f"error: {_ended(result.exit_code, result.signal)}"
    if result.oom_kills:
        word += " (out of memory)"
    return _with_output(word, result.stdout, result.stderr, limits)


def _ended(exit_code: int | None, signal: int | None) -> str:
    return f"Ended by signal {signal}" if exit_code is None else f"Exit status {exit_code}"


def _with_output(word: str, stdout: str, stderr: str, limits: ToolLimits) -> str:
    # Of the two, stderr is short as a rule, and says what went wrong.
    most = limits.observation_chars
    said = _section("stderr", stderr, most // 2)
    return " ".join(
        part for part in (word, _section("stdout", stdout, most - min(len(stderr), most // 2)), said) if part
    )


def _section(name: str, text: str, most: int) -> str:
    return f"[{name}]\n{clipped(text, most)}[/{name}]" if text else ""


def clipped(text: str, most: int) -> str:
    """The text, of at most about so many characters: of a longer one its beginning and its end."""
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}\n[{len(text) - most} characters left out]\n{text[len(text) - (most - head) :]}"
