"""What all benchmarks share: rounds that interleave the sides, one account of CPU time, and reports.

CPU time is the kernel's, of everything a side caused: the benchmark enters a group of its own in cgroup v1's cpuacct
hierarchy, and reads that group's counter, which holds every process that was ever in it or below it: judges, nsjail,
wardens, compilers, programs, dead ones included. Judges and servers started afterwards make their groups below it. On
cgroup v2 the counter of the group that the benchmark was started in serves, so nothing else should run there.

Knows nothing of the grader but where its groups lie.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from sandbox import cgroups

#: Groups of benchmarks that died are recognised by this, and removed by the next one.
GROUP = "rkgrade-bench-"
GONE_WITHIN_S = 10.0

Cell = str | float | int | None


# ---------------------------------------------------------------------------------------------------------------
# What something cost


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one unit (a test, a compilation), in milliseconds. CPU is user and system time of all that took part."""

    wall_ms: float
    cpu_ms: float

    def per(self, units: int) -> Cost:
        return Cost(self.wall_ms / units, self.cpu_ms / units)


class CpuAccount:
    """CPU seconds of this process and of everything it starts. Enter it before opening judges or starting servers."""

    def __init__(self) -> None:
        hierarchies = cgroups.here()
        self._home = hierarchies.directories["cpuacct"]
        self._own: Path | None = None
        if hierarchies.version == "v1":
            self._own = self._home / f"{GROUP}{os.getpid()}"
            counter = self._own / "cpuacct.usage"
        else:
            counter = self._home / "cpu.stat"
        self._counter = counter
        self._fd = -1

    def __enter__(self) -> CpuAccount:
        if self._own is not None:
            for left in self._home.glob(f"{GROUP}*"):
                if not Path("/proc", left.name.removeprefix(GROUP)).exists():
                    _remove(left)
            self._own.mkdir()
            (self._own / "cgroup.procs").write_text("0")
        self._fd = os.open(self._counter, os.O_RDONLY | os.O_CLOEXEC)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        if self._own is not None:
            # Not only this process: multiprocessing keeps a helper until the interpreter ends.
            for pid in (self._own / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    (self._home / "cgroup.procs").write_text(pid)
            _remove(self._own)

    def cpu_s(self) -> float:
        text = os.pread(self._fd, 4096, 0)
        if self._own is not None:
            return int(text) / 1e9
        return int(text.split()[1]) / 1e6

    def mark(self) -> Mark:
        return Mark(time.perf_counter(), self.cpu_s())

    def cost(self, work: Callable[[], object]) -> Cost:
        before = self.mark()
        work()
        return self.mark().since(before)


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment, on the clock and in the account."""

    at_s: float
    cpu_s: float

    def since(self, earlier: Mark) -> Cost:
        return Cost((self.at_s - earlier.at_s) * 1e3, (self.cpu_s - earlier.cpu_s) * 1e3)


def _remove(group: Path) -> None:
    """Remove a group and those below it, once the last exiting process has left them."""
    until = time.monotonic() + GONE_WITHIN_S
    for path, _, _ in os.walk(group, topdown=False):
        while True:
            try:
                Path(path).rmdir()
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)


# ---------------------------------------------------------------------------------------------------------------
# Rounds

Rounds = Mapping[str, Sequence[Cost]]


def rounds(sides: Mapping[str, Callable[[], Cost]], count: int) -> Rounds:
    """Run every side once in each of `count` rounds, after one that is not counted: A B A B, never A A B B.

    Whatever else the machine does then falls on all sides alike.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    for number in range(count + 1):
        for name, side in sides.items():
            cost = side()
            if number > 0:
                costs[name].append(cost)
    return costs


def median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.wall_ms for cost in costs),
        statistics.median(cost.cpu_ms for cost in costs),
    )


@dataclass(frozen=True, slots=True)
class Ratio:
    """How much one side costs of the other: the median of the ratios of the rounds, and their quartiles."""

    wall: float
    wall_low: float
    wall_high: float
    cpu: float

    @property
    def wall_spread(self) -> str:
        return f"{self.wall_low:.2f}-{self.wall_high:.2f}"


def ratio(of: Sequence[Cost], to: Sequence[Cost]) -> Ratio:
    walls = [one.wall_ms / other.wall_ms for one, other in zip(of, to, strict=True)]
    cpus = [one.cpu_ms / other.cpu_ms for one, other in zip(of, to, strict=True)]
    low, middle, high = statistics.quantiles(walls, n=4, method="inclusive")
    return Ratio(middle, low, high, statistics.median(cpus))


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that `share` of the values do not exceed (nearest rank)."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


