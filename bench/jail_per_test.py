"""One nsjail per test against one cell per submission.

    python bench/jail_per_test.py [--quick] [--json FILE]

The jail of each test has the very flags of a cell (`sandbox.nsjail.command`), with the program in the warden's place
and its stdin and stdout on files. It has no cgroup, no limit and no checker; the cell has them all.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from measure import Cost, Report, options, rounds
from trivial import SLOT, Bench, bench, problem

from sandbox import languages, nsjail
from sandbox.cell import SCRATCH_BYTES
from sandbox.judge import UIDS_PER_SLOT

#: Where the jail shows the program.
SHOWN = "/rkgrade-bench"


def jailed(here: Bench, language: str) -> Callable[[], Cost]:
    """A run of 20 tests, each in a jail of its own. Cost of one."""
    argv = [languages.PYTHON, f"{SHOWN}/main.py"] if language == "python" else [f"{SHOWN}/main"]
    passed = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(passed, True)
    command = nsjail.command(
        argv,
        host_uid=here.config.uid_base + SLOT * UIDS_PER_SLOT,
        pass_fd=passed,
        scratch_bytes=SCRATCH_BYTES,
        mounts=(f"{here.directory}:{SHOWN}",),
    )
    return lambda: here.spawn(command, 20)


def main() -> None:
    given = options(__doc__)
    report = Report("jail_per_test", given.quick)
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as directory, bench(Path(directory)) as here:
        twenty, hundred = problem(20), problem(100)

        def compare(language: str, title: str, bare: Callable[[int], Cost]) -> None:
            sides = {
                "one nsjail per test": jailed(here, language),
                "cell, 20 tests, whole": lambda: here.whole(language, twenty, 3),
                "cell, 100 tests, whole": lambda: here.whole(language, hundred, 1),
                "cell, up: each further test": lambda: here.next_test(language, hundred),
                "no sandbox": lambda: bare(20),
            }
            costs = rounds(sides, 3 if given.quick else 15)
            report.compare(title, costs, "one nsjail per test", "test")

        compare("python", "Trivial Python test", here.bare_python)
        compare("cpp", "Trivial static C++ test", here.fork_exec_cpp)
        report.emit(given.json)


if __name__ == "__main__":
    main()
