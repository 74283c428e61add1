"""g++ with and without the precompiled bits/stdc++.h: bare, and as the judge compiles, in a cell.

    python bench/compile.py [--quick] [--json FILE]

The sources are accepted programs of tests/corpus. Every compilation is of a text that was never compiled before (a
comment with a number is added), so that the compile cache never answers. All sides on one core.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from measure import Cost, Report, Rounds, options, ratio, rounds
from trivial import Bench, bench

from sandbox import languages, prebuilt
from sandbox.judge import Judge

PROGRAMS = ("neighborhoodwatch", "treasurespotting", "watchlater")
CORPUS = Path(__file__).parent.parent / "tests" / "corpus" / "programs"

CPP = languages.REGISTRY["cpp"]
HEADER_FLAGS = ("-I", f"{languages.HEADERS_IN_JAIL}/{CPP.id}")
PLAIN_CPP = dataclasses.replace(CPP, compile=tuple(part for part in CPP.compile if part not in HEADER_FLAGS))

PLAIN, HEADER = "g++", "g++, precompiled header"
CELL_PLAIN, CELL_HEADER = "cell, without the header", "cell, as the judge compiles"


class DidNotCompile(Exception):
    """A program of the corpus is refused: nothing measured would mean anything."""


def bare(here: Bench, source: Callable[[], bytes], flags: tuple[str, ...]) -> Cost:
    text = here.directory / "program.cpp"
    text.write_bytes(source())
    command = [*CPP.header, *flags, "-o", str(here.directory / "program"), str(text)]
    return here.account.cost(lambda: subprocess.run(command, check=True, stderr=subprocess.DEVNULL))


def in_cell(here: Bench, judge: Judge, source: Callable[[], bytes], language: languages.Language) -> Cost:
    def compile_once() -> None:
        compiled = judge.compiler.compile(language, source(), None)
        if compiled.artefact_fd is None or compiled.result.cached:
            raise DidNotCompile(compiled.result.message)
        os.close(compiled.artefact_fd)

    return here.account.cost(compile_once)


def shown_header(here: Bench) -> tuple[str, ...]:
    """The flags that find, outside a jail, the header that cells are shown."""
    for mount in prebuilt.mounts(here.config):
        source, _, target = mount.partition(":")
        if target == HEADER_FLAGS[1]:
            return "-I", source
    raise DidNotCompile("there is no precompiled header")


def program(here: Bench, name: str, count: int) -> Rounds:
    """The four ways to compile one program, in rounds."""
    text = (CORPUS / name / "accepted.cpp").read_bytes()
    numbers = itertools.count()
    header = shown_header(here)

    def source() -> bytes:
        return b"%s\n// %d\n" % (text, next(numbers))

    with contextlib.closing(here.judge()) as judge:
        return rounds(
            {
                PLAIN: lambda: bare(here, source, ()),
                HEADER: lambda: bare(here, source, header),
                CELL_PLAIN: lambda: in_cell(here, judge, source, PLAIN_CPP),
                CELL_HEADER: lambda: in_cell(here, judge, source, CPP),
            },
            count,
        )


def main() -> None:
    given = options(__doc__)
    report = Report("compile", given.quick)
    ratios: dict[str, list[float]] = {HEADER: [], CELL_HEADER: []}
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as directory, bench(Path(directory)) as here:
        for name in PROGRAMS:
            costs = program(here, name, 2 if given.quick else 7)
            report.compare(f"{name}/accepted.cpp", costs, PLAIN, "compilation")
            for side, walls in ratios.items():
                walls.append(ratio(costs[side], costs[PLAIN]).wall)
    for side, walls in ratios.items():
        report.goal(f"{side}, wall, of plain g++ (worst program)", max(walls), 0.4, " x")
    report.emit(given.json)


if __name__ == "__main__":
    main()
