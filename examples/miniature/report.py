"""What a run of the miniature came to, in Markdown: whether each of the paper's claims is shown, by which numbers.

A claim is shown where its 95 % interval lies on its side of 0, contradicted where it lies on the other, and else
neither; problems are seen where there are more than are to be expected by chance. Intervals are those that `rkgrade
frontier` and `rkgrade ensemble` have printed; the differences of two checkpoints' rates are paired by problem, by the
same bootstrap.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rl_client.ensemble.report import Report as Ensemble
from rl_client.ensemble.runs import Run, read_runs
from rl_client.evaluate.report import CATEGORIES, ProblemCounts
from rl_client.evaluate.statistics import Estimate, estimates, with_sign

POOLS = ("ensemble", "ensemble-optimised")
TRAINED = ("r_2", "r_4", "r_inf")


@dataclass(frozen=True, slots=True)
class Claim:
    """One of the paper's, and what was measured here."""

    text: str
    verdict: str
    numbers: str


def main() -> None:
    folder, out = map(Path, sys.argv[1:])
    out.write_text("\n".join(report(folder)) + "\n")


def report(folder: Path) -> Iterator[str]:
    """Its lines."""
    evaluations = [str(one.parent) for one in sorted(folder.glob("line/*/report.json"))]
    runs = {run.named.name: run for run in read_runs(evaluations)}
    pools = {name: Ensemble.model_validate_json((folder / f"{name}.json").read_bytes()) for name in POOLS}
    yield "# The paper in miniature: what this run shows\n"
    if (folder / "size").read_text() == "quick":
        yield "It is a `--quick` run: with so few and easy problems hardly anything can be told.\n"
    yield "| the paper's claim | here | measured |\n| --- | --- | --- |"
    for claim in claims(runs, margins(folder / "line" / "margins.csv"), pools):
        yield f"| {claim.text} | **{claim.verdict}** | {claim.numbers} |"
    yield "\n## Checkpoints\n\nRates over held-out problems, with 95 % intervals.\n"
    yield from table(runs)
    yield "\n![The frontier](line/frontier.png)\n\n![What became of samples](line/categories.png)\n"
    for name in ("frontier", *POOLS):
        yield f"## `rkgrade {name}`\n\n```\n{(folder / f'{name}.log').read_text().rstrip()}\n```\n"
    yield "## Training\n\nMean reward of the samples of the first steps and of the last: of five, or of half of few.\n"
    yield "| reward | first | last |\n| --- | --- | --- |"
    for name in TRAINED:
        rewards = [step["reward"] for step in history(folder / f"{name}.training") if "reward" in step]
        some = min(5, len(rewards) // 2)
        yield f"| {name} | {np.mean(rewards[:some]):.3f} | {np.mean(rewards[-some:]):.3f} |"
    yield "\n## Seconds\n\nWhere a stage was ended in its middle, those since it went on.\n"
    yield "| stage | s |\n| --- | --- |"
    for stage in ("prepare", "import", "sft", *TRAINED, "merge", "frontier", *POOLS):
        yield f"| {stage} | {(folder / 'done' / stage).read_text().strip()} |"


def claims(runs: dict[str, Run], margin: dict[str, Estimate], pools: dict[str, Ensemble]) -> Iterator[Claim]:
    """Each of the paper's, in its order."""
    low, high = runs["alpha=0"], runs["alpha=1"]
    more = difference(low, high, lambda one: rate(one, "optimization_failure"))
    fewer = difference(high, low, lambda one: rate(one, "correctness_failure"))
    yield Claim(
        "Training under a small k moves failures from correctness to optimization",
        both(verdict(more), verdict(fewer)),
        f"R_2 against R_inf: {told(more)} optimization failures, {told(fewer, -1)} correctness failures",
    )
    inside, beyond = margin["Interpolation"], margin["Extrapolation"]
    yield Claim(
        "Averages of the two ends (0 < alpha < 1) recover the frontier of what is trained between them",
        {"shown": "contradicted", "contradicted": "shown"}.get(verdict(inside), "not contradicted"),
        f"the best trained checkpoint lies {told(inside)} failures per sample beyond the averages",
    )
    yield Claim(
        "Averages beyond the ends extend it",
        verdict(beyond),
        f"they lie {told(beyond)} failures per sample beyond all that was trained",
    )
    alone = pools["ensemble"].turnover.extrapolated
    if alone is not None:
        yield Claim(
            "Extrapolated checkpoints solve problems that no other does",
            "seen" if len(alone.problems) > alone.by_chance else "not seen",
            f"{len(alone.problems)} of {pools['ensemble'].problems} problems, which no average with 0 <= alpha <= 1 "
            f"solves; by chance alone {alone.by_chance:.1f}",
        )
    for pool in pools.values():
        yield Claim(
            f"A pool (-0.5 <= alpha <= 1.5, {pool.allocating} shares) covers more than the best single checkpoint",
            verdict(pool.gain),
            f"pass@{pool.budget} {told(pool.gain)}",
        )
    ordered = sorted(
        (run for run in runs.values() if run.named.alpha is not None), key=lambda run: run.named.alpha or 0
    )
    below = difference(ordered[0], low, lambda one: rate(one, "format_error"))
    above = difference(ordered[-1], high, lambda one: rate(one, "format_error"))
    yield Claim(
        "Far beyond the ends answers lose their form",
        both(verdict(below), verdict(above)),
        f"format errors: {told(below)} at alpha {ordered[0].named.alpha:g} against 0, {told(above)} at "
        f"{ordered[-1].named.alpha:g} against 1",
    )


def rate(one: ProblemCounts, category: str) -> float:
    return one.categories[category] / one.graded


def difference(one: Run, other: Run, metric: Callable[[ProblemCounts], float]) -> Estimate:
    """How much more of it `one` has, paired by problem."""
    values = [[metric(counts) - metric(other.problems[place])] for place, counts in one.problems.items()]
    return estimates(np.array(values))[0]


def verdict(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return "cannot be told"
    return "shown" if estimate.low > 0 else "contradicted" if estimate.high < 0 else "not shown"


def both(one: str, other: str) -> str:
    """A claim with two parts."""
    order = ("contradicted", "cannot be told", "not shown", "shown")
    return min(one, other, key=order.index)


def told(estimate: Estimate, sign: int = 1) -> str:
    if estimate.mean is None or estimate.low is None or estimate.high is None:
        return "(not told)"
    mean, low, high = (sign * value for value in (estimate.mean, estimate.low, estimate.high))
    return f"{with_sign(mean, 3)} [{with_sign(min(low, high), 3)}, {with_sign(max(low, high), 3)}]"


def margins(path: Path) -> dict[str, Estimate]:
    def number(text: str) -> float | None:
        return float(text) if text else None

    with path.open(newline="") as file:
        return {
            row["of"]: Estimate(number(row["margin"]), number(row["low"]), number(row["high"]), 0)
            for row in csv.DictReader(file)
        }


def table(runs: dict[str, Run]) -> Iterator[str]:
    yield "| checkpoint | " + " | ".join(name.replace("_", " ") for name in CATEGORIES) + " | R_2 | R_4 |"
    yield "| --- " * (len(CATEGORIES) + 3) + "|"

    def rung(one: ProblemCounts, name: str) -> float:
        # Beyond a problem's longest input it is R_inf.
        passed = one.rewards.get(name, one.rewards["R_inf"])
        return float("nan") if passed is None else passed / one.graded

    def place(run: Run) -> tuple[bool, float]:
        return run.named.alpha is not None, run.named.alpha or 0.0

    for run in sorted(runs.values(), key=place):
        counts = run.problems.values()
        values = [[*(rate(one, name) for name in CATEGORIES), rung(one, "R_2"), rung(one, "R_4")] for one in counts]
        cells = (f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]" for one in estimates(np.array(values)))
        yield f"| {run.named.name} | " + " | ".join(cells) + " |"


def history(training: Path) -> list[dict[str, float]]:
    """What TRL logged of each step."""
    state = json.loads((training / "trainer_state.json").read_text())
    steps: list[dict[str, float]] = state["log_history"]
    return steps


if __name__ == "__main__":
    main()
