"""What the paper's sweeps of a 7B and a 32B model take: disk, memory, time, cost. Prints the tables of docs/scale.md.

    python bench/scale.py [--samples 250] [--cores 64] ...

Rates are those that bench/README.md holds as measured. What was not measured here, speeds of a GPU above all, and what
the paper does not tell, is an assumption: a flag each, all told in the first table.

Sampling is bounded by what a GPU reads (its memory holds the weights and the keys and values of all samples in flight):

    in flight  S = (memory * 0.9 - weights) / (KV bytes per token * tokens in flight of a sample)
    tokens/s     = efficiency * S * bandwidth / (weights + S * KV bytes per token * tokens in flight of a sample)
"""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from measure import Cell, print_table
from rich.console import Console

PAGE = Path(__file__).parent / "README.md"
GB = 10**9
HOUR_S = 3600

#: CodeContests+, ccplus_1x: its problems and the parquet files that hold them.
TRAIN_PROBLEMS, TRAIN_GB = 11_690, 46.0
#: Of a completion's text, in generations.jsonl.
TOKEN_BYTES = 4


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Not measured here; each is a flag. `WHERE_FROM` says what it rests on."""

    alphas: int = 9
    problems: int = 880
    samples: int = 250
    tests: float = 40.19
    program_s: float = 0.046
    too_slow: float = 0.2
    limit_s: float = 6.0
    rewards: int = 6
    steps: int = 1000
    rollouts: int = 1024
    gpus: int = 8
    gpu_gb: float = 141.0
    gpu_gb_per_s: float = 4800.0
    efficiency: float = 0.5
    disk_gb_per_s: float = 1.0
    cores: int = 256
    core_hour: float = 0.05
    gpu_hour: float = 3.5
    terabyte_month: float = 80.0


WHERE_FROM = {
    "alphas": "merged checkpoints, -0.5 to 1.5 by 0.25; the paper's grid is not known",
    "problems": "of LiveCodeBench's release v5, all 880; the paper's window is a part of it",
    "samples": "per problem and checkpoint: pass@250",
    "tests": "per problem: the mean of CodeContests+ (11,682 problems)",
    "program_s": "a program's own CPU time on a test: 0.099 s, the median of arXiv 2607.25970, less 0.053 s of start",
    "too_slow": "share of programs that use up a time limit once; they stop there",
    "limit_s": "the time limit, as LiveCodeBench's own grader has it",
    "rewards": "training runs from one SFT checkpoint: R_1 ... R_5, R_inf",
    "steps": "of a training run",
    "rollouts": "of a step",
    "gpus": "H200",
    "gpu_gb": "memory of one, GB, by its data sheet",
    "gpu_gb_per_s": "bandwidth of that, by its data sheet",
    "efficiency": "share of that bandwidth a server reaches",
    "disk_gb_per_s": "what the disk of the checkpoints reads and writes",
    "cores": "of the grader, in all hosts",
    "core_hour": "price, dollars",
    "gpu_hour": "price, dollars",
    "terabyte_month": "price, dollars",
}


@dataclass(frozen=True, slots=True)
class Model:
    """Sizes from its config.json."""

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    intermediate: int
    words: int
    tokens: float
    """That it writes for a sample, assumed."""
    gpus: int
    """That hold it together."""

    @property
    def parameters(self) -> int:
        attention = self.hidden * self.head * (2 * self.heads + 2 * self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.intermediate) + 2 * self.words * self.hidden

    @property
    def weights_gb(self) -> float:
        """In bf16."""
        return self.parameters * 2 / GB

    def sequences(self, given: Assumptions) -> float:
        """In flight on the GPUs that hold it."""
        return (given.gpu_gb * self.gpus * 0.9 - self.weights_gb) / self._kv_gb

    def tokens_per_s(self, given: Assumptions) -> float:
        """Of one GPU."""
        read_gb = self.weights_gb + self.sequences(given) * self._kv_gb
        steps_per_s = given.efficiency * given.gpu_gb_per_s * self.gpus / read_gb
        return self.sequences(given) * steps_per_s / self.gpus

    @property
    def _kv_gb(self) -> float:
        """Of a sample that is half written, in bf16."""
        return 2 * self.layers * self.kv_heads * self.head * 2 * (self.tokens / 2) / GB


MODELS = (
    Model("Qwen 2.5 7B", 3584, 28, 28, 4, 128, 18944, 152_064, tokens=8000, gpus=1),
    Model("CWM 32B", 6144, 64, 48, 8, 128, 21504, 128_256, tokens=12_000, gpus=2),
)


@dataclass(frozen=True, slots=True)
class Rates:
    """As measured, on this project's two-core machine."""

    merge_gb_per_s: float
    merge_mb: float
    test_cpu_s: float
    share_run: float
    import_mb_per_s: float
    put_cpu_s: float
    stored: float

    @classmethod
    def measured(cls) -> Rates:
        page = PAGE.read_text()
        nine = float(_cell(page, "merge", "nine alphas", "wall s")) - float(_cell(page, "merge", "start", "wall s"))
        size = re.search(r"\*\*Two checkpoints of (\d+) MB\*\*(?=(?:(?!\*\*Two).)*\| nine alphas)", page, re.DOTALL)
        run = re.search(r"1024 submissions at once, (\d+) tests run", page)
        assert size is not None and run is not None
        return cls(
            merge_gb_per_s=int(size[1]) / 1000 * 11 / nine,
            merge_mb=float(_cell(page, "merge", "nine alphas", "peak MB")),
            test_cpu_s=float(_cell(page, "cluster", "on Redis", "CPU ms per test")) / 1000,
            share_run=int(run[1]) / (1024 * 20),
            import_mb_per_s=float(_cell(page, "datasets", "one row group, Snappy", "MB/s")),
            put_cpu_s=float(_cell(page, "datasets", "40", "CPU s each")),
            stored=float(_cell(page, "datasets", "40", "of tests")),
        )


