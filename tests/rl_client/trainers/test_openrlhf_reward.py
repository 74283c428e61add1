"""The reward file for OpenRLHF: answers out of queries, rewards that are always numbers, OpenRLHF's own executor."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rl_client.errors import BadLabel, ClientError
from rl_client.trainers import openrlhf_reward
from rl_client.trainers.openrlhf import answer_of
from rl_client.trainers.openrlhf_endpoint import rewardable
from rl_client.trainers.openrlhf_reward import close, reward_func
from rl_client.trainers.settings import Unscored
from service.contract import GradeResult
from service.rewarding import Unrewardable
from tests.rl_client import doubling
from tests.rl_client.answering import after_trouble, answering
from tests.rl_client.doubling import ACCEPTED, EMPTY, FAULT, ID, UNREWARDED
from tests.rl_client.results import PROBLEM
from tests.rl_client.trainers.openrlhf_python import ROOT, openrlhf_python

PROMPT = (
    "<|im_start|>user\nDouble a number. An example:\n```python\nprint(2 * int(input()))\n```\n<|im_end|>\n"
    "<|im_start|>assistant\n"
)
RIGHT = f"{doubling.RIGHT}<|im_end|>\n"
SMALL_ONLY, WRONG, NOTHING = (
    f"{answer}<|im_end|>" for answer in (doubling.SMALL_ONLY, doubling.WRONG, doubling.NOTHING)
)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Nothing is left of the test."""
    yield
    close()


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        (PROMPT + "yes<|im_end|>\n", "yes"),
        (PROMPT + "yes</s></s>", "yes"),
        (PROMPT + "yes<｜end▁of▁sentence｜>", "yes"),
        (PROMPT + "a <|b|> c", "a <|b|> c"),
        (PROMPT, ""),
        (PROMPT[20:] + "yes<|endoftext|>", "yes"),
        (PROMPT[-30:] + "yes", "yes"),
    ],
)
def test_the_answer_is_what_stands_behind_the_prompt(query: str, answer: str) -> None:
    assert answer_of(query, PROMPT) == answer


@pytest.mark.parametrize("repeated", ["\n", "<|end|>"], ids=["lines", "tokens"])
def test_a_model_that_repeats_itself_holds_up_nobody(repeated: str) -> None:
    said = "yes" + 100_000 * repeated
    assert answer_of(PROMPT + said + "no", PROMPT) == said + "no"
    assert answer_of(PROMPT + said, PROMPT) == "yes"


def test_thoughts_that_the_prompt_opened_are_no_answer() -> None:
    prompt = PROMPT + "<think>\n"
    assert answer_of(prompt + "a draft<|im_end|>", prompt) == "<think>a draft"
    assert answer_of(prompt + "a draft</think>yes", prompt) == "<think>a draft</think>yes"


def test_a_query_without_its_prompt_is_no_answer_to_anything() -> None:
    with pytest.raises(ClientError, match="the prompt is not in the query"):
        answer_of("```python\nprint(1)\n```", PROMPT)


