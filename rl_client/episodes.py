"""A rollout of several turns with the grader, whatever trainer it is for: what a model says comes in, what it hears
goes out, and at the end there is what it came to.

    async with setting.episode(grader, scorer, label) as episode:
        while (heard := await episode.hear(await model(...))) is not None:
            ...
        episode.scored

Three settings of arXiv 2605.28751: `python` (reasoning with calls of Python), `terminal` (a sandboxed terminal), and
`repair` (turns that are conditioned on how the last answer failed). How the paper bounds turns is not known; bounds
here are settings. A turn without a call is the answer; what a call holds is none. Where calls are used up, the
next turn is the last.

Errors are those of `Scorer`, and SessionLost where the grader lost a session through no doing of the model's. Knows no
tokens and no chat templates.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal

from rl_client.async_client import AsyncGrader
from rl_client.calls import Call, calls_of, without_calls
from rl_client.errors import Refused, SessionLost
from rl_client.labels import parse_label
from rl_client.repair import feedback
from rl_client.rollout import Scored, Scorer
from rl_client.sessions import AsyncSession
from rl_client.tools import BASH, NO_CALLS_LEFT, PYTHON, SUBMIT, PythonTool, Terminal, ToolLimits, ToolSpec

Name = Literal["python", "terminal", "repair"]


@dataclass(frozen=True, slots=True)
class Setting:
    """Which of the three, and its bounds."""

    name: Name
    limits: ToolLimits = field(default_factory=ToolLimits)
    attempts: int = 2
    """Answers of `repair`, the first included."""

    def __post_init__(self) -> None:
        if self.name not in _EPISODES:
            raise ValueError(f"a setting is one of {', '.join(_EPISODES)}, not {self.name!r}")
        if self.attempts < 1:
            raise ValueError("there is at least one answer")

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Those that a model has."""
        return {"python": (PYTHON,), "terminal": (BASH, SUBMIT), "repair": ()}[self.name]

    def episode(self, grader: AsyncGrader, scorer: Scorer, label: object) -> Episode:
        """A new rollout. Raises nothing yet: a label that is none is told of when something is graded."""
        return _EPISODES[self.name](self, grader, scorer, label)


class Episode(ABC):
    """One rollout; `hear` until it says None."""

    def __init__(self, setting: Setting, grader: AsyncGrader, scorer: Scorer, label: object) -> None:
        self._setting = setting
        self._grader = grader
        self._scorer = scorer
        self._label = label
        self._turns = 0
        self._said = ""
        self._open = contextlib.AsyncExitStack()
        self.scored: Scored | None = None
        """What it came to, once `hear` has said None."""

    async def __aenter__(self) -> Episode:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End what it has open."""
        await self._open.aclose()

    async def hear(self, text: str, *, last: bool = False) -> str | None:
        """What is answered to the model's turn; None where the episode is over. `last`: there is room for no other.

        Raises BadLabel, FaultyGrade, DeadlinePassed, SessionLost, GraderError.
        """
        if self.scored is not None:
            raise ValueError("this episode is over")
        self._turns += 1
        self._said = text
        return await self._hear(text, last)

    async def end(self) -> None:
        """There is no room for what was heard last: what there is by now counts. Raises as `hear` does."""
        if self.scored is None:
            await self._end(self._said)

    def numbers(self) -> dict[str, float]:
        """To be logged beside those of `Scored.logs`; the same names in all settings."""
        return {"turns": float(self._turns), "calls": 0.0, "tool_faults": 0.0, "repaired": 0.0}

    @abstractmethod
    async def _hear(self, text: str, last: bool) -> str | None: ...

    @abstractmethod
    async def _end(self, text: str) -> None:
        """`text`: of the last turn, which was heard."""

    async def _answered(self, text: str) -> None:
        self.scored = await self._scorer.score(text, self._label)


class _WithTools(Episode):
    """What `python` and `terminal` share: a turn's calls are made in order, and their answers are told together."""

    _tool: PythonTool | Terminal

    async def _hear(self, text: str, last: bool) -> str | None:
        calls = calls_of(text)
        if not calls or last or not self._tool.calls_left:
            await self._over(without_calls(text), calls)
            return None
        told = []
        for call in calls:
            if (answer := await self._call(call)) is None:
                return None
            told.append(answer)
        if not self._tool.calls_left and told[-1] != NO_CALLS_LEFT:
            told.append(f"{NO_CALLS_LEFT}: the next turn is the last")
        return "\n".join(told)

    async def _end(self, text: str) -> None:
        await self._over(without_calls(text), [])

    def numbers(self) -> dict[str, float]:
        return {
            **super().numbers(),
            "calls": float(self._tool.calls),
            "tool_faults": float(self._tool.faults),
        }

    def _mistaken(self, why: str) -> str:
        return self._tool.refusal() or f"error: {why}"

    async def _over(self, text: str, calls: list[Call]) -> None:
        """The last turn: its text without its calls, and those, which nobody would hear of any more."""
        await self._answered(text)

    @abstractmethod
    async def _call(self, call: Call) -> str | None:
        """What is told of it; None where it ends the episode."""


