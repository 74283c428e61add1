"""TRL 1.16: tools for models, as `environment_factory` of `GRPOTrainer`; what is graded is up to `TrlReward`.

    GRPOTrainer(
        model,
        reward_funcs=TrlReward(url=url),
        environment_factory=functools.partial(TerminalEnvironment, url=url),
        ...
    )

TRL makes one environment for each rollout of a batch, resets it for the next, and takes its public methods for tools,
their docstrings for what a model is told of them. A call is one at a time there, whatever is asynchronous in it.

What a tool raises TRL shows to the model. A grader that is gone, or that lost a session, is none of the model's doing,
so it is kept here and raised again when there is something to grade.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rl_client.calls import without_calls
from rl_client.episodes import score_workspace
from rl_client.errors import ClientError
from rl_client.rollout import Scored, Scorer
from rl_client.tools import BASH, PYTHON, PythonTool, Terminal, ToolLimits
from rl_client.trainers.loops import reached
from rl_client.trainers.settings import Settings


class Environment:
    """What both have in common. No public method but `reset`: TRL would take it for a tool."""

    def __init__(
        self,
        *,
        url: str | None = None,
        label: Mapping[str, object] | None = None,
        patience_s: float | None = None,
        limits: ToolLimits | None = None,
    ) -> None:
        """`url`, `label`, `patience_s`: as of `TrlReward`, whose connections are used then. `limits`: of a rollout.
        Raises ClientError.
        """
        self._settings = Settings.given({"url": url, "label": label, "patience_s": patience_s})
        self._limits = limits or ToolLimits()
        self._trouble: ClientError | None = None

    def reset(self, **row: object) -> None:
        """A new rollout; nothing of the last one is left. `row`: of the data set."""
        self._trouble = None

    async def _scored(self, scorer: Scorer, text: str, label: object) -> Scored:
        """What the rollout came to; `text`: the model's last words. Raises as `Scorer.score` does, and SessionLost."""
        if self._trouble is not None:
            raise self._trouble
        return await scorer.score(without_calls(text), label)

    async def _told(self, call: Callable[[str], Awaitable[str]], argument: str, value: object) -> str:
        if not isinstance(value, str):
            return f'error: "{argument}" is no string'
        try:
            return await call(value)
        except ClientError as error:
            self._trouble = error
            raise


class PythonEnvironment(Environment):
    """Reasoning with calls of Python."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._tool: PythonTool | None = None

    def reset(self, **row: object) -> None:
        super().reset(**row)
        self._tool = None

    async def python(self, code: str) -> str:
        """
        Run a Python program, and see what it prints. Each call is a fresh process with an empty stdin; nothing is kept.

        Args:
            code: The program.
        """
        if self._tool is None:
            self._tool = PythonTool(reached(self._settings).grader, self._limits)
        return await self._told(self._tool, PYTHON.argument, code)


class TerminalEnvironment(Environment):
    """Agentic coding: a sandboxed terminal. Graded is the file that was submitted, else the solution's, else the text.

    A session is open from a rollout's first command until it is graded. A grader has to have room for as many as there
    are rollouts in a batch, of all processes together (`RKGRADE_SESSIONS`): what finds no room waits.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._terminal: Terminal | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._submitted: str | None = None

    def reset(self, **row: object) -> None:
        super().reset(**row)
        # Open still where nothing was graded. TRL resets from a thread without an event loop.
        if self._terminal is not None and self._loop is not None and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self._terminal.close(), self._loop)
        self._terminal = self._submitted = None

    async def bash(self, command: str) -> str:
        """
        Run a shell command in the workspace, whose files stay from call to call. There is no network.

        Args:
            command: The command, run by sh -c.
        """
        if self._submitted is not None:
            return "error: The answer was handed in"
        if self._terminal is None:
            self._loop = asyncio.get_running_loop()
            self._terminal = Terminal(reached(self._settings).grader, self._limits)
        return await self._told(self._terminal.bash, BASH.argument, command)

    async def submit(self, path: str = "") -> str:
        """
        Hand in a file of the workspace as the answer. Nothing can be done after that.

        Args:
            path: The file; solution and the suffix of the language, such as solution.py, where it is left out.
        """
        if self._submitted is None:
            self._submitted = path if isinstance(path, str) else ""
        return "completed."

    async def _scored(self, scorer: Scorer, text: str, label: object) -> Scored:
        terminal, self._terminal = self._terminal, None
        if terminal is None:
            return await super()._scored(scorer, "" if self._submitted is not None else text, label)
        try:
            if self._trouble is not None:
                raise self._trouble
            words = without_calls(text) if self._submitted is None else ""
            return await score_workspace(scorer, terminal, label, path=self._submitted or "", text=words)
        finally:
            await terminal.close()
