"""`POST /openrlhf/reward`: rewards as OpenRLHF asks for them, from both engines, whatever the queue and the labels."""

from __future__ import annotations

import asyncio
import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any

import httpx
import psutil
import pytest

from service.contract import PythonChecker
from tests.conftest import Serve
from tests.rl_client import doubling
from tests.rl_client.doubling import DOUBLE, stored
from tests.serving import Server

pytestmark = pytest.mark.jail

#: Fails on whatever it is given, the expected answer as well.
BROKEN = DOUBLE.model_copy(update={"checker": PythonChecker(type="python", source="raise SystemExit(9)")})

PROMPT = "<|im_start|>user\nDouble a number.<|im_end|>\n<|im_start|>assistant\n"
RIGHT, SMALL_ONLY, NOTHING = (
    f"{answer}<|im_end|>" for answer in (doubling.RIGHT, doubling.SMALL_ONLY, doubling.NOTHING)
)


def body(*answers: str, label: object) -> dict[str, Any]:
    count = len(answers)
    return {"query": [PROMPT + one for one in answers], "prompts": [PROMPT] * count, "labels": [label] * count}


def ask(url: str, sent: object) -> httpx.Response:
    return httpx.post(f"{url}/openrlhf/reward", json=sent, timeout=120)


def test_answers_have_rewards_scores_and_logs(grader_url: str) -> None:
    label = {"problem": stored(grader_url, DOUBLE), "reward": "r_k:2", "scale": "signed", "format_error": -2.0}
    answer = ask(grader_url, body(RIGHT, SMALL_ONLY, NOTHING, label=label))

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    told = answer.json()
    assert list(told) == ["rewards", "scores", "extra_logs"]
    assert (told["rewards"], told["scores"]) == ([1.0, 1.0, -2.0], [1.0, 1.0, 0.0])
    assert told["extra_logs"]["rkgrade_R_inf"] == [1.0, 0.0, 0.0]
    assert told["extra_logs"]["rkgrade_format_error"] == [0.0, 0.0, 1.0]
    alone = ask(grader_url, body(NOTHING, label=label["problem"])).json()
    assert alone["rewards"] == [0.0]
    assert list(alone["extra_logs"]) == list(told["extra_logs"])


MANY = {f"f{number}": 0 for number in range(300_000)}


@pytest.mark.parametrize(
    ("label", "field", "said"),
    [
        (MANY, "labels[0]", "300,000 fields"),
        ({"limits": MANY}, "labels[0].limits", "300,000 fields"),
        # As a text it is one value of the body's, whatever it holds.
        (json.dumps(MANY), "labels[0]", "4,088,890 characters"),
        (
            {"problem": "sha256:" + "0" * 64, "reward": "ladder:" + "1=0.1," * 300_000},
            "labels[0].reward",
            "at most 1000",
        ),
    ],
    ids=["fields", "limits", "text", "reward"],
)
def test_a_label_of_very_much_is_refused_before_it_is_looked_at(
    grader: Server, label: object, field: str, said: str
) -> None:
    """Labels are read where all requests wait: the worst of these took seconds of everybody's time."""
    api = psutil.Process(grader.process.pid)
    before = sum(api.cpu_times()[:2])
    answer = ask(grader.url, body(RIGHT, label=label))
    assert (answer.status_code, answer.json()["field"], said in answer.json()["detail"]) == (422, field, True)
    assert sum(api.cpu_times()[:2]) - before < 1.5


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"prompts": []}, 422, "prompts"),
        ({"labels": [1, 2]}, 422, "labels"),
        ({"query": []}, 422, "query"),
        ({"query": ["no prompt"]}, 422, "query[0]"),
        ({"labels": [None]}, 422, "labels[0]"),
        ({"labels": ["two-sum"]}, 422, "labels[0].problem"),
        ({"labels": ["sha256:" + "0" * 64]}, 404, "labels[0].problem"),
        ({"reward": "r_j"}, 422, "labels[0].reward"),
        ({"language": "cobol"}, 422, "labels[0].language"),
        ({"reward": "r_k:1", "problem": "no short test"}, 422, "labels[0].empty"),
    ],
)
def test_a_mistake_names_its_field(grader_url: str, change: dict[str, Any], status: int, field: str) -> None:
    label: dict[str, Any] = {"problem": stored(grader_url, DOUBLE)}
    sent = body(RIGHT, label=label)
    for name, value in change.items():
        (sent if name in sent else label)[name] = value
    if label["problem"] == "no short test":
        label["problem"] = stored(grader_url, DOUBLE.model_copy(update={"tests": DOUBLE.tests[2:]}))

    answer = ask(grader_url, sent)

    assert (answer.status_code, answer.json()["field"]) == (status, field), answer.text


