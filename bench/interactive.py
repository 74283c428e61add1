"""A C++ program that talks with a C++ interactor in two cells joined by pipes, against the same pair without a sandbox.

    python bench/interactive.py [--quick] [--json FILE]

A round trip is a line of a number from the interactor and a line of the next number back, each flushed. All of it on
one core, where each round trip is two switches between processes.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from measure import Cost, Report, options, ratio, rounds
from trivial import Bench, NotAccepted, bench

from sandbox.checkers.base import CheckerProgram, CheckerProtocol, JuryProgram
from sandbox.problem import Dialogue, Limits, Problem, Submission, Test, TestResult
from sandbox.stdin import Stdin
from sandbox.verdicts import Verdict

PROGRAM = """
#include <iostream>
int main() {
    for (long number; std::cin >> number;) std::cout << number + 1 << std::endl;
}
"""

#: argv: a file with the number of round trips.
INTERACTOR = """
#include <fstream>
#include <iostream>
int main(int, char **argv) {
    long trips, back;
    std::ifstream(argv[1]) >> trips;
    for (long number = 0; number < trips; number++) {
        std::cout << number << std::endl;
        if (!(std::cin >> back) || back != number + 1) return 43;
    }
    return 42;
}
"""

BARE = "two processes, pipes"
JUDGED = "judge, two cells"
NEXT = "judge, cells up: each further test"

#: What 1000 round trips may take at most for 20,000 of them in a second.
GOAL_MS = 50.0


def problem(trips: int, tests: int) -> Problem:
    return Problem(
        tuple(Test(index, None, index, Stdin(b"%d\n" % trips), b"") for index in range(tests)),
        CheckerProgram(CheckerProtocol.KATTIS, JuryProgram("cpp", (("interactor.cpp", INTERACTOR.encode()),))),
        dialogue=Dialogue(),
    )


def bare(here: Bench, trips: int) -> Cost:
    """The pair as a script would start it, once."""
    (here.directory / "trips").write_text(f"{trips}\n")

    def once() -> None:
        to_program, from_interactor = os.pipe()
        to_interactor, from_program = os.pipe()
        with (
            subprocess.Popen([here.directory / "program"], stdin=to_program, stdout=from_program),
            subprocess.Popen(
                [here.directory / "interactor", here.directory / "trips"], stdin=to_interactor, stdout=from_interactor
            ) as interactor,
        ):
            for fd in (to_program, from_interactor, to_interactor, from_program):
                os.close(fd)
            if interactor.wait() != 42:
                raise NotAccepted("the bare interactor rejected")

    return here.account.cost(once)


def judged(here: Bench, of: Problem) -> Cost:
    """Of one test but the first, whose cells had to come up."""
    marks = []

    def on_test(result: TestResult) -> None:
        if result.verdict is not Verdict.ACCEPTED:
            raise NotAccepted(f"{result.verdict} {result.message} {result.checker_message}")
        if result.index in (0, len(of.tests) - 1):
            marks.append(here.account.mark())

    with contextlib.closing(here.judge()) as judge:
        judge.judge(Submission(of, "cpp", PROGRAM.encode(), Limits(cpu_s=60, wall_s=120)), on_test=on_test)
    return marks[-1].since(marks[0]).per(len(of.tests) - 1)


def main() -> None:
    given = options(__doc__)
    report = Report("interactive", given.quick)
    trips, count = (5_000, 2) if given.quick else (50_000, 15)
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as directory, bench(Path(directory)) as here:
        for name, source in (("program", PROGRAM), ("interactor", INTERACTOR)):
            (here.directory / f"{name}.cpp").write_text(source)
            command = ["/usr/bin/g++", "-O2", "-static", "-o", name, f"{name}.cpp"]
            subprocess.run(command, cwd=here.directory, check=True)
        long, short = problem(trips, 2), problem(1, 30)
        thousands = trips // 1000
        costs = rounds(
            {BARE: lambda: bare(here, trips).per(thousands), JUDGED: lambda: judged(here, long).per(thousands)}, count
        )
        report.compare(f"Round trips, {trips} of them in one test", costs, BARE, "1000 round trips")
        found = ratio(costs[JUDGED], costs[BARE])
        costs_short = rounds({BARE: lambda: bare(here, 1), NEXT: lambda: judged(here, short)}, count)
        report.compare("A test of one round trip", costs_short, BARE, "test")
        middle_ms = statistics.median(cost.wall_ms for cost in costs[JUDGED])
        report.goal("1000 round trips in two cells, wall (20,000/s)", middle_ms, GOAL_MS, " ms")
        report.goal("round trips in two cells, CPU, of the same without a sandbox", found.cpu, 1.5, " x")
        report.emit(given.json)


if __name__ == "__main__":
    main()
