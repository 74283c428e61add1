"""verl's `compute_score`: rewards that are always numbers, what has none, and settings as verl hands them on."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rl_client.errors import BadLabel, ClientError, GraderUnreachable
from rl_client.trainers.loops import aclose
from rl_client.trainers.settings import Unscored
from rl_client.trainers.verl_reward import TOOL, compute_score
from tests.rl_client import doubling
from tests.rl_client.answering import Asked, after_trouble, answering
from tests.rl_client.doubling import ACCEPTED, ID, NOTHING, SMALL_ONLY, UNREWARDED, WRONG
from tests.rl_client.results import PROBLEM
from tests.rl_client.trainers.venvs import ROOT, python_with

RIGHT = f"So:\n{doubling.RIGHT}"


def within(work: Callable[[], Awaitable[Any]]) -> Any:
    """On an event loop of its own, as each of verl's workers has one."""

    async def whole() -> Any:
        try:
            return await work()
        finally:
            await aclose()

    return asyncio.run(whole())


def score(ground_truth: object = PROBLEM, **arguments: Any) -> dict[str, float]:
    scored: dict[str, float] = within(lambda: compute_score("codecontests", RIGHT, ground_truth, {}, **arguments))
    return scored


@pytest.mark.jail
def test_many_answers_at_once(url: str) -> None:
    answers = [RIGHT, SMALL_ONLY, WRONG, NOTHING] * 16
    arguments: dict[str, Any] = {
        "url": url,
        "label": {"reward": "r_k:2", "scale": "signed", "format_error": -2.0},
        "reward_router_address": "127.0.0.1:1",
    }

    async def all_of_them() -> list[dict[str, float]]:
        return await asyncio.gather(*(compute_score("any", answer, ID, None, **arguments) for answer in answers))

    told = within(all_of_them)
    assert [one["score"] for one in told] == [1.0, 1.0, -1.0, -2.0] * 16
    assert [one["acc"] for one in told] == [1.0, 0.0, 0.0, 0.0] * 16
    assert [one["rkgrade_R_2"] for one in told] == [1.0, 1.0, 0.0, 0.0] * 16
    assert len({tuple(one) for one in told}) == 1
    assert {type(value) for one in told for value in one.values()} == {float}


