"""From an answer to its reward, with a real grader, and with graders that are down, lost their store, or fail."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx
import pytest

from rl_client import patience
from rl_client.async_client import AsyncGrader
from rl_client.encoded import EncodedProblem
from rl_client.errors import BadLabel, DeadlinePassed, FaultyGrade, GraderUnreachable
from rl_client.labels import parse_label
from rl_client.patience import PATIENCE_S, Patience
from rl_client.rollout import Scored, Scorer
from service.contract import Verdict
from tests.rl_client import doubling
from tests.rl_client.answering import Asked, answering
from tests.rl_client.doubling import ACCEPTED, DOUBLE, FAULT, ID, SMALL_ONLY
from tests.rl_client.results import PROBLEM, graded, provoked, unrun
from tests.serving import Server, serving

T = TypeVar("T")

RIGHT = f"Doubles it.\n{doubling.RIGHT}\n"
BROKEN = "```python\nprint(\n```"
NO_PROGRAM = "I would double it."
TORN = "```python\nprint(2 * int(inp"


def different(count: int) -> list[str]:
    """Right ones, no two of which are the same program."""
    return [RIGHT.replace("print", f"# {number}\nprint") for number in range(count)]


def with_scorer(url: str, work: Callable[[Scorer], Awaitable[T]], *, patience_s: float = 30.0, **options: Any) -> T:
    async def run() -> T:
        async with AsyncGrader(url, patience_s=patience_s) as grader:
            return await work(Scorer(grader, **options))

    return asyncio.run(run())


# ---------------------------------------------------------------------------------------------------------------
# A real grader


@pytest.mark.jail
def test_answers_of_every_kind(url: str) -> None:
    label = {"problem": ID, "reward": "r_k:2", "scale": "signed", "format_error": -2.0, "compile_error": -1.5}
    answers = [RIGHT, SMALL_ONLY, "```python\nprint(0)\n```", BROKEN, NO_PROGRAM, TORN, ""]
    scored = with_scorer(url, lambda scorer: scorer.score_all(answers, [label] * len(answers)))

    assert [one.reward for one in scored] == [1, 1, -1, -1.5, -2, -2, -2]
    assert [one.result.verdict for one in scored[3:]] == ["compile_error", *["format_error"] * 3]
    assert [one.logs()["rkgrade_format_error"] for one in scored] == [0, 0, 0, 0, 1, 1, 1]


@pytest.mark.jail
def test_one_answer_by_labels_of_both_forms_and_by_defaults(url: str) -> None:
    async def work(scorer: Scorer) -> list[float | None]:
        labels = [ID, {"problem": ID, "reward": "r_inf"}, {"problem": ID, "reward": "fraction"}]
        return [(await scorer.score(SMALL_ONLY, label)).reward for label in labels]

    assert with_scorer(url, work, defaults={"reward": "r_k:2"}) == [1, 0, pytest.approx(2 / 3)]


@pytest.mark.jail
@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("sha256:" + "1" * 64, "label.problem: the grader has no sha256:1111"),
        ({"problem": ID, "language": "cobol"}, "label.language: "),
        ({"problem": ID, "time_factor": 100.0, "limits": {"cpu_s": 300.0}}, "label.time_factor: "),
    ],
)
def test_a_label_that_the_grader_cannot_follow(url: str, label: object, words: str) -> None:
    with pytest.raises(BadLabel, match=words):
        with_scorer(url, lambda scorer: scorer.score(RIGHT, label))


@pytest.mark.jail
def test_a_real_grader_that_is_restarted_in_between_loses_nothing(grader: Server, tmp_path: Any) -> None:
    """It is down for some seconds; the answers that were asked for meanwhile come late, and none is 0 or None."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    flags = ("--port", str(port), "--workers", "1", "--languages", "python")

    async def work() -> list[Scored]:
        async with AsyncGrader(url, patience_s=200.0) as client:
            waiting = asyncio.create_task(Scorer(client).score_all(different(8), [ID] * 8))
            await asyncio.sleep(2)
            assert not waiting.done()
            with serving(grader.data_dir, tmp_path / "log", *flags):
                return await waiting

    async def store() -> None:
        async with AsyncGrader(grader.url) as client:
            await client.put_problem(EncodedProblem.of(DOUBLE), again=True)

    asyncio.run(store())
    assert [one.reward for one in asyncio.run(work())] == [1] * 8


# ---------------------------------------------------------------------------------------------------------------
# Graders in trouble


