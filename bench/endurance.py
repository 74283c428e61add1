"""2,000 grades in a row: nothing may pile up. And what the grader weighs when idle.

    python bench/endurance.py [--quick] [--json FILE]

Starts `rkgrade serve` with two workers (one on a single core) on a free loopback port with a temporary data directory,
and sends grades, two in flight for each worker, going round a mix: right, wrong, too slow, crashing, not compiling and
hostile programs in Python and C++. Counts what there is before, after a tenth of the grades as warm-up, and at the end,
each time once the server has come to rest. Exit status 1 where a count has grown since the warm-up, memory has by more
than 5 %, or a program got a verdict that it must not get.
"""

from __future__ import annotations

import collections
import itertools
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from measure import Cell, Report, options
from server import Server, serving
from trivial import SOURCES

MEMORY_GROWTH = 0.05
IDLE_MB = 250.0
REST_S = 1.0
REST_WITHIN_S = 30.0

MEMORY_BOMB = "x = []\nwhile True:\n    x.append(bytearray(1 << 20))\n"
FORK_BOMB = """import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
ORPHAN = """import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
os.wait()
print(sum(map(int, input().split())))
"""
LITTER = """import os
for directory in ("/tmp", "/box"):
    for number in range(50):
        os.makedirs(f"{directory}/{number}/inner", exist_ok=True)
        open(f"{directory}/{number}/file", "w").write("x" * 1000)
print(sum(map(int, input().split())))
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A program of the mix."""

    name: str
    language: str
    source: str
    verdicts: tuple[str, ...]
    """Any of these is right."""
    limits: tuple[tuple[str, float | int], ...] = ()


MIX = (
    Entry("right", "python", SOURCES["python"], ("accepted",)),
    Entry("right", "cpp", SOURCES["cpp"], ("accepted",)),
    Entry("right, own interpreter", "python-exec", SOURCES["python"], ("accepted",)),
    Entry("wrong", "python", "print(0)\n", ("wrong_answer",)),
    Entry("wrong", "cpp", '#include <cstdio>\nint main() { puts("0"); }\n', ("wrong_answer",)),
    Entry("too slow", "python", "while True:\n    pass\n", ("time_limit",), (("cpu_s", 0.1),)),
    Entry("too slow", "cpp", "int main() { for (volatile int i = 0;; i = 0); }\n", ("time_limit",), (("cpu_s", 0.1),)),
    Entry("sleeps", "python", "import time\ntime.sleep(1000)\n", ("idle",), (("wall_s", 0.2),)),
    Entry("crashes", "python", "raise ValueError\n", ("runtime_error",)),
    Entry("crashes", "cpp", "#include <cstdlib>\nint main() { std::abort(); }\n", ("runtime_error",)),
    Entry("does not compile", "python", "print((\n", ("compile_error",)),
    Entry("does not compile", "cpp", "int main() { return x; }\n", ("compile_error",)),
    Entry("takes all memory", "python", MEMORY_BOMB, ("memory_limit",), (("memory_mb", 32),)),
    Entry("floods stdout", "python", "while True:\n    print('x' * 65536)\n", ("output_limit",), (("output_mb", 1),)),
    Entry("fork bomb", "python", FORK_BOMB, ("time_limit",), (("cpu_s", 0.1), ("processes", 16))),
    Entry("leaves a process", "python", ORPHAN, ("accepted",)),
    Entry("leaves files", "python", LITTER, ("accepted",)),
)


# ---------------------------------------------------------------------------------------------------------------
# What there is


@dataclass(frozen=True, slots=True)
class Memory:
    """Of some processes together, in MB. PSS shares common pages out among those that map them; RSS counts them all."""

    pss: float
    rss: float


def memory(processes: Sequence[psutil.Process]) -> Memory:
    totals = collections.Counter[str]()
    for process in processes:
        if process.status() == psutil.STATUS_ZOMBIE:
            continue  # A cell that has gone, until its worker's next grade: it holds no memory.
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
            if (found := re.match(r"(Pss|Rss): +(\d+) kB", line)) is not None:
                totals[found[1]] += int(found[2])
    return Memory(totals["Pss"] / 1024, totals["Rss"] / 1024)


@dataclass(frozen=True, slots=True)
class Sample:
    counts: dict[str, int]
    memory: dict[str, float]


def sample(server: Server) -> Sample:
    """Everything that could pile up. The server must be at rest."""
    api, workers, family = server.api(), server.workers(), server.family()
    pids = {process.pid for process in family}
    inner = memory([api, *workers])
    return Sample(
        counts={
            "processes, cells included": len(family),
            "cgroups": _groups(pids),
            "descriptors of the API": api.num_fds(),
            "descriptors of the workers": sum(worker.num_fds() for worker in workers),
            "mounts of the host": len(Path("/proc/self/mountinfo").read_text().splitlines()),
            "mounts the workers see": sum(
                len(Path(f"/proc/{worker.pid}/mountinfo").read_text().splitlines()) for worker in workers
            ),
            "files in the data directory": sum(1 for _ in server.data_dir.rglob("*")),
            "files in its temporary directory": sum(1 for _ in server.scratch_dir.rglob("*")),
        },
        memory={
            "PSS of API and workers, MB": inner.pss,
            "RSS of API and workers, MB": inner.rss,
            "PSS, waiting cells included, MB": memory(family).pss,
        },
    )


def _groups(pids: set[int]) -> int:
    """Directories of these processes' graders in any hierarchy."""
    found = 0
    for directory, _, _ in os.walk("/sys/fs/cgroup"):
        owned = re.search(r"/rkgrade-\d+-(\d+)-\d+(/|$)", directory)
        if owned is not None and int(owned[1]) in pids:
            found += 1
    return found


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
        self.verdicts: collections.Counter[str] = collections.Counter()
        self.unexpected: list[str] = []
        tests = [{"input": f"{index} {index + 1}\n", "output": f"{2 * index + 1}\n"} for index in range(3)]
        with server.connect() as client:
            identifier = client.store({"kind": "stdio", "tests": tests})
        self._bodies = [
            json.dumps(
                {
                    "problem": identifier,
                    "language": entry.language,
                    "source": entry.source,
                    "limits": dict(entry.limits),
                    "stop": "first_failure",
                }
            ).encode()
            for entry in MIX
        ]

    def trivial(self) -> None:
        with self._server.connect() as connection:
            self._keep(MIX[0], connection.grade(self._bodies[0]))

    def send(self, total: int) -> None:
        """Go on until `total` grades in all have been sent."""

        def client() -> None:
            with self._server.connect() as connection:
                while True:
                    with self._lock:
                        if (number := next(self._numbers)) >= total:
                            self._numbers = itertools.count(total)
                            return
                    self._keep(MIX[number % len(MIX)], connection.grade(self._bodies[number % len(MIX)]))

        with ThreadPoolExecutor(self._in_flight) as pool:
            for future in [pool.submit(client) for _ in range(self._in_flight)]:
                future.result()

    def _keep(self, entry: Entry, result: dict[str, Any]) -> None:
        with self._lock:
            self.verdicts[result["verdict"]] += 1
            if result["verdict"] not in entry.verdicts:
                self.unexpected.append(f"{entry.name}, {entry.language}: {result['verdict']}")


