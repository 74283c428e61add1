"""`rkgrade evaluate` of completions that are there: whether it keeps every core busy, and what intervals cost.

    python bench/evaluate.py [--quick] [--json FILE]

Ten thousand completions, no two of them the same text, of 64 problems of 20 tests, seven in ten right and the others
wrong, are graded by a grader with a worker a core on the same cores. A core is busy where anything runs on it that this
caused: command, service, workers, programs. Beside it: 10,000 resamples of 1,000 problems with 16 rates.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from measure import Cost, CpuAccount, Report, options
from rollouts import PROBLEMS as PLACES
from rollouts import WRONG, tasks
from server import RKGRADE, serving

from rl_client.evaluate.report import Report as Evaluation
from rl_client.evaluate.statistics import RESAMPLES, estimates

COMPLETIONS = 10_000
#: Of ten; the others are wrong.
RIGHT = 7
PROBLEMS, RATES = 1000, 16

#: The goals.
LEAST_BUSY = 0.9
MOST_BOOTSTRAP_S = 2.0


def write(folder: Path, count: int) -> None:
    """`rows.jsonl`, the problems, and `completions.jsonl`."""
    dice = random.Random(1)
    of = tasks(dice)
    with (folder / "rows.jsonl").open("w") as file:
        for number, task in enumerate(of):
            row = {"key": str(number), "statement": "Sum.", "problem": task.problem(dice)}
            file.write(json.dumps(row) + "\n")
    with (folder / "completions.jsonl").open("w") as file:
        for number in range(count):
            place = number % PLACES
            source = of[place].python("" if number % 10 < RIGHT else WRONG["python"])
            completion = f"It is a sum.\n\n```python\n{source}# {number}\n```\n"
            file.write(json.dumps({"key": str(place), "completion": completion}) + "\n")


def graded(folder: Path) -> tuple[Cost, Evaluation]:
    """What it took, and what it came to. Raises ServerFailed and CalledProcessError."""
    with CpuAccount() as account, serving(folder) as server:
        command: list[str | Path] = [RKGRADE, "evaluate", "problems", folder / "rows.jsonl", "--out", folder / "out"]
        command += ["--completions", folder / "completions.jsonl", "--url", f"http://{server.host}:{server.port}"]
        before = account.mark()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        cost = account.mark().since(before)
    return cost, Evaluation.model_validate_json((folder / "out" / "report.json").read_bytes())


def bootstrap_s() -> float:
    values = np.random.default_rng(1).random((PROBLEMS, RATES))
    took = []
    for _ in range(5):
        begun = time.perf_counter()
        estimates(values)
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def main() -> None:
    chosen = options(__doc__)
    report = Report("evaluate", chosen.quick)
    count = 300 if chosen.quick else COMPLETIONS
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as name:
        write(Path(name), count)
        cost, found = graded(Path(name))
    wall_s, cpu_s, cores = cost.wall_ms / 1000, cost.cpu_ms / 1000, len(os.sched_getaffinity(0))
    right = Counter(number % PLACES for number in range(count) if number % 10 < RIGHT)
    wrong = sum(abs(right[int(one.key)] - one.categories["correct"]) for one in found.problems)
    busy = cpu_s / wall_s / cores
    report.table(
        f"{count:,} stored completions of 64 problems of 20 tests",
        ("command", "wall s", "CPU s", "completions/s", "cores busy", "graded wrong"),
        [["rkgrade evaluate --completions", wall_s, cpu_s, count / wall_s, f"{busy:.1%}", wrong]],
    )
    took = bootstrap_s()
    report.table(
        f"{RESAMPLES:,} resamples of {PROBLEMS:,} problems with {RATES} rates", ("what", "s"), [["intervals", took]]
    )
    report.goal("cores that are idle", 1 - busy, 1 - LEAST_BUSY)
    report.goal("intervals", took, MOST_BOOTSTRAP_S, " s")
    report.emit(chosen.json)


if __name__ == "__main__":
    main()