# ---------------------------------------------------------------------------------------------------------------
# Reports


@dataclass(frozen=True, slots=True)
class Goal:
    what: str
    measured: float
    at_most: float
    unit: str = ""

    @property
    def reached(self) -> bool:
        return self.measured <= self.at_most


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    columns: tuple[str, ...]
    rows: list[list[Cell]]


@dataclass(slots=True)
class Report:
    """Tables and goals of one benchmark, printed as Markdown (as `bench/README.md` holds them) and kept as JSON."""

    name: str
    quick: bool
    host: dict[str, Cell] = field(default_factory=lambda: host())
    sections: list[Section] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)

    def table(self, title: str, columns: Sequence[str], rows: list[list[Cell]]) -> None:
        self.sections.append(Section(title, tuple(columns), rows))

    def compare(self, title: str, costs: Rounds, base: str, unit: str) -> None:
        """A table of sides by median cost of a unit, each with its ratio to the side `base`."""
        columns = (f"per {unit}", "wall ms", "CPU ms", "wall ratio", "quartiles", "CPU ratio")
        rows: list[list[Cell]] = []
        for name, of in costs.items():
            middle = median(of)
            row: list[Cell] = [name, middle.wall_ms, middle.cpu_ms]
            if name == base:
                row += [1, "", 1]
            else:
                found = ratio(of, costs[base])
                row += [found.wall, found.wall_spread, found.cpu]
            rows.append(row)
        self.table(title, columns, rows)

    def goal(self, what: str, measured: float, at_most: float, unit: str = "") -> None:
        self.goals.append(Goal(what, measured, at_most, unit))

    def emit(self, file: Path | None) -> None:
        console = Console(highlight=False, markup=False, width=180)
        console.print(f"*{self.name}: {', '.join(f'{key} {_shown(value)}' for key, value in self.host.items())}*")
        if self.quick:
            console.print("\n*quick: too few rounds for figures to quote*")
        for section in self.sections:
            print_table(console, section.title, section.columns, section.rows)
        if self.goals:
            rows: list[list[Cell]] = [
                [goal.what, f"{_shown(goal.measured)}{goal.unit}", f"<= {_shown(goal.at_most)}{goal.unit}", _word(goal)]
                for goal in self.goals
            ]
            print_table(console, "Goals", ("what", "measured", "goal", "reached"), rows)
        if file is not None:
            goals = [{**asdict(goal), "reached": goal.reached} for goal in self.goals]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({**asdict(self), "goals": goals}, indent=1) + "\n")


def _word(goal: Goal) -> str:
    return "yes" if goal.reached else "NO"


def print_table(console: Console, title: str, columns: Sequence[str], rows: list[list[Cell]]) -> None:
    """As Markdown."""
    table = Table(box=box.MARKDOWN)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(_shown, row))
    with console.capture() as printed:
        console.print(table)
    console.print(f"\n**{title}**\n")
    # Rich draws the edges that Markdown's box does not have as lines of spaces.
    console.print("\n".join(line for line in printed.get().splitlines() if line.strip()))


def _shown(value: Cell) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        decimals = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
        return f"{value:z.{decimals}f}"
    return str(value)


def host() -> dict[str, Cell]:
    """When they are of and what figures depend on, the load before included: they mean little on a busy machine."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "on": date.today().isoformat(),
        "CPU": model,
        "cores": len(os.sched_getaffinity(0)),
        "Linux": platform.release(),
        "Python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


# ---------------------------------------------------------------------------------------------------------------
# The command line of every benchmark


@dataclass(frozen=True, slots=True)
class Options:
    quick: bool
    json: Path | None


def parser(doc: str | None) -> argparse.ArgumentParser:
    """For a benchmark that has options of its own, too."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="few rounds: does it run, not what does it cost")
    made.add_argument("--json", type=Path, metavar="FILE", help="write everything measured to FILE as well")
    return made


def options(doc: str | None) -> Options:
    arguments = parser(doc).parse_args()
    return Options(arguments.quick, arguments.json)


@contextlib.contextmanager
def pinned(core: int) -> Iterator[None]:
    """All sides on one core: what is compared then never gains by a second one."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
