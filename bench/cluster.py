"""What queueing on Redis costs over a grader that is all by itself, and how soon it is over a death.

    python bench/cluster.py [--quick] [--json FILE]

Starts `rkgrade serve` by itself, and a Redis (with AOF), a `rkgrade serve` and a `rkgrade worker` on it, all on this
machine and its cores; one of the two works at a time, in turn. Needs redis-server.

1. Grades of 20 tests, stored problem, 16 in flight: tests/s and CPU time of each.
2. From the queue to a worker, where nothing else waits: one grade at a time.
3. A worker, and then its whole host, is killed over a grade that sleeps for 6 s: from the kill to the result, less
   those 6 s.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from measure import Cell, Cost, CpuAccount, Report, median, options, percentile, ratio, rounds
from over_http import Flood, request, trivial_problem
from server import RKGRADE, Server, serving
from trivial import SOURCES

IN_FLIGHT = 16
TESTS = 20

#: Long enough for the next cell to come up.
PAUSE_S = 0.2

SLEEP_S = 6.0


@contextlib.contextmanager
def redis_server(directory: Path) -> Iterator[str]:
    """Its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", ""]
    command += ["--appendonly", "yes", "--maxmemory-policy", "noeviction"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def working(
    url: str, data_dir: Path, workers: int, log: Path, more_flags: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """A host with workers, on its way up; gone at the end."""
    flags = ["--redis-url", url, "--data-dir", str(data_dir), "--workers", str(workers), "--languages", "python,cpp"]
    command = [str(RKGRADE), "worker", "--no-verdict-cache", *flags, *more_flags]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@contextlib.contextmanager
def on_redis(
    directory: Path, data_dir: Path, hosts: Sequence[int], *, flags: Sequence[str] = (), host_flags: Sequence[str] = ()
) -> Iterator[Server]:
    """A Redis, hosts with so many workers each, and an API, ready for all of them. Raises ServerFailed."""
    # Cells show directories below, and their users must get in.
    directory.chmod(0o755)
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(redis_server(directory))
        logs = [directory / f"host-{number}.log" for number in range(len(hosts))]
        pids = [
            stack.enter_context(working(url, data_dir, workers, log, host_flags)).pid
            for workers, log in zip(hosts, logs, strict=True)
        ]
        server = stack.enter_context(serving(directory, "--redis-url", url, *flags, data_dir=data_dir))
        wait_for_workers(server, sum(hosts))
        yield replace(server, redis_url=url, host_pids=tuple(pids))


# ---------------------------------------------------------------------------------------------------------------
# 1. Throughput


def throughput(report: Report, alone: Server, cluster: Server, account: CpuAccount, grades: int, count: int) -> None:
    for language, source in SOURCES.items():
        sides: dict[str, Callable[[], Cost]] = {}
        for name, server in (("in-process", alone), ("on Redis", cluster)):
            with server.connect() as client:
                body = request(client.store(trivial_problem(TESTS)), language, source)
                client.grade(body)
            sides[name] = Flood(server, account, body, IN_FLIGHT, grades, TESTS, [])
        costs = rounds(sides, count)
        rows: list[list[Cell]] = [
            [name, 1000 / median(of).wall_ms, median(of).cpu_ms, 1 / ratio(of, costs["in-process"]).wall]
            for name, of in costs.items()
        ]
        columns = (language, "tests/s", "CPU ms per test", "tests/s, of in-process")
        report.table(
            f"Grades of {TESTS} tests, {grades} in each of {count} rounds, {IN_FLIGHT} in flight", columns, rows
        )
        slower = ratio(costs["on Redis"], costs["in-process"]).wall
        report.goal(f"time per test on Redis over in-process, {language}", slower, 1 / 0.85)


# ---------------------------------------------------------------------------------------------------------------
# 2. Delay


def delay(report: Report, alone: Server, cluster: Server, count: int) -> None:
    rows: list[list[Cell]] = []
    for name, server in (("in-process", alone), ("on Redis", cluster)):
        queued_ms = []
        with server.connect() as client:
            body = request(client.store(trivial_problem(1)), "python", SOURCES["python"])
            for number in range(count + 2):
                time.sleep(PAUSE_S)
                result = client.grade(body)
                if number >= 2:  # Loaded, connected.
                    queued_ms.append(result["timing"]["queue_s"] * 1e3)
        rows.append([name, percentile(queued_ms, 0.5), percentile(queued_ms, 0.9), percentile(queued_ms, 0.99)])
        if server is cluster:
            report.goal("from the queue to a worker at idle, on Redis, p50", statistics.median(queued_ms), 5.0, " ms")
    report.table(f"From the queue to a worker, {count} grades one at a time", ("ms", "p50", "p90", "p99"), rows)


# ---------------------------------------------------------------------------------------------------------------
# 3. Deaths


def deaths(report: Report, directory: Path, count: int) -> None:
    took_s: dict[str, list[float]] = {"a worker": [], "its host": []}
    for number in range(count):
        for whose in took_s:
            scratch = directory / f"deaths-{number}-{whose.split()[-1]}"
            scratch.mkdir()
            took_s[whose].append(_recovery_s(scratch, directory / "data", host=whose == "its host"))
    rows: list[list[Cell]] = [[whose, statistics.median(of), max(of)] for whose, of in took_s.items()]
    report.table(
        f"From kill -9 to the result, without the program's own time, {count} of each", ("s", "p50", "most"), rows
    )
    for whose, of in took_s.items():
        report.goal(f"recovery where {whose} is killed, most", max(of), 15.0, " s")


def _recovery_s(scratch: Path, data_dir: Path, *, host: bool) -> float:
    problem = {
        "kind": "stdio",
        "tests": [{"input": "", "output": ""}],
        "limits": {"cpu_s": 1.0, "wall_s": SLEEP_S},
    }
    with (
        redis_server(scratch) as url,
        working(url, data_dir, 1, scratch / "first.log") as first,
        serving(scratch, "--redis-url", url, data_dir=data_dir) as server,
    ):
        result: dict[str, Any] = {}

        def grade() -> None:
            with server.connect() as client:
                body = request(client.store(problem), "python", "import time\ntime.sleep(60)\n")
                result.update(client.grade(body))

        client = threading.Thread(target=grade)
        client.start()
        _wait_for_busy(server)
        # The other host comes when the job is taken: before, it might take it itself.
        with working(url, data_dir, 1, scratch / "second.log") if host else contextlib.nullcontext():
            if host:
                wait_for_workers(server, 2)
            victims = [first.pid] if host else [one.pid for one in psutil.Process(first.pid).children()]
            begun = time.monotonic()
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            client.join()
            took_s = time.monotonic() - begun
    if result["verdict"] != "idle":
        raise AssertionError(json.dumps(result))
    # Others on the machine may have had the core, and then the program has slept twice.
    reruns: int = result["tests"][0]["reruns"]
    return took_s - SLEEP_S * (1 + reruns)


def wait_for_workers(server: Server, count: int) -> None:
    while server.metric("rkgrade_workers_alive") < count:
        time.sleep(0.05)


def _wait_for_busy(server: Server) -> None:
    while server.metric("rkgrade_workers_busy") < 1:
        time.sleep(0.02)


def main() -> None:
    given = options(__doc__)
    report = Report("cluster", given.quick)
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        for folder in ("alone", "cluster", "redis"):
            (directory / folder).mkdir()
        data_dir = directory / "data"
        flags = ("--languages", "python,cpp", "--workers", str(cores))
        with (
            CpuAccount() as account,
            redis_server(directory / "redis") as url,
            serving(directory / "alone", *flags, data_dir=data_dir) as alone,
            working(url, data_dir, cores, directory / "host.log"),
            serving(directory / "cluster", "--redis-url", url, data_dir=data_dir) as cluster,
        ):
            throughput(report, alone, cluster, account, *((16, 2) if given.quick else (64, 7)))
            delay(report, alone, cluster, 10 if given.quick else 100)
        deaths(report, directory, 1 if given.quick else 5)
        report.emit(given.json)


if __name__ == "__main__":
    main()