class _Python(_WithTools):
    def __init__(self, setting: Setting, grader: AsyncGrader, scorer: Scorer, label: object) -> None:
        super().__init__(setting, grader, scorer, label)
        self._tool: PythonTool = PythonTool(grader, setting.limits)

    async def _call(self, call: Call) -> str | None:
        if call.mistake is not None:
            return self._mistaken(call.mistake)
        if call.name != PYTHON.name:
            return self._mistaken("No such tool")
        if (code := call.text(PYTHON.argument)) is None:
            return self._mistaken(f'"{PYTHON.argument}" is missing, or no string')
        return await self._tool(code)


async def score_workspace(scorer: Scorer, terminal: Terminal, label: object, *, path: str, text: str) -> Scored:
    """What came of work in a terminal: the file at `path`, which was submitted, else the solution's file, else the last
    turn's `text`.

    Raises as `Scorer.score` does, and SessionLost.
    """
    path = path.strip()
    if (session := terminal.session) is not None:
        try:
            solution = f"solution{await scorer.suffix(parse_label(label, scorer.defaults).language)}"
            if path or await _is_there(session, solution):
                return await scorer.score_file(session, path or solution, label)
        except SessionLost as error:
            terminal.lost(error)
    return await scorer.score(text, label)


async def _is_there(session: AsyncSession, path: str) -> bool:
    try:
        await session.read(path)
    except Refused:
        return False
    return True


class _Terminal(_WithTools):
    """Graded is the file that is submitted; without a word of that the solution's file, if there is one, else the last
    turn's text. A file that is no program is graded as an answer without one.
    """

    def __init__(self, setting: Setting, grader: AsyncGrader, scorer: Scorer, label: object) -> None:
        super().__init__(setting, grader, scorer, label)
        self._tool: Terminal = Terminal(grader, setting.limits)
        self._open.push_async_callback(self._tool.close)

    async def _call(self, call: Call) -> str | None:
        if call.mistake is not None:
            return self._mistaken(call.mistake)
        if call.name == BASH.name:
            if (command := call.text(BASH.argument)) is None:
                return self._mistaken(f'"{BASH.argument}" is missing, or no string')
            return await self._tool.bash(command)
        if call.name == SUBMIT.name:
            await self._submitted(call.text(SUBMIT.argument) or "", "")
            return None
        return self._mistaken("No such tool")

    async def _over(self, text: str, calls: list[Call]) -> None:
        submits = next((call for call in calls if call.mistake is None and call.name == SUBMIT.name), None)
        await self._submitted("" if submits is None else submits.text(SUBMIT.argument) or "", text)

    async def _submitted(self, path: str, text: str) -> None:
        self.scored = await score_workspace(self._scorer, self._tool, self._label, path=path, text=text)


class _Repair(Episode):
    """Each answer is graded; how it failed is told without anything that is private, as `rl_client.repair` has it.

    What the paper calls online-fixing makes a fresh prompt of a failure (`rl_client.repair.online_fixing`); here the
    repair is a further turn, for trainers that roll out one prompt at a time. The last answer's reward counts.
    """

    _latest: Scored | None = None

    async def _hear(self, text: str, last: bool) -> str | None:
        # Tails of stderr name the exception; `feedback` lets nothing else of them through.
        self._latest = scored = await self._scorer.score(text, self._label, detail="outputs")
        if last or scored.reward is None or scored.passed or self._turns >= self._setting.attempts:
            self.scored = scored
            return None
        return feedback(scored.result)

    async def _end(self, text: str) -> None:
        self.scored = self._latest

    def numbers(self) -> dict[str, float]:
        repaired = self.scored is not None and self.scored.passed and self._turns > 1
        return {**super().numbers(), "repaired": float(repaired)}


_EPISODES: dict[str, type[Episode]] = {"python": _Python, "terminal": _Terminal, "repair": _Repair}