def test_a_fault_of_the_graders_is_an_error_unless_the_label_says_what_it_is_worth(grader_url: str) -> None:
    problem = stored(grader_url, BROKEN)
    answer = ask(grader_url, body(RIGHT, label=problem))
    assert (answer.status_code, "the grader failed at this program: checker_error" in answer.text) == (500, True)
    assert ask(grader_url, body(RIGHT, label={"problem": problem, "fault": 0.25})).json()["rewards"] == [0.25]


def many(url: str, count: int, at_once: int, label: object) -> list[tuple[int, list[float] | None]]:
    """Status and rewards of each, asked as OpenRLHF does: over a connection of its own, one sample in each."""

    def one(number: int) -> tuple[int, list[float] | None]:
        sent = json.dumps(body(SMALL_ONLY if number % 2 else RIGHT, label=label))
        # httpx takes longer to make so many connections than the grader to answer.
        with contextlib.closing(HTTPConnection(url.removeprefix("http://"), timeout=180)) as connection:
            connection.request("POST", "/openrlhf/reward", sent, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read()).get("rewards")

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, range(count)))


def test_a_thousand_rewards_256_at_once_are_all_there(grader_url: str) -> None:
    answers = many(grader_url, 1000, 256, stored(grader_url, DOUBLE))
    assert answers == [(200, [1.0]), (200, [0.0])] * 500


def test_a_full_queue_is_waited_for(serve: Serve) -> None:
    with serve("--workers", "1", "--queue-size", "1", "--languages", "python") as server:
        answers = many(server.url, 60, 60, stored(server.url, DOUBLE))
    assert answers == [(200, [1.0]), (200, [0.0])] * 30


def test_rewards_and_tool_calls_that_wait_for_room_are_let_in_in_order(serve: Serve) -> None:
    slow = "import time\ntime.sleep(0.5)\nprint(2 * int(input()))"
    ended: list[int] = []

    async def all_of_them(url: str, label: object) -> None:
        async def one(client: httpx.AsyncClient, number: int) -> None:
            # Each comes after the one before it, while that one or an earlier one still runs.
            await asyncio.sleep(0.15 * number)
            if number % 3 == 1:
                sent = {"language": "python", "code": slow, "stdin": "4"}
                told = await client.post(f"{url}/run_code", json=sent, headers={"X-Deadline-S": "120"})
                assert told.json()["run_result"]["stdout"] == "8\n"
            else:
                sent = body(f"```python\n# {number}\n{slow}\n```", label=label)
                told = await client.post(f"{url}/openrlhf/reward", json=sent)
                assert told.json()["rewards"] == [1.0]
            ended.append(number)

        async with httpx.AsyncClient(timeout=180) as client:
            await asyncio.gather(*(one(client, number) for number in range(12)))

    with serve("--workers", "1", "--queue-size", "1", "--languages", "python") as server:
        problem = DOUBLE.model_copy(update={"tests": DOUBLE.tests[:1]})
        asyncio.run(all_of_them(server.url, stored(server.url, problem)))
    assert ended == list(range(12))