@pytest.mark.jail
def test_answers_in_many_threads(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKGRADE_URL", url)
    monkeypatch.setenv("RKGRADE_LABEL", json.dumps({"reward": "r_k:2", "scale": "signed", "format_error": -2.0}))
    answers = [RIGHT, SMALL_ONLY, WRONG, NOTHING] * 16

    def ask(answer: str) -> dict[str, object]:
        return reward_func([PROMPT + answer], [PROMPT], [ID])

    with ThreadPoolExecutor(32) as threads:
        told = list(threads.map(ask, answers))
    assert [one["rewards"] for one in told] == [1.0, 1.0, -1.0, -2.0] * 16
    assert [one["scores"] for one in told] == [1.0, 1.0, 0.0, 0.0] * 16
    logs = [one["extra_logs"] for one in told]
    assert len({tuple(one) for one in logs}) == 1  # type: ignore[arg-type]
    assert [one["rkgrade_R_inf"] for one in logs] == [1.0, 0.0, 0.0, 0.0] * 16  # type: ignore[index]


@pytest.mark.parametrize(("body", "fields", "why"), UNREWARDED)
def test_what_has_no_reward_is_an_error_unless_somebody_says_what_it_is_worth(
    body: object, fields: dict[str, object], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    label = {"problem": PROBLEM, **fields}
    with answering(lambda _: (200, {}, body)) as url:
        monkeypatch.setenv("RKGRADE_URL", url)
        with pytest.raises(Unscored, match=why):
            reward_func([PROMPT + RIGHT], [PROMPT], [label])
        close()
        monkeypatch.setenv("RKGRADE_UNSCORED", "-0.25")
        told = reward_func([PROMPT + RIGHT], [PROMPT], [label])
    assert (told["rewards"], told["scores"]) == (-0.25, 0.0)
    assert (told["extra_logs"]["rkgrade_rewarded"], told["extra_logs"]["rkgrade_fault"]) == (0.0, float(body is FAULT))


def test_a_grader_that_is_down_for_a_while_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(after_trouble(ACCEPTED)) as url:
        monkeypatch.setenv("RKGRADE_URL", url)
        assert reward_func([PROMPT + RIGHT], [PROMPT], [PROBLEM])["rewards"] == 1.0


@pytest.mark.parametrize(
    ("result", "fields", "field", "why"),
    [
        (FAULT, {}, None, "the grader failed at this program: internal_error"),
        (FAULT, {"fault": "retry"}, None, "the grader failed at this program: internal_error"),
        (EMPTY, {"reward": "r_k:2"}, "empty", "r_k:2 has no tests here: say what that comes to"),
    ],
)
def test_the_service_is_told_why_there_is_no_reward(
    result: dict[str, object], fields: dict[str, object], field: str | None, why: str
) -> None:
    answer = rewardable(PROMPT + RIGHT, PROMPT, {"problem": PROBLEM, **fields})
    with pytest.raises(Unrewardable) as error:
        answer.rewarded(GradeResult.model_validate(result))
    assert (error.value.field, error.value.reason) == (field, why)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("RKGRADE_URL", "grader:8000", ClientError),
        ("RKGRADE_TOKEN", "two words", ClientError),
        ("RKGRADE_LABEL", "{", BadLabel),
        ("RKGRADE_LABEL", "[" * 100_000, BadLabel),
        ("RKGRADE_LABEL", "[]", BadLabel),
        ("RKGRADE_LABEL", '{"rewards": "r_inf"}', BadLabel),
        ("RKGRADE_PATIENCE_S", "long", ClientError),
        ("RKGRADE_PATIENCE_S", "-1", ClientError),
        ("RKGRADE_UNSCORED", "nan", ClientError),
    ],
)
def test_a_setting_that_is_none(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, value: str, kind: type[Exception]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(kind) as error:
        reward_func([PROMPT + RIGHT], [PROMPT], [ID])
    assert caplog.messages == [f"no reward: {error.value}"]
    if kind is ClientError:
        assert str(error.value).startswith(name)


def test_an_answer_that_no_grader_takes_is_told_of_at_its_query() -> None:
    with pytest.raises(Unrewardable, match="String should have at most 16777216 characters") as error:
        rewardable(PROMPT + "x" * 16_777_217, PROMPT, ID)
    assert error.value.field == "query"


def test_whatever_else_ends_training_is_in_the_log_too(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match="unpack"):
        reward_func([PROMPT + RIGHT] * 2, [PROMPT] * 2, [ID] * 2)
    assert "no reward: " in caplog.text
    assert "Traceback" in caplog.text


def test_speed_rewards_have_scores_from_0_to_1(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(lambda _: (200, {}, ACCEPTED)) as url:
        monkeypatch.setenv("RKGRADE_URL", url)
        told = reward_func([PROMPT + RIGHT], [PROMPT], [{"problem": PROBLEM, "reward": "collapsed:0.04"}])
    assert told["rewards"] == pytest.approx(0.5)
    assert told["scores"] == pytest.approx(0.75)


# ---------------------------------------------------------------------------------------------------------------
# OpenRLHF's own code


@pytest.fixture(scope="module")
def openrlhf() -> Path:
    return openrlhf_python()


EXECUTOR = Path(__file__).with_name("openrlhf_executor.py")


@pytest.mark.jail
@pytest.mark.trainer
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", ["file", "url"])
def test_openrlhfs_own_executor_has_its_rewards_from_a_real_grader(url: str, openrlhf: Path, way: str) -> None:
    environment = {**os.environ, "RKGRADE_URL": url, "PYTHONPATH": str(ROOT)}
    given = {
        "reward": openrlhf_reward.__file__ if way == "file" else f"{url}/openrlhf/reward",
        "prompt": PROMPT,
        "answers": [RIGHT, SMALL_ONLY, NOTHING],
        "label": json.dumps({"problem": ID, "scale": "signed"}),
    }
    done = subprocess.run(
        [str(openrlhf), str(EXECUTOR)], input=json.dumps(given), env=environment,
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # As OpenRLHF's Experience code merges them and takes them apart.
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "rewards": [1.0, -1.0, -1.0],
        "scores": [1.0, 0.0, 0.0],
        "format_error": [0.0, 0.0, 1.0],
        "apart": 3,
    }
