"""What the client costs beside a bare exchange of the same bytes: `Grader` and `AsyncGrader` against http.client.

    python bench/client.py [--quick] [--json FILE]

The other side is no grader but a process that has one answer, so that the client alone is measured. Each side asks for
the same grades by a problem's id, one at a time over one kept connection; `AsyncGrader` also for 64 at once. The bare
one sends bytes that are ready and does not read what comes; the clients make a request from values and values from the
answer.
"""

from __future__ import annotations

import asyncio
import http.client
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection

from measure import Cost, Report, median, options, rounds

from rl_client.async_client import AsyncGrader
from rl_client.client import Grader
from sandbox.verdicts import Verdict
from service.contract import GradeRequest, GradeResult, GraderInfo, TestRow, Timing
from service.scoring import score

PROBLEM = "sha256:" + "0" * 64
SOURCE = "a, b = map(int, input().split())\nprint(a + b)\n" * 20
REQUEST = GradeRequest(problem=PROBLEM, language="python", source=SOURCE)

AT_ONCE = 64


def answer(tests: int) -> bytes:
    """A result of so many tests, all accepted."""
    rows = tuple(
        TestRow(
            index=index, input_length=10 * index, verdict=Verdict.ACCEPTED, cpu_s=0.012345678, wall_s=0.013, exit_code=0
        )
        for index in range(tests)
    )
    points = score(rows, "first_failure")
    result = GradeResult(
        problem_id=PROBLEM,
        language="python",
        verdict=points.verdict,
        category=points.category,
        taxonomy="first_failure",
        first_failure_length=None,
        rewards=dict(points.rewards),
        groups=(),
        tests=rows,
        compile=None,
        timing=Timing(queue_s=0.0, compile_s=0.0, run_s=0.1, total_s=0.1),
        grader=GraderInfo(version="0", sandbox="none", language_version="3", secure=True),
    )
    return result.model_dump_json().encode()


def serve(body: bytes, told: Connection) -> None:
    """Answers every request with `body`; runs in a process of its own until it is ended."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                asked = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                writer.close()
                return
            lengths = [line for line in asked.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            await reader.readexactly(int(lengths[0].partition(b":")[2]))
            writer.write(head + body)

    async def run() -> None:
        server = await asyncio.start_server(on_connection, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def serving(body: bytes) -> Iterator[int]:
    """The port."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(body, theirs))
    process.start()
    try:
        yield ours.recv()
    finally:
        process.kill()
        process.join()


def cost(work: Callable[[], object], calls: int) -> Cost:
    """Of one call; CPU time is this process's."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    spent = Cost((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3)
    return spent.per(calls)


def sides(port: int, calls: int, runner: asyncio.Runner) -> dict[str, Callable[[], Cost]]:
    bare = http.client.HTTPConnection("127.0.0.1", port)
    body = REQUEST.model_dump_json(exclude_defaults=True).encode()
    url = f"http://127.0.0.1:{port}"
    threads, loop = Grader(url), AsyncGrader(url, connections=AT_ONCE)

    def by_hand() -> None:
        for _ in range(calls):
            bare.request("POST", "/grade", body, {"Content-Type": "application/json"})
            bare.getresponse().read()

    def one_by_one() -> None:
        for _ in range(calls):
            threads.grade(REQUEST)

    async def awaited() -> None:
        for _ in range(calls):
            await loop.grade(REQUEST)

    async def together() -> None:
        async def some() -> None:
            for _ in range(calls // AT_ONCE):
                await loop.grade(REQUEST)

        await asyncio.gather(*(some() for _ in range(AT_ONCE)))

    return {
        "http.client, nothing read": partial(cost, by_hand, calls),
        "Grader.grade": partial(cost, one_by_one, calls),
        "AsyncGrader.grade": partial(cost, lambda: runner.run(awaited()), calls),
        f"AsyncGrader.grade, {AT_ONCE} at once": partial(cost, lambda: runner.run(together()), calls),
    }


def main() -> None:
    given = options(__doc__)
    report = Report("client", given.quick)
    calls, count = (128, 3) if given.quick else (640, 15)
    for tests in (11, 100):
        with serving(answer(tests)) as port, asyncio.Runner() as runner:
            costs = rounds(sides(port, calls, runner), count)
        base = "http.client, nothing read"
        report.compare(f"A grade of {tests} tests", costs, base, "call")
        for name, of in costs.items():
            if name != base:
                more = median(of).cpu_ms - median(costs[base]).cpu_ms
                report.goal(f"{name} of {tests} tests: CPU more than bare", more, 1.0, " ms")
    report.emit(given.json)


if __name__ == "__main__":
    main()