def test_a_grader_that_is_down_for_a_minute_is_still_asked_afterwards() -> None:
    """By default: 300 s, with no more than 38 s between two attempts."""
    now_s = 0.0
    waits: list[float] = []
    patience_left = Patience(PATIENCE_S, clock=lambda: now_s)
    while (wait_s := patience_left.wait_s()) is not None:
        waits.append(wait_s)
        now_s += wait_s
    assert now_s > 60 + 38
    assert max(waits) <= 38


def test_a_grader_that_comes_back_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_DELAY_S", 0.05)
    down_until_s = time.monotonic() + 1.0

    def reply(_: Asked) -> tuple[int, dict[str, str], object]:
        return (200, {}, ACCEPTED) if time.monotonic() > down_until_s else (503, {}, {})

    with answering(reply) as url:
        scored = with_scorer(url, lambda scorer: scorer.score_all(different(20), [PROBLEM] * 20))
    assert [one.reward for one in scored] == [1] * 20


def test_a_grader_that_stays_away_is_an_error_and_no_reward() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

    async def asked(scorer: Scorer) -> None:
        with pytest.raises(GraderUnreachable, match="did not take POST /grade"):
            await scorer.score_all([RIGHT] * 3, [PROBLEM] * 3)
        # Whoever goes on after that can wait again.
        with pytest.raises(DeadlinePassed):
            await scorer.score(RIGHT, PROBLEM, deadline_s=0.7)

    with_scorer(url, asked, patience_s=2)


@pytest.mark.parametrize(("fault", "reward"), [("skip", None), (0.25, 0.25)])
def test_a_fault_of_the_graders_comes_to_what_the_label_says(fault: object, reward: float | None) -> None:
    with answering(lambda _: (200, {}, FAULT)) as url:
        scored = with_scorer(url, lambda scorer: scorer.score(RIGHT, {"problem": PROBLEM, "fault": fault}))
    assert scored.reward == reward
    assert scored.logs()["rkgrade_fault"] == 1


def test_a_fault_is_tried_again_where_the_label_says_so() -> None:
    answers = [FAULT, FAULT, ACCEPTED]
    label = {"problem": PROBLEM, "fault": "retry"}
    with answering(lambda _: (200, {}, answers.pop(0))) as url:
        assert with_scorer(url, lambda scorer: scorer.score(RIGHT, label)).reward == 1
    assert answers == []
    asked: list[Asked] = []

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        asked.append(one)
        return 200, {}, FAULT

    with answering(reply) as url, pytest.raises(FaultyGrade) as faulty:
        with_scorer(url, lambda scorer: scorer.score(RIGHT, label))
    assert len(asked) == 3
    scored = faulty.value.scored
    assert scored is not None
    assert (scored.reward, scored.result.verdict) == (None, Verdict.INTERNAL_ERROR)
    assert scored.why_unrewarded == "the grader failed at this program: internal_error"


def test_a_bad_label_is_told_before_anything_is_graded() -> None:
    asked: list[Asked] = []

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        asked.append(one)
        return 200, {}, ACCEPTED

    with answering(reply) as url:
        with pytest.raises(BadLabel, match=r"label\.problem: "):
            with_scorer(url, lambda scorer: scorer.score_all([RIGHT] * 3, [PROBLEM, "two-sum", PROBLEM]))
        with pytest.raises(ValueError, match="1 answers, and 2 labels"):
            with_scorer(url, lambda scorer: scorer.score_all([RIGHT], [PROBLEM] * 2))
    assert asked == []


@pytest.mark.parametrize("defaults", [{"problem": PROBLEM}, {"rewards": "r_inf"}, {"reward": "r_j"}])
def test_defaults_that_are_none(defaults: dict[str, object]) -> None:
    async def run() -> None:
        async with AsyncGrader("http://127.0.0.1:9") as grader:
            Scorer(grader, defaults=defaults)

    with pytest.raises(BadLabel, match=r"label\.(problem|reward)"):
        asyncio.run(run())


def test_many_at_once_and_no_more_than_there_are_connections() -> None:
    now, most, lock = 0, 0, threading.Lock()

    def reply(_: Asked) -> tuple[int, dict[str, str], object]:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return 200, {}, ACCEPTED

    async def run(url: str) -> list[Scored]:
        async with AsyncGrader(url, connections=4) as grader:
            return await Scorer(grader).score_all(different(60), [PROBLEM] * 60)

    with answering(reply) as url:
        assert [one.reward for one in asyncio.run(run(url))] == [1] * 60
    assert most == 4


# ---------------------------------------------------------------------------------------------------------------
# Equal programs at once


SLOW = "```python\nn = int(input())\nwhile True: pass\n```"