def _cell(page: str, benchmark: str, row: str, column: str) -> str:
    """Of the first table among a benchmark's that has both."""
    figures = page.partition(f"<!-- figures: var/bench/{benchmark}.md -->")[2].partition("<!-- end -->")[0]
    columns: list[str] = []
    for line in figures.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = cells
        elif cells[0] == row and column in columns:
            return cells[columns.index(column)]
    raise SystemExit(
        f"{PAGE}: {benchmark} has no row {row!r} with {column!r}: run bench/{benchmark}.py, then bench/figures.py"
    )


@dataclass(frozen=True, slots=True)
class Work:
    """So many completions, sampled and graded."""

    completions: float
    model: Model
    given: Assumptions
    rates: Rates

    @property
    def gpu_hours(self) -> float:
        return self.completions * self.model.tokens / self.model.tokens_per_s(self.given) / HOUR_S

    @property
    def tests_run(self) -> float:
        return self.completions * self.given.tests * self.rates.share_run

    @property
    def core_hours(self) -> float:
        """Of the grader, and the most that it can take: no verdict is known from before, no program comes twice."""
        tests_s = self.tests_run * (self.given.program_s + self.rates.test_cpu_s)
        return (tests_s + self.completions * self.given.too_slow * self.given.limit_s) / HOUR_S

    def rows(self) -> list[tuple[str, Cell]]:
        given = self.given
        return [
            ("completions", f"{self.completions:,.0f}"),
            ("their text, GB", self.completions * self.model.tokens * TOKEN_BYTES / GB),
            ("sampling: GPU-hours", self.gpu_hours),
            (f"sampling: days on {given.gpus} GPUs", self.gpu_hours / given.gpus / 24),
            ("grading: millions of tests run", self.tests_run / 1e6),
            ("grading: core-hours", self.core_hours),
            (f"grading: hours on {given.cores} cores", self.core_hours / given.cores),
            ("cores that grade as fast as one GPU samples", self.core_hours / self.gpu_hours),
            ("sampling, dollars", f"{self.gpu_hours * given.gpu_hour:,.0f}"),
            ("grading, dollars", f"{self.core_hours * given.core_hour:,.0f}"),
        ]


def models(given: Assumptions) -> list[list[Cell]]:
    return [
        [
            model.name,
            model.parameters / 1e9,
            model.weights_gb,
            int(model.tokens),
            model.gpus,
            int(model.sequences(given)),
            int(model.tokens_per_s(given)),
        ]
        for model in MODELS
    ]


