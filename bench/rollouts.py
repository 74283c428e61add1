"""Bursts as a trainer sends them, one for each step: in-process, and on Redis with 1, 2 and 4 workers.

    python bench/rollouts.py [--quick] [--json FILE]

A burst is 1,024 submissions, all in flight at once, 16 for each of 64 problems of 20 tests: a fifth too slow, a
twentieth hostile, of the rest one half right and one half wrong; one in ten of all but the hostile ones in C++. No
two programs are the same text, so that none is known from before. They stop at their first failure, as rewards R_k need
no more, and each verdict is compared with what that program must get, test for test.

Starts `rkgrade serve` by itself, and then a Redis with a `rkgrade serve` and `rkgrade worker`s on it, all on this
machine and its cores. One `rkgrade worker` has no more workers than there are cores, so four on two cores are two of
those. Needs redis-server.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import on_redis
from measure import Cell, Cost, CpuAccount, Report, options, percentile
from mix import FLOOD, FORK_BOMB, LITTER, MEMORY_BOMB, ORPHAN
from server import Server, serving

from service.descriptors import raise_descriptor_limit

SUBMISSIONS = 1024
PROBLEMS = 64
TOO_SLOW = 0.20
HOSTILE = 0.05
CPP = 0.10

#: For programs that need some milliseconds, or for ever.
CPU_S = 0.1

#: How many numbers there are in each test: programs that take cubic time are good for the first fourteen.
SIZES = (1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 2000, 2000, 2000, 2000, 2000, 2000)

ANSWER_WITHIN_S = 900.0
LOOK_EVERY_S = 0.25


# ---------------------------------------------------------------------------------------------------------------
# Problems and programs


@dataclass(frozen=True, slots=True)
class Task:
    """Print the sum over all x of `(factor * x + shift) % modulus`."""

    factor: int
    shift: int
    modulus: int

    def value(self, numbers: Sequence[int]) -> int:
        return sum((self.factor * x + self.shift) % self.modulus for x in numbers)

    def problem(self, numbers: random.Random) -> dict[str, Any]:
        tests = []
        for size in SIZES:
            given = [numbers.randrange(1000, 10_000) for _ in range(size)]
            tests.append({"input": f"{size}\n{' '.join(map(str, given))}\n", "output": f"{self.value(given)}\n"})
        return {"kind": "stdio", "tests": tests, "limits": {"cpu_s": CPU_S}}

    def python(self, before_printing: str = "") -> str:
        return (
            "n = int(input())\n"
            f"total = sum(({self.factor} * int(x) + {self.shift}) % {self.modulus} for x in input().split())\n"
            f"{before_printing}print(total)\n"
        )

    def cpp(self, before_printing: str = "") -> str:
        return (
            '#include <cstdio>\nint main() {\n    long n, x, total = 0;\n    if (scanf("%ld", &n) != 1) return 1;\n'
            f'    while (scanf("%ld", &x) == 1) total += ({self.factor} * x + {self.shift}) % {self.modulus};\n'
            f'{before_printing}    printf("%ld\\n", total);\n}}\n'
        )


#: By language: what a right program has to do before it prints, to be wrong for more than four numbers; to be too slow.
WRONG = {"python": "total += n > 4\n", "cpp": "    total += n > 4;\n"}
SLOW = {
    "python": "for _ in range(n**3):\n    pass\n",
    "cpp": "    for (volatile long i = 0; i < n * n * n; i = i + 1);\n",
}

RIGHT_VERDICTS = ("accepted",) * len(SIZES)


def failing(verdict: str, *, after: int) -> tuple[str, ...]:
    return ("accepted",) * after + (verdict,) + ("skipped",) * (len(SIZES) - after - 1)


LATE = {
    "wrong": failing("wrong_answer", after=sum(size <= 4 for size in SIZES)),
    "slow": failing("time_limit", after=sum(size < 1000 for size in SIZES)),
}


@dataclass(frozen=True, slots=True)
class Attack:
    source: str
    verdicts: tuple[str, ...]
    """Of its tests."""
    limits: dict[str, float | int]


#: The last two print something, which is no sum.
ATTACKS = (
    Attack(MEMORY_BOMB, failing("memory_limit", after=0), {"memory_mb": 32}),
    Attack(FLOOD, failing("output_limit", after=0), {"output_mb": 1}),
    Attack(FORK_BOMB, failing("time_limit", after=0), {"processes": 16}),
    Attack(ORPHAN, failing("wrong_answer", after=0), {}),
    Attack(LITTER, failing("wrong_answer", after=0), {}),
)


@dataclass(frozen=True, slots=True)
class Submission:
    body: bytes
    verdicts: tuple[str, ...]


def tasks(dice: random.Random) -> list[Task]:
    return [Task(dice.randrange(2, 100), dice.randrange(100), dice.randrange(1000, 10_000)) for _ in range(PROBLEMS)]


def burst(of: Sequence[Task], ids: Sequence[str], dice: random.Random, count: int, name: str) -> list[Submission]:
    """`name`: tells its programs from those of other bursts."""
    slow, hostile = round(TOO_SLOW * count), round(HOSTILE * count)
    kinds = ["slow"] * slow + ["hostile"] * hostile
    kinds += ["right", "wrong"] * ((count - len(kinds)) // 2)
    kinds += ["right"] * (count - len(kinds))
    dice.shuffle(kinds)
    made = []
    for number, kind in enumerate(kinds):
        language = "cpp" if dice.random() < CPP else "python"
        request: dict[str, Any] = {"problem": ids[number % len(of)], "language": language, "stop": "first_failure"}
        if kind == "hostile":
            attack = ATTACKS[number % len(ATTACKS)]
            language, source, verdicts = "python", attack.source, attack.verdicts
            request |= {"language": language, "limits": attack.limits}
        else:
            task = of[number % len(of)]
            more = {"right": "", "wrong": WRONG[language], "slow": SLOW[language]}[kind]
            source = task.cpp(more) if language == "cpp" else task.python(more)
            verdicts = LATE.get(kind, RIGHT_VERDICTS)
        request["source"] = f"{source}{'//' if language == 'cpp' else '#'} {name} {number}\n"
        made.append(Submission(json.dumps(request).encode(), verdicts))
    return made


# ---------------------------------------------------------------------------------------------------------------
# Sending


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a burst."""

    cost: Cost
    """Of it all."""
    tests: int
    """That were run."""
    latency_s: list[float]
    queue_age_s: float
    """The most that was seen of the metric."""
    reruns: int
    wrong: list[str]