@pytest.mark.jail
def test_equal_programs_of_a_batch_are_graded_once_whatever_stands_around_them(grader: Server, url: str) -> None:
    """Each has its own reward, by its own label, in order."""

    def grades() -> float:
        lines = httpx.get(f"{url}/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("rkgrade_grades_total{"))

    label = {"problem": ID, "limits": {"cpu_s": 0.2}}
    answers = [f"Take {number}.\n{one}\n" for number in range(4) for one in (RIGHT, SLOW, "```\nprint(0)", NO_PROGRAM)]
    labels = [label | {"scale": scale} for scale in ("unit", "signed") for _ in range(8)]
    before = grades()
    scored = with_scorer(url, lambda scorer: scorer.score_all(answers, labels))
    assert [one.reward for one in scored] == [1, 0, 0, 0] * 2 + [1, -1, -1, -1] * 2
    verdicts = ["accepted", "time_limit", "format_error", "format_error"]
    assert [one.result.verdict for one in scored] == verdicts * 4
    # Of what holds no program each answer.
    assert grades() - before == 2 + 8

    # Other limits, another extraction: another grade. One after the other: again.
    before = grades()
    others = [label, label | {"limits": {"cpu_s": 0.3}}, label | {"extraction": "first_fence"}]
    assert [one.reward for one in with_scorer(url, lambda scorer: scorer.score_all([RIGHT] * 3, others))] == [1] * 3

    async def twice(scorer: Scorer) -> None:
        for _ in range(2):
            await scorer.score(RIGHT, label)

    with_scorer(url, twice)
    assert grades() - before == 5


def test_a_fault_at_a_program_is_a_fault_of_all_that_are_equal_and_is_tried_again_for_all_at_once() -> None:
    told = [FAULT, FAULT, ACCEPTED]
    labels: list[object] = [{"problem": PROBLEM, "fault": fault} for fault in ("retry", "retry", "skip", 0.25)]
    with answering(lambda _: (200, {}, told.pop(0))) as url:
        scored = with_scorer(url, lambda scorer: scorer.score_all([RIGHT] * 4, labels))
    assert ([one.reward for one in scored], told) == ([1, 1, None, 0.25], [])

    asked: list[Asked] = []

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        asked.append(one)
        return 200, {}, FAULT

    async def each(scorer: Scorer) -> list[object]:
        return await asyncio.gather(*(scorer.score(RIGHT, labels[0]) for _ in range(8)), return_exceptions=True)

    with answering(reply) as url:
        assert [type(one) for one in with_scorer(url, each)] == [FaultyGrade] * 8
    assert len(asked) == 3


def test_with_a_deadline_each_is_asked_for_by_itself() -> None:
    asked: list[Asked] = []

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        asked.append(one)
        return 200, {}, ACCEPTED

    with answering(reply) as url:
        with_scorer(url, lambda scorer: scorer.score_all([RIGHT] * 3, [PROBLEM] * 3, deadline_s=60))
    assert len(asked) == 3


# ---------------------------------------------------------------------------------------------------------------
# What is logged


def test_logs_are_numbers_under_the_same_names_whatever_happened() -> None:
    label = parse_label(PROBLEM)
    results = [
        graded((4, Verdict.ACCEPTED), (400_000_000, Verdict.TIME_LIMIT)),
        graded((0, Verdict.WRONG_ANSWER)),
        graded((4, Verdict.INTERNAL_ERROR)),
        graded((4, Verdict.INTERNAL_ERROR)).model_copy(update={"tests": (), "groups": (), "rewards": {"R_inf": None}}),
        provoked(4, 40),
        unrun("format_error", 4),
        unrun("compile_error", 4),
    ]
    logs = [Scored(label.reward_of_result()(result), result, label).logs("p_") for result in results]

    assert len({tuple(one) for one in logs}) == 1
    assert all(type(value) is float for one in logs for value in one.values())
    assert all(name.startswith("p_") for name in logs[0])
    assert {name: value for name, value in logs[0].items() if name.startswith("p_R_")} == {
        **{f"p_R_{k}": 1.0 for k in range(1, 8)},
        "p_R_inf": 0.0,
    }
    assert logs[0]["p_first_failure"] == pytest.approx(8.6, abs=0.01)
    assert [one["p_fault"] for one in logs] == [0, 0, 1, 1, 0, 0, 0]
    assert [one["p_provoked"] for one in logs] == [0, 0, 0, 0, 1, 0, 0]
    assert [one["p_rewarded"] for one in logs] == [1, 1, 0, 0, 1, 1, 1]
