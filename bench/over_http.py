"""What the service adds to the judge, what it delivers under load, and whether load makes it unjust.

    python bench/over_http.py [--quick] [--json FILE]

Starts `rkgrade serve` on a free loopback port with a temporary data directory. Clients are threads of this process,
on the same cores: their CPU time is in the account too.

1. One test, one grade at a time, in turn with the same grade directly through a judge in another process; a pause
   after each, so that both find the cell that was started meanwhile.
2. Grades of 20 tests, stored problem, at 1, 4 and 16 in flight, in turn with a judge alone on one core.
3. 200 programs of 0.5 CPU-s each under a limit of 2 s, four times as many in flight as there are cores.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import Cell, Cost, CpuAccount, Report, median, options, percentile, ratio, rounds
from server import Server, serving
from trivial import SLOT, SOURCES, NotAccepted, problem

from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from sandbox.problem import Submission
from sandbox.verdicts import Verdict

#: Long enough for the next cell to come up.
PAUSE_S = 0.2

CONCURRENCY = (1, 4, 16)

LIMIT_CPU_S = 2.0
WORK_CPU_S = 0.5
WORK_SOURCE = "n = int(input())\nx = 1\nfor _ in range(n):\n    x = x * 48271 % 2147483647\nprint(x)\n"
#: Bounds the third part; it needs 50 s of two cores.
WORK_WITHIN_S = 400.0

_judge: Judge


def trivial_problem(tests: int) -> dict[str, Any]:
    return {
        "kind": "stdio",
        "tests": [{"input": f"{index} {index + 1}\n", "output": f"{2 * index + 1}\n"} for index in range(tests)],
    }


def request(identifier: str, language: str, source: str, **more: object) -> bytes:
    return json.dumps({"problem": identifier, "language": language, "source": source, **more}).encode()


# ---------------------------------------------------------------------------------------------------------------
# The judge without the service, in a process of its own


def open_judge(data_dir: Path) -> None:
    global _judge
    _judge = Judge(SandboxConfig(data_dir=data_dir), SLOT, max(os.sched_getaffinity(0)))
    _judge.warm()


def close_judge() -> None:
    _judge.close()


def direct_ms(language: str, tests: int, count: int) -> list[float]:
    """Wall time of each of `count` grades, as a worker does them: the next cell is started after each."""
    of = problem(tests)
    found = []
    for _ in range(count):
        begun = time.perf_counter()
        judgement = _judge.judge(Submission(of, language, SOURCES[language].encode()))
        found.append((time.perf_counter() - begun) * 1e3)
        if any(test.verdict is not Verdict.ACCEPTED for test in judgement.tests):
            raise NotAccepted(f"{language}, directly")
        _judge.warm()
    return found


# ---------------------------------------------------------------------------------------------------------------
# 1. One test


def one_test(report: Report, server: Server, direct: ProcessPoolExecutor, count: int) -> None:
    rows: list[list[Cell]] = []
    with server.connect() as client:
        identifier = client.store(trivial_problem(1))
        for language, source in SOURCES.items():
            body = request(identifier, language, source)
            over_http, directly, own = [], [], []
            for number in range(count + 2):
                begun = time.perf_counter()
                answer = client.grade_raw(body)
                http_ms = (time.perf_counter() - begun) * 1e3
                time.sleep(PAUSE_S)
                judge_ms = direct.submit(direct_ms, language, 1, 1).result()[0]
                time.sleep(PAUSE_S)
                result = json.loads(answer)
                if result["verdict"] != "accepted":
                    raise NotAccepted(f"{language}: {result['verdict']}")
                if number < 2:
                    continue  # Compiled, loaded, connected.
                timing = result["timing"]
                over_http.append(http_ms)
                directly.append(judge_ms)
                own.append(http_ms - (timing["compile_s"] + timing["run_s"]) * 1e3)
            overhead = statistics.median(over_http) - statistics.median(directly)
            row: list[Cell] = [language]
            for values in (over_http, directly, own):
                row += [percentile(values, 0.5), percentile(values, 0.99)]
            rows.append([*row, overhead])
            report.goal(f"overhead of HTTP and queue, {language}, p50", overhead, 5.0, " ms")
    columns = ("ms", "HTTP p50", "p99", "judge p50", "p99", "all but the judge p50", "p99", "HTTP - judge, p50")
    report.table(f"A one-test grade, {count} of each in turn, warm cell", columns, rows)


# ---------------------------------------------------------------------------------------------------------------
# 2. Twenty tests


@dataclass
class Flood:
    """A number of equal grades, so many in flight."""

    server: Server
    account: CpuAccount
    body: bytes
    in_flight: int
    grades: int
    tests: int
    grade_ms: list[float]

    def __call__(self) -> Cost:
        """Cost of one test. Raises NotAccepted."""
        left = itertools.count()

        def client() -> list[bytes]:
            answers = []
            with self.server.connect() as connection:
                while next(left) < self.grades:
                    begun = time.perf_counter()
                    answers.append(connection.grade_raw(self.body))
                    self.grade_ms.append((time.perf_counter() - begun) * 1e3)
            return answers

        answers: list[bytes] = []

        def all_clients() -> None:
            with ThreadPoolExecutor(self.in_flight) as pool:
                for future in [pool.submit(client) for _ in range(self.in_flight)]:
                    answers.extend(future.result())

        cost = self.account.cost(all_clients)
        verdicts = Counter(json.loads(answer)["verdict"] for answer in answers)
        if verdicts != {"accepted": self.grades}:
            raise NotAccepted(str(verdicts))
        return cost.per(self.grades * self.tests)


def twenty_tests(
    report: Report, server: Server, account: CpuAccount, direct: ProcessPoolExecutor, grades: int, count: int
) -> None:
    tests = 20
    with server.connect() as client:
        identifier = client.store(trivial_problem(tests))
    for language, source in SOURCES.items():
        body = request(identifier, language, source)
        floods = {
            f"{in_flight} in flight": Flood(server, account, body, in_flight, grades, tests, [])
            for in_flight in CONCURRENCY
        }
        alone = "judge alone, one core"
        sides: dict[str, Callable[[], Cost]] = {
            alone: lambda language=language: account.cost(  # type: ignore[misc]
                lambda: direct.submit(direct_ms, language, tests, grades // 2).result()
            ).per(grades // 2 * tests)
        }
        costs = rounds({**sides, **floods}, count)
        rows: list[list[Cell]] = []
        for name, of in costs.items():
            middle = median(of)
            row: list[Cell] = [name, 1000 / middle.wall_ms, 1 / ratio(of, costs[alone]).wall, middle.cpu_ms]
            if name in floods:
                row += [percentile(floods[name].grade_ms, 0.5), percentile(floods[name].grade_ms, 0.99)]
            else:
                row += [None, None]
            rows.append(row)
        columns = (language, "tests/s", "of one judge", "CPU ms per test", "grade ms p50", "p99")
        report.table(f"Grades of {tests} tests, {grades} in each of {count} rounds", columns, rows)


# ---------------------------------------------------------------------------------------------------------------
# 3. More programs than cores


def last_value(steps: int) -> int:
    x = 1
    for _ in range(steps):
        x = x * 48271 % 2147483647
    return x


def work(identifier_of: Callable[[dict[str, Any]], str], steps: int) -> bytes:
    tests = [{"input": f"{steps}\n", "output": f"{last_value(steps)}\n"}]
    identifier = identifier_of({"kind": "stdio", "tests": tests, "limits": {"cpu_s": LIMIT_CPU_S}})
    return request(identifier, "python", WORK_SOURCE)


def oversubscribed(report: Report, server: Server, count: int) -> None:
    in_flight = 4 * len(os.sched_getaffinity(0))
    with server.connect() as client:
        steps = 1_000_000
        trial = client.grade(work(client.store, steps))["tests"][0]["cpu_s"]
        body = work(client.store, int(steps * WORK_CPU_S / trial))
        alone = statistics.median(client.grade(body)["tests"][0]["cpu_s"] for _ in range(3))
    left = itertools.count()
    until = time.monotonic() + WORK_WITHIN_S
    results: list[dict[str, Any]] = []
    lock = threading.Lock()

    def send() -> None:
        with server.connect() as connection:
            while next(left) < count and time.monotonic() < until:
                result = connection.grade(body)
                with lock:
                    results.append(result)

    begun = time.monotonic()
    with ThreadPoolExecutor(in_flight) as pool:
        for future in [pool.submit(send) for _ in range(in_flight)]:
            future.result()
    took_s = time.monotonic() - begun
    if len(results) < count:
        raise NotAccepted(f"only {len(results)} of {count} programs were graded within {WORK_WITHIN_S:g} s")
    _report_work(report, results, in_flight=in_flight, alone_cpu_s=alone, took_s=took_s)


def _report_work(
    report: Report, results: Sequence[dict[str, Any]], *, in_flight: int, alone_cpu_s: float, took_s: float
) -> None:
    tests = [result["tests"][0] for result in results]
    cpu_s = [test["cpu_s"] for test in tests]
    verdicts = Counter(test["verdict"] for test in tests)
    wrong = len(tests) - verdicts["accepted"]
    rows: list[list[Cell]] = [
        ["programs graded, in flight", f"{len(results)}, {in_flight}"],
        ["verdicts", ", ".join(f"{name} {number}" for name, number in verdicts.items())],
        ["repeated under pressure", sum(test["reruns"] for test in tests)],
        ["CPU s, alone", alone_cpu_s],
        ["CPU s, median and most", f"{statistics.median(cpu_s):.2f}, {max(cpu_s):.2f}"],
        ["wall s of the program, most", max(test["wall_s"] for test in tests)],
        ["wall s from request to result, median", statistics.median(one["timing"]["total_s"] for one in results)],
        ["the same, over the limit of 2 s", sum(one["timing"]["total_s"] > LIMIT_CPU_S for one in results)],
        ["wall s of it all", took_s],
    ]
    report.table(f"Programs of {WORK_CPU_S:g} CPU-s under a limit of {LIMIT_CPU_S:g} s", ("what", "value"), rows)
    report.goal(f"wrong verdicts of {len(tests)} at 4x oversubscription", wrong, 0)


def main() -> None:
    given = options(__doc__)
    report = Report("over_http", given.quick)
    cores = len(os.sched_getaffinity(0))
    with (
        tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as directory,
        CpuAccount() as account,
        serving(Path(directory), "--workers", str(cores)) as server,
        ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), initializer=open_judge, initargs=(server.data_dir,)
        ) as direct,
    ):
        try:
            one_test(report, server, direct, 10 if given.quick else 150)
            twenty_tests(report, server, account, direct, *((16, 2) if given.quick else (64, 5)))
        finally:
            direct.submit(close_judge).result()
        oversubscribed(report, server, 4 * 4 * cores if given.quick else 200)
        report.emit(given.json)


if __name__ == "__main__":
    main()
