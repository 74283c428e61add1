"""The reward function and the environments for TRL, called as TRL calls them, with a real grader."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import httpx
import pytest

from rl_client.errors import BadLabel, ClientError, GraderUnreachable
from rl_client.tools import ToolLimits
from rl_client.trainers import loops
from rl_client.trainers.trl_environments import Environment, PythonEnvironment, TerminalEnvironment
from rl_client.trainers.trl_reward import TrlReward, answer_of, rkgrade
from tests.rl_client.answering import after_trouble, answering
from tests.rl_client.doubling import ACCEPTED, EMPTY, FAULT, ID, NOTHING, RIGHT, SMALL_ONLY, WRONG
from tests.rl_client.results import PROBLEM

T = TypeVar("T")

SMALL = ToolLimits(memory_mb=256, disk_mb=16)


def run(work: Coroutine[Any, Any, T]) -> T:
    async def closing() -> T:
        try:
            return await work
        finally:
            await loops.aclose()

    return asyncio.run(closing())


def rewards(reward: TrlReward | Callable[..., Any], completions: list[Any], **columns: Any) -> list[float | None]:
    prompts = [""] * len(completions)
    return run(reward(prompts=prompts, completions=completions, completion_ids=[[1]] * len(prompts), **columns))


@pytest.mark.jail
def test_a_batch_is_graded_at_once(url: str) -> None:
    metrics: dict[str, float] = {}
    extra: dict[str, list[str]] = {}
    reward = TrlReward(url=url, label={"reward": "r_k:2", "scale": "signed", "format_error": -2.0})
    told = rewards(
        pickle.loads(pickle.dumps(reward)),
        [RIGHT, SMALL_ONLY, WRONG, NOTHING] * 8,
        label=[ID] * 32,
        trainer_state=None,
        # A column of the data set's that is called as a setting is.
        url=["elsewhere"] * 32,
        log_metric=metrics.__setitem__,
        log_extra=extra.__setitem__,
    )
    assert told == [1.0, 1.0, -1.0, -2.0] * 8
    assert (metrics["rkgrade/R_2"], metrics["rkgrade/R_inf"], metrics["rkgrade/format_error"]) == (0.5, 0.25, 0.25)
    assert (metrics["rkgrade/rewarded"], metrics["rkgrade/fault"]) == (1.0, 0.0)
    assert extra == {"rkgrade": ["accepted", "wrong_answer", "wrong_answer", "format_error"] * 8}


@pytest.mark.jail
def test_the_function_of_the_command_line_goes_by_variables(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKGRADE_URL", url)
    monkeypatch.setenv("RKGRADE_LABEL", '{"reward": "r_k:2"}')
    assert rewards(rkgrade, [SMALL_ONLY], label=[ID]) == [1.0]


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("text", "text"),
        ([{"role": "assistant", "content": "text"}], "text"),
        ([{"role": "assistant", "content": [{"type": "text", "text": "te"}, {"type": "text", "text": "xt"}]}], "text"),
        ([{"role": "assistant", "content": "a"}, {"role": "tool", "content": "b"}], ""),
        ([{"role": "assistant", "content": None, "tool_calls": []}], ""),
        ([], ""),
    ],
)
def test_the_answer_is_the_models_last_word(completion: Any, answer: str) -> None:
    assert answer_of(completion) == answer


def test_fields_that_other_rows_have_are_null_in_a_column_of_objects() -> None:
    label = {"problem": PROBLEM, "reward": None, "scale": "signed", "limits": {"cpu_s": None, "memory_mb": 64}}
    with answering(lambda _: (200, {}, ACCEPTED)) as url:
        assert rewards(TrlReward(url=url), [RIGHT], label=[label]) == [1.0]


@pytest.mark.parametrize(
    ("body", "label"),
    [
        (FAULT, {"problem": PROBLEM}),
        (FAULT, {"problem": PROBLEM, "fault": "retry"}),
        (EMPTY, {"problem": PROBLEM, "reward": "r_k:2"}),
    ],
)
def test_what_has_no_reward_is_left_out(body: object, label: dict[str, object]) -> None:
    metrics: dict[str, float] = {}
    with answering(lambda _: (200, {}, body)) as url:
        assert rewards(TrlReward(url=url), [RIGHT], label=[label], log_metric=metrics.__setitem__) == [None]
        assert rewards(TrlReward(url=url, unscored=-0.5), [RIGHT], label=[label]) == [-0.5]
    assert (metrics["rkgrade/rewarded"], metrics["rkgrade/fault"]) == (0.0, float(body is FAULT))


@pytest.mark.jail
def test_a_label_that_is_wrong_is_an_error(url: str) -> None:
    with pytest.raises(BadLabel, match="no column 'label'"):
        rewards(TrlReward(url=url), [RIGHT], solution=[ID])
    with pytest.raises(BadLabel, match="problem"):
        rewards(TrlReward(url=url), [RIGHT, RIGHT], label=[ID, "sha256:" + "0" * 64])
    with pytest.raises(ClientError, match="patience_s"):
        TrlReward(patience_s="long")  # type: ignore[arg-type]


def test_a_grader_that_is_down_for_a_while_is_waited_for() -> None:
    with answering(after_trouble(ACCEPTED)) as url:
        assert rewards(TrlReward(url=url), [RIGHT] * 8, label=[PROBLEM] * 8) == [1.0] * 8


def test_a_grader_that_is_gone_is_an_error() -> None:
    with pytest.raises(GraderUnreachable):
        rewards(TrlReward(url="http://127.0.0.1:9", patience_s=0.5), [RIGHT], label=[PROBLEM])


# ---------------------------------------------------------------------------------------------------------------
# Environments


def test_tools_are_all_that_is_public() -> None:
    def public(kind: type[Environment]) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")} - {"reset"}

    assert (public(PythonEnvironment), public(TerminalEnvironment)) == ({"python"}, {"bash", "submit"})


@pytest.mark.jail
def test_calls_of_python(url: str) -> None:
    environment = PythonEnvironment(url=url, limits=ToolLimits(calls=1))

    async def work() -> list[Any]:
        environment.reset(prompt=[], label=ID)
        told = [await environment.python("print(6 * 7)"), await environment.python("print(1)")]
        environment.reset(prompt=[], label=ID)
        told += [await environment.python(7), await environment.python("print(8)")]  # type: ignore[arg-type]
        called = """<tool_call>{"name": "python", "arguments": {"code": "```python\\nprint(0)\\n```"}}</tool_call>"""
        return [
            *told,
            await TrlReward(url=url)([""] * 2, [RIGHT, RIGHT + called], label=[ID] * 2, environments=[environment] * 2),
        ]

    assert run(work()) == [
        "completed. [stdout]\n42\n[/stdout]",
        "error: No calls are left",
        'error: "code" is no string',
        "completed. [stdout]\n8\n[/stdout]",
        [1.0, 1.0],
    ]


def is_open(url: str, session: str) -> bool:
    return httpx.get(f"{url}/sessions/{session}").status_code == 200


WRITE = "echo 'print(2 * int(input()))' > solution.py"


@pytest.mark.jail
@pytest.mark.parametrize(
    ("calls", "text", "reward"),
    [
        ([("bash", WRITE)], "Done.", 1.0),
        (
            [("bash", "mv /etc/passwd solution.py; echo 'print(0)' > a.py"), ("submit", "a.py"), ("bash", WRITE)],
            RIGHT,
            0.0,
        ),
        ([("bash", "true")], RIGHT, 1.0),
        ([("submit", "")], RIGHT, 0.0),
        ([], RIGHT, 1.0),
    ],
)
def test_work_in_a_terminal(url: str, calls: list[tuple[str, str]], text: str, reward: float) -> None:
    environment = TerminalEnvironment(url=url, limits=SMALL)

    async def work() -> tuple[list[float | None], list[str]]:
        environment.reset(prompt=[], label=ID)
        sessions = []
        for name, argument in calls:
            await getattr(environment, name)(argument)
            if environment._terminal is not None and environment._terminal.session is not None:
                sessions.append(environment._terminal.session.id)
        answer = [{"role": "assistant", "content": text}]
        told = await TrlReward(url=url)([""], [answer], label=[ID], environments=[environment])
        return told, [session for session in sessions if is_open(url, session)]

    assert run(work()) == ([reward], [])


@pytest.mark.jail
def test_a_rollout_that_nobody_graded_leaves_no_session(url: str) -> None:
    environment = TerminalEnvironment(url=url, limits=SMALL)

    async def work() -> str:
        environment.reset()
        await environment.bash("echo 1 > a")
        assert environment._terminal is not None and environment._terminal.session is not None
        session = environment._terminal.session.id
        # As TRL does it.
        await asyncio.to_thread(environment.reset)
        told = await environment.bash("cat a")
        while is_open(url, session):
            await asyncio.sleep(0.05)
        await environment._terminal.close()
        return told

    assert run(work()).startswith("error: Exit status 1")


@pytest.mark.jail
def test_a_session_that_was_lost_leaves_its_rollout_out(url: str) -> None:
    environment = TerminalEnvironment(url=url, limits=SMALL)

    async def work() -> list[float | None]:
        environment.reset()
        await environment.bash(WRITE)
        assert environment._terminal is not None and environment._terminal.session is not None
        await environment._terminal.session.close()
        with pytest.raises(ClientError):
            await environment.bash("true")
        return await TrlReward(url=url)([""], [RIGHT], label=[ID], environments=[environment])

    assert run(work()) == [None]


def test_a_grader_that_was_gone_during_a_call_is_an_error_when_there_is_something_to_grade() -> None:
    environment = PythonEnvironment(url="http://127.0.0.1:9", patience_s=0.5)

    async def work(url: str) -> None:
        environment.reset()
        with pytest.raises(GraderUnreachable):
            await environment.python("print(1)")
        with pytest.raises(GraderUnreachable):
            await TrlReward(url=url)([""], [RIGHT], label=[PROBLEM], environments=[environment])

    with answering(lambda _: (200, {}, ACCEPTED)) as url:
        run(work(url))
