"""A thousand rewards as OpenRLHF asks for them: 256 at once, each over a connection of its own, through
`POST /openrlhf/reward`.

    python bench/rewards.py [--quick] [--json FILE]

Answers to 64 problems of 20 tests, no two of them the same text: of ten five are right, two are wrong, two too slow,
and one holds no program. The queue has room for 64, so that most of the 256 find it full and are kept waiting, which
OpenRLHF is not to hear of: it would try four times more, a second apart, and then die. Nothing is asked for twice here.
A reward is lost where the answer is no 200, and none where it holds no number; each is compared with what that answer
must get.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from measure import Report, options, percentile
from rollouts import PROBLEMS, SLOW, WRONG, Task, tasks
from server import Server, serving

from service.descriptors import raise_descriptor_limit

REWARDS = 1000
AT_ONCE = 256
QUEUE = 64
ANSWER_WITHIN_S = 900.0

#: In turn: what a right program has to do before it prints; None where there is no program.
ANSWERS = ("", WRONG["python"], "", SLOW["python"], "", None, WRONG["python"], "", SLOW["python"], "")


@dataclass(frozen=True, slots=True)
class Asked:
    body: bytes
    reward: float


def answers(of: Sequence[Task], ids: Sequence[str], count: int, name: str) -> list[Asked]:
    """`name`: tells its programs from those of other calls."""
    made = []
    for number in range(count):
        place, before = number % len(of), ANSWERS[number % len(ANSWERS)]
        prompt = f"<|im_start|>user\nProblem {place}.<|im_end|>\n<|im_start|>assistant\n"
        said = "I cannot." if before is None else f"```python\n{of[place].python(before)}# {name} {number}\n```"
        request = {"query": [f"{prompt}{said}<|im_end|>"], "prompts": [prompt], "labels": [ids[place]]}
        made.append(Asked(json.dumps(request).encode(), float(before == "")))
    return made


@dataclass(frozen=True, slots=True)
class Outcome:
    wall_s: float
    latency_s: list[float]
    lost: int
    none: int
    wrong: int


def ask(server: Server, asked: Sequence[Asked], at_once: int) -> Outcome:
    def one(of: Asked) -> tuple[float, int, bytes]:
        begun = time.perf_counter()
        try:
            with server.connect(ANSWER_WITHIN_S) as connection:
                status, answer = connection.ask("POST", "/openrlhf/reward", of.body)
        except OSError as error:
            status, answer = 0, str(error).encode()
        return time.perf_counter() - begun, status, answer

    begun = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        came = list(pool.map(one, asked))
    wall_s = time.perf_counter() - begun
    rewards = [json.loads(answer)["rewards"][0] for _, status, answer in came if status == 200]
    expected = [of.reward for of, (_, status, _) in zip(asked, came, strict=True) if status == 200]
    return Outcome(
        wall_s,
        [latency_s for latency_s, _, _ in came],
        sum(status != 200 for _, status, _ in came),
        sum(reward is None for reward in rewards),
        sum(got != want for got, want in zip(rewards, expected, strict=True)),
    )


def main() -> None:
    given = options(__doc__)
    report = Report("rewards", given.quick)
    raise_descriptor_limit()
    count, at_once = (100, 64) if given.quick else (REWARDS, AT_ONCE)
    flags = ("--languages", "python", "--workers", str(len(os.sched_getaffinity(0))), "--queue-size", str(QUEUE))
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as name, serving(Path(name), *flags) as server:
        dice = random.Random(4)
        of = tasks(dice)
        with server.connect() as client:
            ids = [client.store(task.problem(dice)) for task in of]
        ask(server, answers(of, ids, PROBLEMS // 2, "before"), at_once)
        outcome = ask(server, answers(of, ids, count, "counted"), at_once)
    report.table(
        f"{count} rewards, {at_once} at once, a queue of {QUEUE}",
        ("wall s", "rewards/s", "latency s p50", "p99", "most", "lost", "none", "wrong"),
        [
            [
                outcome.wall_s,
                count / outcome.wall_s,
                percentile(outcome.latency_s, 0.5),
                percentile(outcome.latency_s, 0.99),
                max(outcome.latency_s),
                outcome.lost,
                outcome.none,
                outcome.wrong,
            ]
        ],
    )
    for what, value in (("lost", outcome.lost), ("none", outcome.none), ("wrong", outcome.wrong)):
        report.goal(f"rewards {what}", value, 0)
    report.emit(given.json)


if __name__ == "__main__":
    main()