def merging(given: Assumptions, rates: Rates) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for model in MODELS:
        moved_gb = model.weights_gb * (2 + given.alphas)
        rate = min(rates.merge_gb_per_s, given.disk_gb_per_s)
        rows.append(
            [model.name, moved_gb, model.weights_gb * given.alphas, moved_gb / rate / 60, f"{rates.merge_mb:.0f}"]
        )
    return rows


def side_by_side(works: list[Work]) -> list[list[Cell]]:
    columns = [work.rows() for work in works]
    return [[cells[0][0], *(value for _, value in cells)] for cells in zip(*columns, strict=True)]


def storing(given: Assumptions, rates: Rates) -> list[list[Cell]]:
    import_h = TRAIN_GB * 1000 / rates.import_mb_per_s / HOUR_S
    stored_gb = TRAIN_GB * rates.stored
    once_h = TRAIN_PROBLEMS * given.tests * (given.program_s + rates.test_cpu_s) / HOUR_S
    return [
        ["reading the parquet files, minutes on one core", import_h * 60],
        ["putting them, checkers compiled: core-hours", TRAIN_PROBLEMS * rates.put_cpu_s / HOUR_S],
        ["stored, GB", stored_gb],
        ["stored, dollars a month", stored_gb / 1000 * given.terabyte_month],
        ["one right program for each problem, all tests: core-hours", once_h],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in asdict(Assumptions()).items():
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, type=type(default), default=default, help=f"{WHERE_FROM[name]} ({default})")
    given, rates = Assumptions(**vars(parser.parse_args())), Rates.measured()
    console = Console(highlight=False, markup=False, width=200)

    usual = asdict(Assumptions())
    assumed: list[list[Cell]] = [
        [name, str(value) if value == usual[name] else f"{value}, by default {usual[name]}", WHERE_FROM[name]]
        for name, value in asdict(given).items()
    ]
    print_table(console, "Assumed", ("flag", "value", "what it is, and what the default rests on"), assumed)
    measured: list[list[Cell]] = [
        ["averaging, GB read and written a second", "merge", rates.merge_gb_per_s],
        ["averaging, peak memory, MB", "merge", rates.merge_mb],
        ["a test's CPU ms, Redis, API and a trivial Python program in it", "cluster", rates.test_cpu_s * 1000],
        ["share of the tests that are run up to the first failure", "rollouts", rates.share_run],
        ["reading a data set, MB/s", "datasets", rates.import_mb_per_s],
        ["putting a problem with a testlib checker, CPU s", "datasets", rates.put_cpu_s],
        ["stored, of the tests' bytes", "datasets", rates.stored],
    ]
    print_table(console, "Measured, on two cores", ("what", "by bench/", "value"), measured)
    columns = [
        "model",
        "10^9 parameters",
        "GB in bf16",
        "tokens a sample",
        "GPUs",
        "samples in flight",
        "tokens/s a GPU",
    ]
    print_table(console, "Models, and how fast they sample by the formula above", columns, models(given))
    columns = ["model", "GB read and written", "GB of disk for the outputs", "minutes", "MB of memory"]
    print_table(console, f"Averaging: {given.alphas} checkpoints in one pass", columns, merging(given, rates))
    names = ("", *(model.name for model in MODELS))
    sampled = [Work(given.problems * given.alphas * given.samples, model, given, rates) for model in MODELS]
    title = f"The sweep: {given.alphas} checkpoints, {given.problems} problems, {given.samples} samples of each"
    print_table(console, title, names, side_by_side(sampled))
    trained = [Work(given.rewards * given.steps * given.rollouts, model, given, rates) for model in MODELS]
    step: list[Cell] = [
        f"a step's rewards, asked for at once: s on {given.cores} cores",
        *(Work(given.rollouts, model, given, rates).core_hours * HOUR_S / given.cores for model in MODELS),
    ]
    title = f"Rewards for training: {given.rewards} runs of {given.steps:,} steps of {given.rollouts:,} rollouts"
    print_table(console, title, names, [*side_by_side(trained), step])
    title = f"The {TRAIN_GB:.0f} GB of tests of CodeContests+ 1x, {TRAIN_PROBLEMS:,} problems"
    print_table(console, title, ("what", "value"), storing(given, rates))


if __name__ == "__main__":
    main()
