"""verifiers 0.4: tools for models, in a server of MCP that verifiers starts for each rollout.

    --env.taskset.task.tools.kind python      python(code): POST /run
    --env.taskset.task.tools.kind terminal    bash(command): a session; submit(path)

What the reward has to know of it goes along as the rollout's state. A session is open until the rollout is scored; that
of a rollout which ended before is closed when it has been idle for `session_ttl_s`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

import verifiers.v1 as vf

from rl_client.errors import ClientError
from rl_client.sendable import sendable
from rl_client.tools import BASH, PYTHON, SUBMIT, PythonTool, Terminal, ToolLimits, ToolSpec
from rl_client.trainers.loops import reached
from rl_client.trainers.settings import Settings

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer


class RkgradeState(vf.State):
    """What the reward has to know of a rollout's calls."""

    session: str | None = None
    """The id of the session that is open."""
    submitted: str | None = None
    """The file that was submitted; empty for the solution's."""
    trouble: str | None = None
    """Why a tool failed, which is none of the model's doing."""


class RkgradeToolsConfig(vf.ToolsetConfig):
    """Which tools, and their bounds: `--env.taskset.task.tools.*`."""

    kind: Literal["none", "python", "terminal"] = "none"
    calls: int = 16
    """Of a rollout."""
    timeout_s: float = 10.0
    """Of one call, in wall seconds, and CPU seconds for Python."""
    session_ttl_s: float = 900.0
    """Seconds for which a session waits for the model's next call."""
    grader: str | None = None
    """As of the task, and so is `patience_s`."""
    patience_s: float | None = None


class RkgradeTools(vf.Toolset[RkgradeToolsConfig, RkgradeState]):
    """A server of MCP with the tools of one rollout. What they do and say is as of `rl_client.tools`."""

    TOOL_PREFIX = None

    def __init__(self, config: RkgradeToolsConfig) -> None:
        """Raises ClientError, and ValueError of bounds that no grader takes."""
        super().__init__(config)
        self._settings = Settings.given({"url": config.grader, "patience_s": config.patience_s})
        self._limits = ToolLimits(calls=config.calls, timeout_s=config.timeout_s, session_ttl_s=config.session_ttl_s)
        self._python: PythonTool | None = None
        self._terminal: Terminal | None = None
        self._submitted: str | None = None

    def register(self, mcp: MCPServer) -> None:
        """Called by verifiers as the server starts."""
        tools: dict[str, list[tuple[ToolSpec, Callable[..., Awaitable[str]]]]] = {
            "python": [(PYTHON, self.python)],
            "terminal": [(BASH, self.bash), (SUBMIT, self.submit)],
        }
        for spec, call in tools[self.config.kind]:
            mcp.add_tool(self._with_state(call), name=spec.name, description=spec.description)

    async def python(self, code: str) -> str:
        """What the program did, in words. A grader that is gone is told to the reward."""
        if self._python is None:
            self._python = PythonTool(reached(self._settings).grader, self._limits)
        return await self._told(self._python, code)

    async def bash(self, command: str) -> str:
        """What the command did, in words. A grader that is gone, and a session that is lost, are told to the reward."""
        if self._submitted is not None:
            return "error: The answer was handed in"
        if self._terminal is None:
            # A server whose evaluation was killed may go on: it must not keep a session for nobody.
            self._terminal = Terminal(reached(self._settings).grader, self._limits, keeps=False)
        told = await self._told(self._terminal.bash, command)
        self.state.session = None if self._terminal.session is None else self._terminal.session.id
        return told

    async def submit(self, path: str = "") -> str:
        """Has the reward grade that file; the first one counts, and no command is run after it."""
        if self._submitted is None:
            self._submitted = sendable(path)
        self.state.submitted = self._submitted
        return "completed."

    async def _told(self, call: Callable[[str], Awaitable[str]], value: str) -> str:
        try:
            return await call(value)
        except ClientError as error:
            self.state.trouble = str(error)
            return "error: the tool failed"


if __name__ == "__main__":
    RkgradeTools.run()
