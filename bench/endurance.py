"""2,000 grades in a row, or any number: nothing may pile up. And what the grader weighs when idle.

    python bench/endurance.py [--quick] [--on-redis] [--grades N] [--within-s S] [--png FILE] [--json FILE]

Starts `rkgrade serve` with two workers (one on a single core) on a free loopback port with a temporary data directory,
or with `--on-redis` a Redis, a `rkgrade serve` and a `rkgrade worker` with as many, and sends grades, two in flight for
each worker, going round a mix: right, wrong, too slow, crashing, not compiling and hostile programs in Python and C++.
Counts what there is before and after each leg of the way, each time once the server is at rest. The first legs, a tenth
of the grades, are warm-up. Exit status 1 where a count has grown since, memory has by more than 5 %, or a program got a
verdict that it must not get.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cluster import on_redis
from inventory import Sample, growth, sample
from measure import Cell, Report, parser
from mix import Entry, spread
from server import Server, serving

IDLE_MB = 250.0
REST_S = 1.0
REST_WITHIN_S = 30.0

#: Between two samples, where there are enough for ten of them.
LEG = 2500
LEGS_AT_LEAST = 10
WARM_UP = 0.1

LANGUAGES = "python,python-exec,cpp"

#: Little enough that new programs push out old ones.
COMPILE_CACHE_MB = 64


# ---------------------------------------------------------------------------------------------------------------
# Rest


def rest(server: Server, traffic: Traffic) -> None:
    """Let every worker end on the same note, and wait until no process has come or gone for a while.

    A worker looks after the cells that have left when it starts the next one. After two quiet trivial grades each has
    one behind it and one before it, whatever it graded until then.
    """
    for _ in range(2 * len(server.workers())):
        traffic.trivial()
        _quiet(server)


def _quiet(server: Server) -> None:
    until = time.monotonic() + REST_WITHIN_S
    before: set[int] = set()
    since = time.monotonic()
    while time.monotonic() - since < REST_S and time.monotonic() < until:
        now = {process.pid for process in server.family()}
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(0.1)


# ---------------------------------------------------------------------------------------------------------------
# Grades


class Traffic:
    """Sends the mix round and round, and keeps what came back other than it should."""

    def __init__(self, server: Server, in_flight: int) -> None:
        self._server = server
        self._in_flight = in_flight
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._mix = spread()
        self.sent = 0
        self.verdicts: collections.Counter[str] = collections.Counter()
        self.unexpected: list[str] = []
        tests = [{"input": f"{index} {index + 1}\n", "output": f"{2 * index + 1}\n"} for index in range(3)]
        with server.connect() as client:
            self._problem_id = client.store({"kind": "stdio", "tests": tests})

    @property
    def round(self) -> int:
        """Grades in one round of the mix."""
        return len(self._mix)

    def trivial(self) -> None:
        """One grade aside from the others."""
        with self._server.connect() as connection:
            entry = self._mix[0]
            self._keep(entry, connection.grade(self._body(entry, -next(self._numbers))))

    def send(self, total: int, until_s: float) -> None:
        """Go on until `total` grades in all have been sent, or that time has come."""

        def client() -> None:
            with self._server.connect() as connection:
                while (number := self._next(total, until_s)) is not None:
                    entry = self._mix[number % len(self._mix)]
                    self._keep(entry, connection.grade(self._body(entry, number)))

        with ThreadPoolExecutor(self._in_flight) as pool:
            for future in [pool.submit(client) for _ in range(self._in_flight)]:
                future.result()

    def _next(self, total: int, until_s: float) -> int | None:
        with self._lock:
            if self.sent >= total or time.monotonic() >= until_s:
                return None
            self.sent += 1
            return self.sent

    def _body(self, entry: Entry, number: int) -> bytes:
        return json.dumps(entry.request(self._problem_id, number)).encode()

    def _keep(self, entry: Entry, result: dict[str, Any]) -> None:
        with self._lock:
            self.verdicts[result["verdict"]] += 1
            if result["verdict"] not in entry.verdicts:
                self.unexpected.append(f"{entry.name}, {entry.language}: {result['verdict']}")


def travel(server: Server, traffic: Traffic, grades: int, within_s: float) -> list[Sample]:
    """Samples before, and after each leg; fewer legs where the time does not suffice."""
    until_s = time.monotonic() + within_s
    legs = max(LEGS_AT_LEAST, grades // LEG)
    rest(server, traffic)
    samples = [sample(server, 0)]
    for leg in range(1, legs + 1):
        traffic.send(grades * leg // legs, until_s)
        rest(server, traffic)
        samples.append(sample(server, traffic.sent))
        print(f"{traffic.sent} of {grades}", file=sys.stderr)
        if time.monotonic() >= until_s:
            break
    return samples


# ---------------------------------------------------------------------------------------------------------------
# The report


def warmed_up(samples: Sequence[Sample]) -> Sample:
    """The first one after a tenth of the way."""
    return next(one for one in samples if one.grades >= WARM_UP * samples[-1].grades)


def tabulate(report: Report, title: str, samples: Sequence[Sample]) -> None:
    idle, warm, end = samples[0], warmed_up(samples), samples[-1]
    rows: list[list[Cell]] = [
        [name, count, warm.counts[name], end.counts[name], None] for name, count in idle.counts.items()
    ]
    for name, size in idle.memory_mb.items():
        share = f"{100 * (end.memory_mb[name] / warm.memory_mb[name] - 1):+z.1f} %"
        rows.append([f"{name}, MB", size, warm.memory_mb[name], end.memory_mb[name], share])
    rows.append(["PSS of API and workers, MB", idle.pss_mb, warm.pss_mb, end.pss_mb, None])
    for name, size in idle.stores_mb.items():
        rows.append([f"{name}, MB", size, warm.stores_mb[name], end.stores_mb[name], None])
    columns = ("what", "idle, before", f"after {warm.grades}", f"after {end.grades}", "since")
    report.table(title, columns, rows)


def arguments() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("--on-redis", action="store_true", help="with workers on a Redis, not in-process")
    options.add_argument("--grades", type=int, default=2000, metavar="N", help="how many (default: 2000)")
    options.add_argument(
        "--within-s", type=float, default=float("inf"), metavar="S", help="stop after so long, wherever it is by then"
    )
    options.add_argument("--png", type=Path, metavar="FILE", help="draw what there was over the grades")
    return options.parse_args()


def main() -> None:
    given = arguments()
    report = Report("endurance", given.quick)
    workers = min(2, len(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as name, contextlib.ExitStack() as stack:
        directory = Path(name)
        flags = ("--compile-cache-mb", str(COMPILE_CACHE_MB), "--languages", LANGUAGES)
        if given.on_redis:
            server = stack.enter_context(on_redis(directory, directory / "data", [workers], host_flags=flags))
        else:
            server = stack.enter_context(serving(directory, "--workers", str(workers), *flags))
        traffic = Traffic(server, 2 * workers)
        grades = 4 * traffic.round if given.quick else given.grades
        begun = time.monotonic()
        samples = travel(server, traffic, grades, given.within_s)
        took_s = time.monotonic() - begun

    title = f"{traffic.sent} of {grades} grades, {workers} workers, {took_s:.0f} s"
    tabulate(report, title, samples)
    verdicts: list[list[Cell]] = [[name, count] for name, count in traffic.verdicts.most_common()]
    report.table("Verdicts", ("verdict", "grades"), verdicts)
    grown = growth(warmed_up(samples), samples[-1])
    idle = samples[0]
    report.goal("counts or memory that have grown", len(grown), 0)
    report.goal("programs with a verdict they must not get", len(traffic.unexpected), 0)
    report.goal("idle: PSS of API and workers", idle.pss_mb, IDLE_MB, " MB")
    report.goal("idle: RSS of API and workers", idle.memory_mb["RSS of API and workers"], IDLE_MB, " MB")
    report.emit(given.json)
    if given.png is not None:
        from curves import draw

        draw(given.png, title, samples)
    for line in (*grown, *traffic.unexpected):
        print(line, file=sys.stderr)
    if grown or traffic.unexpected:
        sys.exit(1)


if __name__ == "__main__":
    main()