def growth(warm: Sample, end: Sample) -> list[str]:
    found = [
        f"{name}: {count} -> {end.counts[name]}" for name, count in warm.counts.items() if end.counts[name] > count
    ]
    found += [
        f"{name}: {size:.1f} -> {end.memory[name]:.1f}"
        for name, size in warm.memory.items()
        if end.memory[name] > size * (1 + MEMORY_GROWTH)
    ]
    return found


def main() -> None:
    given = options(__doc__)
    report = Report("endurance", given.quick)
    grades = 10 * len(MIX) if given.quick else 2000
    workers = min(2, len(os.sched_getaffinity(0)))
    with (
        tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as directory,
        serving(Path(directory), "--workers", str(workers)) as server,
    ):
        traffic = Traffic(server, 2 * workers)
        rest(server, traffic)
        idle = sample(server)
        begun = time.monotonic()
        traffic.send(max(grades // 10, 2 * len(MIX)))
        rest(server, traffic)
        warm = sample(server)
        traffic.send(grades)
        took_s = time.monotonic() - begun
        rest(server, traffic)
        end = sample(server)

        rows: list[list[Cell]] = [
            [name, count, warm.counts[name], end.counts[name], None] for name, count in idle.counts.items()
        ]
        for name, size in idle.memory.items():
            share = f"{100 * (end.memory[name] / warm.memory[name] - 1):+.1f} %"
            rows.append([name, size, warm.memory[name], end.memory[name], share])
        columns = ("what", "idle, before", "after warm-up", "at the end", "since warm-up")
        report.table(f"{grades} grades, {workers} workers, {took_s:.0f} s", columns, rows)
        verdicts: list[list[Cell]] = [[name, count] for name, count in traffic.verdicts.most_common()]
        report.table("Verdicts", ("verdict", "grades"), verdicts)
        grown = growth(warm, end)
        report.goal("counts or memory that have grown", len(grown), 0)
        report.goal("programs with a verdict they must not get", len(traffic.unexpected), 0)
        report.goal("idle: PSS of API and workers", idle.memory["PSS of API and workers, MB"], IDLE_MB, " MB")
        report.goal("idle: RSS of API and workers", idle.memory["RSS of API and workers, MB"], IDLE_MB, " MB")
        report.emit(given.json)
    for line in (*grown, *traffic.unexpected):
        print(line, file=sys.stderr)
    if grown or traffic.unexpected:
        sys.exit(1)


if __name__ == "__main__":
    main()