class QueueAge:
    """Looks at the metric while it is entered."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.most_s = 0.0

    def __enter__(self) -> QueueAge:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            self.most_s = max(self.most_s, self._server.metric("rkgrade_queue_age_seconds"))


def send(server: Server, account: CpuAccount, submissions: Sequence[Submission]) -> Outcome:
    """All at once, over a connection each. Raises ServerFailed where one is not answered with a result."""
    answers: list[tuple[float, bytes]] = []

    def one(submission: Submission) -> tuple[float, bytes]:
        begun = time.perf_counter()
        with server.connect(ANSWER_WITHIN_S) as connection:
            answer = connection.grade_raw(submission.body)
        return time.perf_counter() - begun, answer

    with ThreadPoolExecutor(len(submissions)) as pool, QueueAge(server) as queue_age:
        cost = account.cost(lambda: answers.extend(pool.map(one, submissions)))
    results = [json.loads(answer) for _, answer in answers]
    return Outcome(
        cost,
        sum(test["verdict"] != "skipped" for result in results for test in result["tests"]),
        [latency_s for latency_s, _ in answers],
        queue_age.most_s,
        sum(test["reruns"] for result in results for test in result["tests"]),
        [
            f"{Counter(got)} instead of {Counter(submission.verdicts)}"
            for submission, result in zip(submissions, results, strict=True)
            if (got := tuple(test["verdict"] for test in result["tests"])) != submission.verdicts
        ],
    )


# ---------------------------------------------------------------------------------------------------------------
# Sides


@dataclass(frozen=True, slots=True)
class Place:
    """Where everything of this benchmark lies."""

    directory: Path
    queue_size: int

    def scratch(self, name: str) -> Path:
        made = self.directory / name.replace(" ", "-").replace(",", "")
        made.mkdir()
        return made

    @property
    def data_dir(self) -> Path:
        return self.directory / "data"

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--languages", "python,cpp", "--queue-size", str(self.queue_size))


@contextlib.contextmanager
def in_process(place: Place, name: str, workers: int) -> Iterator[Server]:
    flags = (*place.flags, "--workers", str(workers))
    with serving(place.scratch(name), *flags, data_dir=place.data_dir) as server:
        yield server


@contextlib.contextmanager
def with_workers(place: Place, name: str, workers: int) -> Iterator[Server]:
    cores = len(os.sched_getaffinity(0))
    hosts = [min(cores, workers - taken) for taken in range(0, workers, cores)]
    with on_redis(place.scratch(name), place.data_dir, hosts, flags=place.flags) as server:
        yield server


def main() -> None:
    given = options(__doc__)
    report = Report("rollouts", given.quick)
    raise_descriptor_limit()
    cores = len(os.sched_getaffinity(0))
    submissions = 128 if given.quick else SUBMISSIONS
    outcomes: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as name, CpuAccount() as account:
        place = Place(Path(name), queue_size=submissions)
        place.directory.chmod(0o755)
        sides = {f"in-process, {cores} workers": in_process(place, "alone", cores)}
        for workers in (1, 2, 4):
            sides[f"on Redis, {workers} worker{'s' * (workers > 1)}"] = with_workers(place, f"redis-{workers}", workers)
        for side, started in sides.items():
            dice = random.Random(4)
            of = tasks(dice)
            with started as server:
                with server.connect() as client:
                    ids = [client.store(task.problem(dice)) for task in of]
                # Cells are up by then.
                send(server, account, burst(of, ids, dice, submissions // 32, f"{side}, before"))
                outcomes[side] = send(server, account, burst(of, ids, dice, submissions, side))
    tabulate(report, outcomes, submissions)
    report.emit(given.json)


def tabulate(report: Report, outcomes: dict[str, Outcome], submissions: int) -> None:
    first = next(iter(outcomes.values()))
    rows: list[list[Cell]] = []
    for side, outcome in outcomes.items():
        tests_a_s = outcome.tests / outcome.cost.wall_ms * 1e3
        rows.append(
            [
                side,
                outcome.cost.wall_ms / 1e3,
                tests_a_s,
                tests_a_s / (first.tests / first.cost.wall_ms * 1e3),
                outcome.cost.per(outcome.tests).cpu_ms,
                percentile(outcome.latency_s, 0.5),
                percentile(outcome.latency_s, 0.99),
                outcome.queue_age_s,
                outcome.reruns,
                len(outcome.wrong),
            ]
        )
    columns = (
        "a burst",
        "wall s",
        "tests/s",
        "of in-process",
        "CPU ms per test",
        "latency s p50",
        "p99",
        "queue age s, most",
        "reruns",
        "wrong",
    )
    report.table(f"{submissions} submissions at once, {first.tests} tests run", columns, rows)
    for outcome in outcomes.values():
        for line in outcome.wrong:
            print(line)
    report.goal("wrong verdicts", sum(len(outcome.wrong) for outcome in outcomes.values()), 0)


if __name__ == "__main__":
    main()
