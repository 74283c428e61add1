"""What is found of a frontier, in numbers and words: whether interpolation recovers it, and extrapolation extends it.

Pure; needs numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rl_client.evaluate.statistics import LEVEL, Estimate, with_sign
from rl_client.frontier.grid import Grid
from rl_client.frontier.statistics import FEWEST, Ellipse, ellipses, margin, rates


@dataclass(frozen=True, slots=True)
class Finding:
    """A margin, and what it says."""

    name: str
    margin: Estimate | None
    """None where the runs that it is of are not there."""
    words: str


@dataclass(frozen=True, slots=True)
class Findings:
    """All that is drawn and told of a grid."""

    grid: Grid
    rates: list[dict[str, Estimate]]
    """Of each run, by category."""
    ellipses: list[Ellipse | None]
    tests: tuple[Finding, ...]

    @staticmethod
    def of(grid: Grid) -> Findings:
        """Everything is computed from the same draws of problems."""
        shares = grid.shares
        return Findings(grid, rates(shares), ellipses(shares), tuple(_tests(grid)))


def _tests(grid: Grid) -> Sequence[Finding]:
    shares = grid.shares

    def found(name: str, points: list[int], others: list[int], lacks: str, words: Callable[[str, int], str]) -> Finding:
        if not points or not others:
            return Finding(name, None, f"{name}: cannot be told without {lacks}.")
        estimate = margin(shares, points, others)
        if estimate.mean is None or estimate.low is None or estimate.high is None:
            return Finding(name, estimate, f"{name}: cannot be told of fewer than {2 * FEWEST} problems.")
        sign = 1 if estimate.low > 0 else -1 if estimate.high < 0 else 0
        told = f"margin {with_sign(estimate.mean, 4)} [{with_sign(estimate.low, 4)}, {with_sign(estimate.high, 4)}]"
        return Finding(name, estimate, f"{name}: {words(told, sign)}.")

    def recovers(told: str, sign: int) -> str:
        # Here the trained ones are the points: what lies behind the frontier of interpolation is recovered by it.
        return {
            1: f"does not recover all of the trained frontier: a trained checkpoint lies beyond it, {told}",
            0: f"no trained checkpoint can be told to lie beyond what interpolation reaches, {told}",
            -1: f"recovers the trained frontier and passes it: all others that were trained lie behind, {told}",
        }[sign]

    def passes(told: str, sign: int) -> str:
        return {
            1: f"lies beyond the line between the trained checkpoints, {told}",
            0: f"cannot be told to lie beyond or behind the line between the trained checkpoints, {told}",
            -1: f"lies behind the line between the trained checkpoints, {told}",
        }[sign]

    def extends(told: str, sign: int) -> str:
        return {
            1: f"extends the trained frontier, {told}",
            0: f"cannot be told to extend the trained frontier, nor to stay behind it, {told}",
            -1: f"does not extend the trained frontier: it stays behind, {told}",
        }[sign]

    ends = grid.ends if len(grid.ends) == 2 else []
    needs = "evaluations at alpha 0 and 1"
    inside = f"{needs}, and one between them"
    if grid.others and ends:
        reached = ends + grid.inside if grid.inside else []
        interpolation = found("Interpolation", grid.others, reached, inside, recovers)
    else:
        interpolation = found("Interpolation", grid.inside, ends, inside, passes)
    return (
        interpolation,
        found("Extrapolation", grid.outside, grid.trained if ends else [], f"{needs}, and one beyond them", extends),
    )


def explained() -> str:
    """What a margin is, for who reads one."""
    return (
        "A margin is by how many failures per sample checkpoints lie beyond the frontier of others (below 0: behind "
        "it), at the price of the two kinds of failure at which that is most; a format error counts in full at every "
        "price; mixing samples of two checkpoints "
        "reaches the line between them, so that this line belongs to the frontier. Checkpoint and price are chosen "
        "on one half of the problems, and the margin is measured on the other, both ways, so that the choice does "
        "not flatter it. "
        f"{LEVEL:.0%} intervals: a bootstrap over problems."
    )
