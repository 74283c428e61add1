"""verifiers 0.4 (and prime-rl, which takes its tasksets): rows of prompts and labels, graded by rkgrade.

    vf-eval rkgrade-taskset --env.taskset.rows rows.jsonl --env.taskset.task.grader http://grader:8000 -m MODEL

A row is a JSON object with a `prompt` (a text, or a list of messages) and a `label`; `name` and `system_prompt` are
verifiers' own. What `--env.taskset.task.*` leaves out is as the variables of `rl_client.trainers.settings` have it; a
token comes from RKGRADE_TOKEN alone.

An answer without a reward (a fault of the grader's, a group without tests) is an error of its rollout, which verifiers
records on the trace, and never a 0, unless `unscored` says what it is worth. An error whatever that says is a grader
that is gone for longer than all patience, and a session that was lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import verifiers.v1 as vf

from rl_client.calls import without_calls
from rl_client.episodes import score_workspace
from rl_client.errors import ClientError
from rl_client.labels import parse_label
from rl_client.tools import Terminal
from rl_client.trainers.loops import reached
from rl_client.trainers.settings import Settings
from rl_client.trainers.verifiers_tools import RkgradeState, RkgradeTools, RkgradeToolsConfig


class RkgradeTaskConfig(vf.TaskConfig):
    """How answers are graded, and what a model may call: `--env.taskset.task.*`."""

    grader: str | None = None
    """Its URL."""
    label: dict[str, object] | None = None
    """Fields for labels that leave them out."""
    patience_s: float | None = None
    """Seconds for which a grader that is busy or down is asked again."""
    unscored: float | None = None
    """What an answer without a reward is worth; an error otherwise."""
    tools: RkgradeToolsConfig = RkgradeToolsConfig()
    """What the model may call."""

    def settings(self) -> Settings:
        """Raises ClientError."""
        given = {"url": self.grader, "label": self.label, "patience_s": self.patience_s, "unscored": self.unscored}
        return Settings.given(given)


class RkgradeData(vf.TaskData):
    """A row."""

    label: str
    """As text: the id of a problem, or JSON."""


class RkgradeTask(vf.Task[RkgradeData, RkgradeState, RkgradeTaskConfig]):
    """One row, its tools and its reward."""

    @classmethod
    def toolsets(cls, config: RkgradeTaskConfig) -> list[vf.Toolset]:
        """What the model may call, by the same grader. Raises ClientError."""
        if config.tools.kind == "none":
            return []
        settings = config.settings()
        return [
            RkgradeTools(config.tools.model_copy(update={"grader": settings.url, "patience_s": settings.patience_s}))
        ]

    @vf.reward
    async def rkgrade(self, trace: vf.Trace) -> float:
        """The label's reward: of the file that was submitted, else of the solution's, else of the last reply. Records
        the numbers of `Scored.logs` as metrics. Raises ClientError."""
        settings, state = self.config.settings(), trace.state
        here = reached(settings)
        session = None if state.session is None else here.grader.session(state.session)
        terminal = Terminal(here.grader, session=session)
        try:
            if state.trouble is not None:
                raise ClientError(f"a tool failed: {state.trouble}")
            text = "" if state.submitted is not None else without_calls(trace.last_reply)
            scored, reward = await settings.rewarded(
                score_workspace(here.scorer, terminal, self.data.label, path=state.submitted or "", text=text)
            )
        finally:
            await terminal.close()
        trace.record_metrics(scored.logs())
        return reward


class RkgradeConfig(vf.TasksetConfig):
    """Which rows, and how they are graded: `--env.taskset.*`."""

    rows: Path = Path("rows.jsonl")
    """A file of JSON lines."""
    task: RkgradeTaskConfig = RkgradeTaskConfig()


class RkgradeTaskset(vf.Taskset[RkgradeTask, RkgradeConfig]):
    """`rkgrade-taskset`."""

    def load(self) -> Iterator[RkgradeTask]:
        """Raises ClientError, naming file, line and field, of the first row that is none."""
        defaults = self.config.task.settings().defaults
        with self.config.rows.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield RkgradeTask(_data(f"{self.config.rows}:{number}", line, defaults), self.config.task)


def _data(place: str, line: str, defaults: Mapping[str, object]) -> RkgradeData:
    """Raises ClientError."""
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            raise ClientError("no JSON object")
        label = row.pop("label", None)
        parse_label(label, defaults)
        return RkgradeData.model_validate({**row, "label": label if isinstance(label, str) else json.dumps(label)})
    except (ValueError, ClientError) as error:
        # Pydantic's errors are ValueErrors, too.
        raise ClientError(f"{place}: {error}") from error
