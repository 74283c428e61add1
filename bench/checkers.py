"""What a checker that is a program adds to a test, against comparing tokens within the judge.

    python bench/checkers.py [--quick] [--json FILE]

The trivial C++ program on the same 100 tests, in cells that are up (the program's and the checker's), with the checker
alone exchanged; all on one core, in turn in every round. What a checker adds is the median of the rounds' differences.
"""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

from measure import Cost, Report, options, rounds
from trivial import bench, problem

from sandbox.checkers.base import CheckerProgram, CheckerProtocol, JuryProgram

TOKENS = "tokens, in the judge"
TESTLIB = "testlib, compiled"

TESTLIB_SOURCE = """
#include "testlib.h"
int main(int argc, char *argv[]) {
    registerTestlibCmd(argc, argv);
    int count = 0;
    while (!ans.seekEof()) {
        count++;
        std::string wanted = ans.readToken(), got = ouf.readToken();
        if (wanted != got) quitf(_wa, "token %d: expected '%s', found '%s'", count, wanted.c_str(), got.c_str());
    }
    quitf(_ok, "%d tokens", count);
}
"""

KATTIS_CPP = """
#include <fstream>
#include <iostream>
int main(int, char **argv) {
    std::ifstream answer(argv[2]);
    std::string wanted, got;
    while (answer >> wanted)
        if (!(std::cin >> got) || got != wanted) return 43;
    return std::cin >> got ? 43 : 42;
}
"""

KATTIS_PYTHON = "import sys\nsys.exit(42 if sys.stdin.read().split() == open(sys.argv[2]).read().split() else 43)\n"
PYTHON = (
    "import sys\n_, answer, output = [open(p).read().split() for p in sys.argv[1:]]\nprint(int(answer == output))\n"
)


def program(protocol: CheckerProtocol, language: str, source: str) -> CheckerProgram:
    of_testlib = protocol is CheckerProtocol.TESTLIB
    return CheckerProgram(protocol, JuryProgram(language, (("checker", source.encode()),), uses_testlib=of_testlib))


CHECKERS = {
    TESTLIB: program(CheckerProtocol.TESTLIB, "cpp", TESTLIB_SOURCE),
    "kattis, C++": program(CheckerProtocol.KATTIS, "cpp", KATTIS_CPP),
    "kattis, Python, forked": program(CheckerProtocol.KATTIS, "python", KATTIS_PYTHON),
    "kattis, Python, a fresh interpreter": program(CheckerProtocol.KATTIS, "python-exec", KATTIS_PYTHON),
    "python, forked": program(CheckerProtocol.PYTHON, "python", PYTHON),
}


def added(costs: list[Cost], to: list[Cost]) -> Cost:
    """The median over the rounds of what the one side costs more than the other."""
    pairs = list(zip(costs, to, strict=True))
    return Cost(
        statistics.median(one.wall_ms - other.wall_ms for one, other in pairs),
        statistics.median(one.cpu_ms - other.cpu_ms for one, other in pairs),
    )


def main() -> None:
    given = options(__doc__)
    report = Report("checkers", given.quick)
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as directory, bench(Path(directory)) as here:
        hundred = problem(100)
        sides = {TOKENS: hundred} | {name: replace(hundred, checker=checker) for name, checker in CHECKERS.items()}
        costs = rounds(
            {name: lambda of=of: here.next_test("cpp", of) for name, of in sides.items()},  # type: ignore[misc]
            3 if given.quick else 15,
        )
        report.compare("Trivial static C++ test, by its checker", costs, TOKENS, "test")
        more = {name: added(list(costs[name]), list(costs[TOKENS])) for name in CHECKERS}
        report.table(
            "What the checker adds to a test",
            ("checker", "wall ms", "CPU ms"),
            [[name, cost.wall_ms, cost.cpu_ms] for name, cost in more.items()],
        )
        report.goal("compiled testlib checker, added to a test, wall", more[TESTLIB].wall_ms, 3.0, " ms")
        report.emit(given.json)


if __name__ == "__main__":
    main()
