"""Trivial tests through the judge against no sandbox at all, and how long a submission waits for its first test.

    python bench/judge.py [--quick] [--json FILE]

Python against `/usr/bin/python3 main.py < in > out` in a loop of posix_spawn and wait; static C++ against fork and
exec in a loop in C. All sides on one core, in turn in every round.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from pathlib import Path

from measure import Cell, Report, options, ratio, rounds
from trivial import SOURCES, Bench, Judged, bench, judge_once, problem

#: Long enough for a cell to come up in the background, as it would between two submissions.
WARM_S = 0.3

BARE_PYTHON = "bare python3 main.py"
FORK_EXEC = "bare fork + exec, from C"
NEXT = "judge, cell up: each further test"


def python(report: Report, here: Bench, count: int) -> None:
    twenty, hundred = problem(20), problem(100)
    costs = rounds(
        {
            BARE_PYTHON: lambda: here.bare_python(20),
            NEXT: lambda: here.next_test("python", hundred),
            "judge, 20 tests, whole": lambda: here.whole("python", twenty, 3),
            "judge, 100 tests, whole": lambda: here.whole("python", hundred, 1),
        },
        count,
    )
    report.compare("Trivial Python test", costs, BARE_PYTHON, "test")
    found = ratio(costs[NEXT], costs[BARE_PYTHON])
    report.goal("Python test through the judge, wall, of bare python3", found.wall, 0.2, " x")
    report.goal("Python test through the judge, CPU, of bare python3", found.cpu, 0.2, " x")


def cpp(report: Report, here: Bench, count: int) -> None:
    twenty, hundred = problem(20), problem(100)
    costs = rounds(
        {
            FORK_EXEC: lambda: here.fork_exec_cpp(200),
            "bare posix_spawn, from Python": lambda: here.bare_cpp(200),
            NEXT: lambda: here.next_test("cpp", hundred),
            "judge, 20 tests, whole": lambda: here.whole("cpp", twenty, 3),
            "judge, 100 tests, whole": lambda: here.whole("cpp", hundred, 1),
        },
        count,
    )
    report.compare("Trivial static C++ test", costs, FORK_EXEC, "test")
    found = ratio(costs[NEXT], costs[FORK_EXEC])
    report.goal("C++ test through the judge, wall, of bare fork + exec from C", found.wall, 2.0, " x")


def cell_start(report: Report, here: Bench, count: int) -> None:
    one = problem(1)
    judged: dict[tuple[str, bool], list[Judged]] = {
        (language, warm): [] for language in SOURCES for warm in (False, True)
    }
    with contextlib.closing(here.judge()) as judge:
        for _ in range(count):
            for (language, warm), found in judged.items():
                if warm:
                    judge.warm()
                # Cold too: the cell before is gone by then, and its end is not in this one's start.
                time.sleep(WARM_S)
                found.append(judge_once(judge, here.account, language, one))
    rows: list[list[Cell]] = []
    for (language, warm), found in judged.items():
        name = f"{language}, {'cell warmed' if warm else 'cold'}"
        before = statistics.median(one.prepare_ms for one in found) if language == "python" else None
        rows.append([name, before, statistics.median(one.first_result_ms for one in found)])
    report.table(
        "From the submission to its first test, wall ms (C++ compiled before)",
        ("submission", "until the first test starts", "until its result"),
        rows,
    )
    cold = statistics.median(one.prepare_ms for one in judged["python", False])
    report.goal("cell start to first test (Python), cold", cold, 60.0, " ms")


def main() -> None:
    given = options(__doc__)
    report = Report("judge", given.quick)
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as directory, bench(Path(directory)) as here:
        count = 3 if given.quick else 15
        python(report, here, count)
        cpp(report, here, count)
        cell_start(report, here, 3 if given.quick else 20)
        report.emit(given.json)


if __name__ == "__main__":
    main()