@pytest.mark.parametrize(("body", "fields", "why"), UNREWARDED)
def test_what_has_no_reward_is_an_error_unless_somebody_says_what_it_is_worth(
    body: object, fields: dict[str, object], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    label = {"problem": PROBLEM, **fields}
    with answering(lambda _: (200, {}, body)) as url:
        with pytest.raises(Unscored, match=why):
            score(label, url=url)
        worth = score(label, url=url, unscored=-0.25)
        assert (worth["score"], worth["rkgrade_rewarded"]) == (-0.25, 0.0)
        monkeypatch.setenv("RKGRADE_UNSCORED", "0.5")
        assert score(label, url=url)["score"] == 0.5


def test_a_grader_that_is_down_for_a_while_is_waited_for() -> None:
    with answering(after_trouble(ACCEPTED)) as url:
        assert score(url=url)["score"] == 1.0


def test_a_grader_that_stays_down_is_no_reward_at_all(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(GraderUnreachable):
        score(url="http://127.0.0.1:9", patience_s=0.3, unscored=0.0)
    assert "no reward: " in caplog.text


def test_what_a_tool_did_is_among_the_numbers() -> None:
    with answering(lambda _: (200, {}, ACCEPTED)) as url:
        extra_info = {TOOL: {"calls": 3, "tool_faults": 1}, "num_turns": 8}
        used = within(lambda: compute_score("any", RIGHT, PROBLEM, extra_info, url=url))
        unused = score(url=url)
    assert (used["rkgrade_calls"], used["rkgrade_tool_faults"]) == (3.0, 1.0)
    assert (unused["rkgrade_calls"], unused["rkgrade_tool_faults"]) == (0.0, 0.0)
    assert list(used) == list(unused)


class Config(Mapping[str, object]):
    """As a trainer's configuration is one: no dict."""

    def __init__(self, fields: dict[str, object]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> object:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def test_fields_of_labels_come_from_the_configuration_or_from_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def keep(one: Asked) -> tuple[int, dict[str, str], object]:
        asked.append(json.loads(one.body))
        return 200, {}, ACCEPTED

    with answering(keep) as url:
        monkeypatch.setenv("RKGRADE_URL", url)
        monkeypatch.setenv("RKGRADE_LABEL", '{"language": "cpp"}')
        score()
        label = Config({"language": "java", "limits": Config({"cpu_s": 3.0}), "scale": (-2.0, 2.0)})
        assert score(label=label)["score"] == 2.0
    assert [one["language"] for one in asked] == ["cpp", "java"]
    assert asked[1]["limits"] == {"cpu_s": 3.0}


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"url": "grader:8000"}, ClientError),
        ({"patience_s": -1}, ClientError),
        ({"label": "{"}, BadLabel),
        ({"label": [1]}, BadLabel),
        ({"label": {"rewards": "r_inf"}}, BadLabel),
        ({"label": {"problem": PROBLEM}}, BadLabel),
        ({"patience_s": "long"}, ClientError),
        ({"unscored": "nan"}, ClientError),
        ({"unscored": True}, ClientError),
        ({"unscored": 1e39}, ClientError),
        ({"patience": 3}, TypeError),
    ],
)
def test_a_setting_that_is_none(arguments: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        score(**arguments)


# ---------------------------------------------------------------------------------------------------------------
# verl's own code

#: Beside verl, which is installed without what it needs to train.
PACKAGES = (
    "torch==2.13.0+cpu", "transformers>=5.9,<5.11", "tensordict==0.10.*", "ray==2.55.*", "hydra-core", "cachetools",
    "codetiming", "datasets", "pillow", "fastapi", "uvicorn", "aiohttp", "requests", "httpx", "pydantic",
    "sandbox-fusion==0.3.7",
)  # fmt: skip
ROLLOUT = Path(__file__).with_name("verl_rollout.py")
CLIENTS = Path(__file__).with_name("sandbox_fusion_clients.py")
TOOL_FILE = ROOT / "examples" / "verl" / "python_tool.yaml"


@pytest.fixture(scope="module")
def verl() -> Path:
    """A Python that has verl 0.9."""
    return python_with("verl", PACKAGES, "verl==0.9.1")


def told_by(python: Path, script: Path, given: str, **environment: str) -> Any:
    done = subprocess.run(
        [str(python), str(script)], input=given, env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-8000:]
    return json.loads(done.stdout.splitlines()[-1])


def calling(code: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': 'python', 'arguments': {'code': code}})}\n</tool_call>"


@pytest.mark.jail
@pytest.mark.trainer
@pytest.mark.timeout(1500)
def test_verls_own_loops_call_the_tool_and_have_their_rewards_from_a_real_grader(url: str, verl: Path) -> None:
    turns = {
        "right": [RIGHT],
        "calls": [calling("print(6 * 7)"), calling("1 / 0"), SMALL_ONLY],
        "no code": [calling("print('a')").replace('"code"', '"source"'), WRONG],
        "nothing": [NOTHING],
    }
    overrides = [
        "reward.custom_reward_function.path=pkg://rl_client.trainers.verl_reward",
        f"+reward.custom_reward_function.reward_kwargs.url={url}",
        "+reward.custom_reward_function.reward_kwargs.label.scale=signed",
        "+reward.custom_reward_function.reward_kwargs.label.format_error=-2.0",
        "reward.num_workers=2",
        "actor_rollout_ref.rollout.name=vllm",
        "actor_rollout_ref.rollout.prompt_length=4096",
        "actor_rollout_ref.rollout.response_length=4096",
        f"actor_rollout_ref.rollout.multi_turn.tool_config_path={TOOL_FILE}",
        "actor_rollout_ref.rollout.multi_turn.max_tool_response_length=4096",
    ]
    down = [
        overrides[0],
        "+reward.custom_reward_function.reward_kwargs.url=http://127.0.0.1:9",
        "+reward.custom_reward_function.reward_kwargs.patience_s=0.5",
    ]
    given = {"turns": turns, "label": json.dumps({"problem": ID}), "overrides": overrides, "down": down}
    told = told_by(verl, ROLLOUT, json.dumps(given), RKGRADE_URL=url)

    assert told["rewards"] == [1.0, -1.0, -1.0, -2.0]
    extra = told["extra"]
    assert (extra["score"], extra["acc"]) == ([1.0, -1.0, -1.0, -2.0], [1.0, 0.0, 0.0, 0.0])
    assert (extra["rkgrade_calls"], extra["rkgrade_tool_faults"]) == ([0.0, 2.0, 1.0, 0.0], [0.0] * 4)
    assert extra["rkgrade_R_2"] == [1.0, 1.0, 0.0, 0.0]
    heard = told["heard"]["calls"]
    assert "<|im_start|>tool\ncompleted. [stdout]\n42\n[/stdout]<|im_end|>" in heard
    assert "<|im_start|>tool\nerror: Exit status 1 [stderr]\nTraceback" in heard
    assert '<|im_start|>tool\nerror: "code" is missing, or no string<|im_end|>' in told["heard"]["no code"]
    assert '"name": "python"' in told["heard"]["right"]
    # What the tool says is nothing to learn.
    assert told["own_tokens"] == [sum(len(turn) + 1 for turn in said) for said in turns.values()]
    assert told["down"] == "GraderUnreachable"


@pytest.mark.jail
@pytest.mark.trainer
@pytest.mark.timeout(1500)
def test_verls_own_sandbox_rewards_and_the_client_of_sandbox_fusion_take_the_grader_for_it(
    url: str, verl: Path
) -> None:
    told = told_by(verl, CLIENTS, url)
    assert told["verl"]["score"] == {
        "right": 1.0,
        "half right": 0.5,
        "no program": 0.0,
        "too slow": 0.25,
        "raises": 0.0,
    }
    assert told["verl"]["by_test"] == {
        "right": [True] * 4,
        "half right": [True, False, False, True],
        "no program": [-2] * 4,
        "too slow": [True, -3, -3, False],
        "raises": [-2] * 4,
        "c++": [True] * 4,
        "no c++": [-4] * 4,
        "function": [True, True],
        "asserts": [True, -2],
    }
    client = told["client"]
    assert client["told"] == client["asked"] == ["success", "raised", "too slow", "no program"]
    assert (client["stdout"], client["files"]) == ("said\n", {"out.bin": "ni\x00", "in.txt": "\x00in"})
