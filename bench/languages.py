"""A+B in languages whose runtimes take long to start: bare, and through a judge in a cell that is up.

    python bench/languages.py [--quick] [--json FILE]

Bare is what a person would type: `java -cp . Sum` with the class that plain javac made, `node main.js`. The judge runs
with the limits of a test, so that the virtual machine has its heap from the memory limit. On one core, in turn in every
round. Needs the toolchains (`scripts/run --languages java,javascript`).
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from measure import Report, options, ratio, rounds
from trivial import SOURCES, Bench, bench, problem

from sandbox import languages

JAVA, NODE = languages.REGISTRY["java"], languages.REGISTRY["javascript"]


def bare_commands(here: Bench) -> Mapping[str, list[str]]:
    """How each language's A+B is started without a sandbox, compiled where it must be."""
    (here.directory / "Sum.java").write_text(JAVA.self_test)
    subprocess.run(["/usr/bin/javac", "Sum.java"], cwd=here.directory, check=True)
    (here.directory / "main.js").write_text(NODE.self_test)
    return {
        "java": ["/usr/bin/java", "-cp", str(here.directory), "Sum"],
        "javascript": ["/usr/bin/node", str(here.directory / "main.js")],
    }


def start_up(report: Report, here: Bench, count: int) -> None:
    several = problem(6)
    for language, command in bare_commands(here).items():
        SOURCES[language] = languages.REGISTRY[language].self_test
        bare, judged = f"bare {Path(command[0]).name}", "judge, cell up: each further test"
        costs = rounds(
            {
                bare: partial(here.spawn, command, 5),
                judged: partial(here.next_test, language, several),
            },
            count,
        )
        name = languages.REGISTRY[language].name
        report.compare(f"Trivial {name} test", costs, bare, "test")
        found = ratio(costs[judged], costs[bare])
        if language == "java":
            report.goal("Java test through the judge, wall, of bare java", found.wall, 1.3, " x")
            report.goal("Java test through the judge, CPU, of bare java", found.cpu, 1.3, " x")


def main() -> None:
    given = options(__doc__)
    report = Report("languages", given.quick)
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as directory, bench(Path(directory)) as here:
        start_up(report, here, 3 if given.quick else 15)
        report.emit(given.json)


if __name__ == "__main__":
    main()
