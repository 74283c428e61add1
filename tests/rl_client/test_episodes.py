"""Rollouts of several turns, whatever trainer they are for: what a model hears, and when it is over."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

import pytest

from rl_client.async_client import AsyncGrader
from rl_client.encoded import EncodedProblem
from rl_client.episodes import Setting
from rl_client.errors import BadLabel
from rl_client.rollout import Scored, Scorer, logs_of_none
from rl_client.tools import NO_CALLS_LEFT, ToolLimits
from service.contract import StdioProblem, StdioTest
from tests.serving import Server

SECRET = "2469135780246"
DOUBLE = StdioProblem(
    kind="stdio", tests=(StdioTest(input="1\n", output="2\n"), StdioTest(input="1234567890123\n", output=f"{SECRET}\n"))
)
ID = EncodedProblem.of(DOUBLE).id
LABEL = {"problem": ID, "format_error": -1.0}

RIGHT = "```python\nprint(2 * int(input()))\n```"
WRONG = "```python\nprint(2)\n```"
CALL = "<tool: python>\nprint(1)\n</tool>"


@dataclass(frozen=True, slots=True)
class Over:
    heard: list[str]
    scored: Scored
    numbers: dict[str, float]


def rolled_out(
    grader: Server, setting: Setting, *turns: str, label: object = LABEL, last: int | None = None, end: bool = False
) -> Over:
    """`last`: the turn behind which there is no room. `end`: none for what is heard behind the last one here."""

    async def main() -> Over:
        async with AsyncGrader(grader.url) as client:
            await client.put_problem(EncodedProblem.of(DOUBLE))
            async with setting.episode(client, Scorer(client), label) as episode:
                heard = []
                for number, turn in enumerate(turns):
                    told = await episode.hear(turn, last=number == last)
                    if told is None:
                        break
                    heard.append(told)
                if end:
                    await episode.end()
                assert episode.scored is not None, heard
                return Over(heard, episode.scored, episode.numbers())

    return asyncio.run(main())


@pytest.mark.jail
def test_a_turn_without_a_call_is_the_answer(grader: Server) -> None:
    over = rolled_out(grader, Setting("python"), f"Let me try. {CALL}", RIGHT)
    assert (over.heard, over.scored.reward) == (["completed. [stdout]\n1\n[/stdout]"], 1.0)
    assert over.numbers == {"turns": 2.0, "calls": 1.0, "tool_faults": 0.0, "repaired": 0.0}


@pytest.mark.jail
def test_where_calls_are_used_up_the_next_turn_is_the_last(grader: Server) -> None:
    setting = Setting("python", ToolLimits(calls=1))
    over = rolled_out(grader, setting, "<tool: x>1</tool>" + CALL, f"{CALL} {RIGHT}")
    assert over.heard == [f"error: No such tool\n{NO_CALLS_LEFT}"]
    # What stands beside its call counts, the call does not.
    assert (over.scored.reward, over.numbers["calls"]) == (1.0, 1.0)


@pytest.mark.jail
def test_what_a_call_holds_is_no_answer(grader: Server) -> None:
    inside = f"<tool: python>\n{RIGHT}\n</tool>"
    assert rolled_out(grader, Setting("python"), inside, last=0).scored.reward == -1.0
    over = rolled_out(grader, Setting("python"), inside, end=True)
    assert (over.scored.reward, len(over.heard)) == (-1.0, 1)


@pytest.mark.jail
def test_calls_that_are_none_are_answered_and_counted(grader: Server) -> None:
    empty = json.dumps({"name": "python", "arguments": {}})
    over = rolled_out(grader, Setting("python"), "<tool_call>{</tool_call>", f"<tool_call>{empty}</tool_call>", RIGHT)
    assert over.heard[0].startswith("error: the call is not JSON")
    assert over.heard[1] == 'error: "code" is missing, or no string'
    assert over.numbers["calls"] == 2.0


@pytest.mark.jail
def test_a_submission_in_the_last_turn_counts(grader: Server) -> None:
    setting = Setting("terminal", ToolLimits(memory_mb=256, disk_mb=16))
    write = "<tool: bash>echo 'print(2 * int(input()))' > a.py</tool>"
    over = rolled_out(grader, setting, write, "<tool: submit>a.py</tool>", last=1)
    assert (over.scored.reward, over.heard) == (1.0, ["completed."])


@pytest.mark.jail
def test_repair_tells_nothing_private_and_ends_with_what_passes(grader: Server) -> None:
    over = rolled_out(grader, Setting("repair", attempts=3), "I cannot.", WRONG, RIGHT)
    assert over.heard[0].startswith("No program was found in that answer.")
    assert "- 1 of 2 tests passed" in over.heard[1]
    assert SECRET not in over.heard[1]
    assert "1234567890123" not in over.heard[1]
    assert (over.scored.reward, over.numbers["turns"], over.numbers["repaired"]) == (1.0, 3.0, 1.0)


@pytest.mark.jail
def test_of_repairs_the_last_that_was_graded_counts(grader: Server) -> None:
    over = rolled_out(grader, Setting("repair"), WRONG, "I cannot.")
    assert (over.scored.reward, len(over.heard), over.numbers["repaired"]) == (-1.0, 1, 0.0)
    assert rolled_out(grader, Setting("repair"), WRONG, end=True).scored.reward == 0.0
    assert rolled_out(grader, Setting("repair"), WRONG, last=0).scored.reward == 0.0
    # Its own reward does not ask for more.
    passed = rolled_out(grader, Setting("repair"), WRONG, label={**LABEL, "reward": "r_k:1"})
    assert (passed.scored.reward, passed.heard) == (1.0, [])


@pytest.mark.jail
def test_a_label_that_is_none_is_an_error(grader: Server) -> None:
    for name in ("python", "terminal", "repair"):
        with pytest.raises(BadLabel):
            rolled_out(grader, Setting(name), RIGHT, label="sha256:" + "1" * 64)  # type: ignore[arg-type]


@pytest.mark.jail
def test_logs_have_the_same_names_whatever_came(grader: Server) -> None:
    over = rolled_out(grader, Setting("python"), RIGHT)
    none = logs_of_none()
    assert tuple(over.scored.logs()) == tuple(none)
    assert {name for name, value in none.items() if value} == {"rkgrade_fault"}


@pytest.mark.parametrize(
    ("name", "fields", "attempts"),
    [("tools", {}, 2), ("repair", {}, 0), ("python", {"calls": 0}, 2), ("terminal", {"disk_mb": 512}, 2)],
)
def test_settings_that_there_are_none_of(name: str, fields: dict[str, int], attempts: int) -> None:
    with pytest.raises(ValueError):
        Setting(name, ToolLimits(**fields), attempts)  # type: ignore[arg-type]
