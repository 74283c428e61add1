"""verl 0.9: Python calls as a tool of its agent loop, for `actor_rollout_ref.rollout.multi_turn.tool_config_path`.

    tools:
      - class_name: rl_client.trainers.verl_tool.PythonTool
        config: {type: native, url: "http://grader:8000", timeout_s: 10}

Beside `type`, the configuration has `url` and `patience_s` (as `rl_client.trainers.settings` has them, whose variables
hold where they are left out) and the fields of `rl_client.tools.ToolLimits` that a run of Python has. What the model
is told of the tool is `rl_client.tools.PYTHON`, unless there is a `tool_schema` with the same argument.

verl tells the model of every error of a tool's, and goes on. So does it of a grader that is gone for longer than
`patience_s`, which is logged here; it is the reward of that same rollout that ends training then
(`rl_client.trainers.verl_reward`), and neither is a reward of 0. `compute_score` logs how many calls a rollout made and
how many of them the grader failed at.
"""

from __future__ import annotations

import logging
from typing import Any
from weakref import WeakKeyDictionary

from verl.tools.base_tool import BaseTool
from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse
from verl.utils.rollout_trace import rollout_trace_op

from rl_client.errors import ClientError
from rl_client.tools import PYTHON, ToolLimits
from rl_client.tools import PythonTool as Python
from rl_client.trainers.loops import reached
from rl_client.trainers.settings import Settings
from rl_client.trainers.verl_reward import TOOL

_LOG = logging.getLogger(__name__)

_LIMITS = ("calls", "timeout_s", "memory_mb", "observation_chars")
_SETTINGS = ("url", "patience_s")


class PythonTool(BaseTool):  # type: ignore[misc]
    """`POST /run` for the calls of rollouts: one of these serves all that its worker makes."""

    def __init__(self, config: dict[str, Any], tool_schema: OpenAIFunctionToolSchema | None = None) -> None:
        """Raises ClientError, which names what is wrong with the configuration."""
        if unknown := config.keys() - {"type", *_SETTINGS, *_LIMITS}:
            raise ClientError(
                f"the tool has no setting {sorted(unknown)[0]!r}: there are {', '.join((*_SETTINGS, *_LIMITS))}"
            )
        self._limits = ToolLimits(**{name: config[name] for name in _LIMITS if name in config})
        self._settings = Settings.given({name: config[name] for name in _SETTINGS if name in config})
        self._rollouts: WeakKeyDictionary[Any, Python] = WeakKeyDictionary()
        super().__init__(config, tool_schema)

    def get_openai_tool_schema(self) -> OpenAIFunctionToolSchema:
        return OpenAIFunctionToolSchema.model_validate(PYTHON.schema())

    @rollout_trace_op  # type: ignore[untyped-decorator]
    async def execute(
        self, instance_id: str, parameters: dict[str, Any], *, agent_data: Any, **_: Any
    ) -> tuple[ToolResponse, float, dict[str, Any]]:
        """What the program did, in words; no reward of its own. `agent_data`: verl's, of the rollout.

        verl makes an instance for each call, so that it is the rollout by which calls are counted.
        """
        tool = self._rollouts.get(agent_data)
        if tool is None:
            tool = self._rollouts[agent_data] = Python(reached(self._settings).grader, self._limits)
        code = parameters.get(PYTHON.argument) if isinstance(parameters, dict) else None
        try:
            if isinstance(code, str):
                text = await tool(code)
            else:
                text = tool.refusal() or f'error: "{PYTHON.argument}" is missing, or no string'
        except ClientError as error:
            tool.fault()
            _LOG.error("a call of Python was not run: %s", error)
            raise
        finally:
            agent_data.extra_fields[TOOL] = {"calls": tool.calls, "tool_faults": tool.faults}
        return ToolResponse(text=text), 0.0, {}
