"""What a pool of checkpoints comes to: `report_of` joins the statistics, `Report` is what the JSON holds."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from importlib.metadata import version

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from rl_client.ensemble.allocating import Allocation, Search, search_of
from rl_client.ensemble.comparing import SPLITS, Allocating, Comparison, compare
from rl_client.ensemble.coverage import Integers
from rl_client.ensemble.errors import BadBudget, Unfit
from rl_client.ensemble.flakiness import Flakiness
from rl_client.ensemble.runs import Run, with_equal_seeds
from rl_client.ensemble.turnover import Turnover, only
from rl_client.evaluate.statistics import LEVEL, RESAMPLES, Estimate, Floats, with_sign


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Member(_Part):
    """One checkpoint of the pool."""

    name: str
    folder: str
    alpha: float | None
    samples: tuple[int, int] = Field(description="Of a problem: the fewest and the most.")
    solved: int = Field(description="Problems with a correct sample.")
    only_here: int = Field(description="Of these, those that no other checkpoint solves.")
    pass_at: Estimate = Field(description="pass@budget of it alone.")
    share: int = Field(description="Its samples of the budget.")
    fold_shares: tuple[int, ...] | None = Field(
        description="Where they are optimised: those that the pool was estimated with, for each fold of each split."
    )
    best_of_folds: int = Field(description="In how many folds of all splits it was the best single one by the others.")


class Problem(_Part):
    """One problem."""

    key: str
    problem_id: str
    difficulty: str
    solved_by: tuple[str, ...] = Field(description="The names of the checkpoints with a correct sample.")


class Extrapolated(_Part):
    """Problems that only checkpoints with alpha outside of [0, 1] solve."""

    names: tuple[str, ...]
    problems: tuple[str, ...] = Field(description="By their keys.")
    by_chance: float = Field(description="How many are to be expected if all checkpoints were one.")


class Solving(_Part):
    """Which checkpoints solve which problems; matrices are in the order of the members."""

    problems: tuple[Problem, ...]
    jaccard: tuple[tuple[float | None, ...], ...] = Field(description="Null where neither solves any.")
    jaccard_by_chance: tuple[tuple[float | None, ...], ...] = Field(description="If each two were one checkpoint.")
    not_by: tuple[tuple[int, ...], ...] = Field(description="Problems that the row's solves and the column's does not.")
    extrapolated: Extrapolated | None = Field(description="Null unless some checkpoints are extrapolated, and not all.")


class Report(_Part):
    rkgrade: str
    difficulties: tuple[str, ...] = Field(description="Those of the problems that count; none: of any.")
    problems: int
    budget: int
    allocating: Allocating
    search: Search | None = Field(description="How the best allocation was looked for; null of a uniform one.")
    splits: int = Field(description="Ways in which the problems were put into folds.")
    folds: int
    resamples: int
    level: float
    seed: int
    members: tuple[Member, ...]
    pool: Estimate
    best: Estimate = Field(description="The best single checkpoint: for each fold the one that is best on the others.")
    best_seen: Estimate = Field(description="The one that looks best on all problems: too high.")
    gain: Estimate = Field(description="pool less best, paired by problem.")
    gain_seen: Estimate = Field(description="pool less best_seen.")
    words: str
    warnings: tuple[str, ...] = Field(
        default=(), description="Why the samples are not what the pool takes them for, a sentence each."
    )
    turnover: Solving
    flakiness: Flakiness


def report_of(
    runs: Sequence[Run],
    *,
    budget: int | None = None,
    allocating: Allocating = "uniform",
    folds: int = 5,
    difficulties: Collection[str] = (),
    seed: int = 0,
) -> Report:
    """`budget`: samples in all; None is as many as there are of each problem. `difficulties`: none is any.

    Raises BadBudget, BadRun, and Unfit where too few problems are left.
    """
    known = {one.difficulty for one in runs[0].problems.values()}
    for difficulty in difficulties:
        if difficulty not in known:
            raise Unfit(
                [f"--difficulty: no problem is {difficulty!r}; they are {', '.join(sorted(known - {''})) or 'without'}"]
            )
    places = sorted(
        place for place, one in runs[0].problems.items() if not difficulties or one.difficulty in difficulties
    )
    if len(places) < 2:
        raise Unfit(["there is one problem: on others than it was chosen by, no checkpoint can be judged"])
    samples, correct = _counts(runs, places)
    budget = _budget(runs, places, samples, budget)
    folds = min(folds, len(places))
    compared = compare(samples, correct, budget, allocating, folds, seed=seed)
    turnover = Turnover.of(samples, correct)
    names = [run.named.name for run in runs]
    keys = [key for key, _ in places]
    return Report(
        rkgrade=version("rkgrade"),
        difficulties=tuple(difficulties),
        problems=len(places),
        budget=budget,
        allocating=allocating,
        search=search_of(len(runs), budget) if allocating == "optimised" else None,
        splits=SPLITS,
        folds=folds,
        resamples=RESAMPLES,
        level=LEVEL,
        seed=seed,
        members=tuple(_member(runs[number], number, samples, turnover, compared) for number in range(len(runs))),
        pool=compared.pool,
        best=compared.best,
        best_seen=compared.best_seen,
        gain=compared.gain,
        gain_seen=compared.gain_seen,
        words=words_of(compared.gain, budget),
        warnings=tuple(itertools.starmap(_warning, with_equal_seeds(runs))),
        turnover=Solving(
            problems=tuple(
                Problem(
                    key=place[0],
                    problem_id=place[1],
                    difficulty=runs[0].problems[place].difficulty,
                    solved_by=tuple(itertools.compress(names, column)),
                )
                for place, column in zip(places, turnover.solved.T, strict=True)
            ),
            jaccard=_rows(turnover.jaccard),
            jaccard_by_chance=_rows(turnover.jaccard_by_chance),
            not_by=tuple(tuple(map(int, row)) for row in turnover.not_by),
            extrapolated=_extrapolated(runs, keys, samples, correct),
        ),
        flakiness=Flakiness.of((grade for run in runs for grade in run.grades()), {of_id for _, of_id in places}),
    )


def words_of(gain: Estimate, budget: int) -> str:
    """What the gain's interval says."""
    points, low, high = (100 * value for value in (gain.mean, gain.low, gain.high) if value is not None)
    interval = f"{with_sign(points, 1)} points of pass@{budget}, between {with_sign(low, 1)} and {with_sign(high, 1)}"
    if not any(round(value, 1) for value in (points, low, high)):
        return f"the pool covers as much as the best single checkpoint, to a tenth of a point of pass@{budget}"
    if low > 0:
        return f"the pool covers more than the best single checkpoint: {interval}"
    if high < 0:
        return f"the pool covers less than the best single checkpoint: {interval}"
    return f"the pool is not shown to cover more than the best single checkpoint, nor less: {interval}"


def _warning(run: str, several: Sequence[Run]) -> str:
    """Of samples that are not independent, for all that coverage takes them to be."""
    return (
        f"{', '.join(one.named.name for one in several)} were sampled with the same seeds (--run {run!r}): near "
        "checkpoints say the same with them, so that the pool and its gain look too low; sample each with a --run of "
        "its own"
    )


def _counts(runs: Sequence[Run], places: Sequence[tuple[str, str]]) -> tuple[Integers, Integers]:
    """Samples and correct ones, [checkpoints, problems]."""
    counts = np.array([[(run.problems[place].graded, run.problems[place].correct) for place in places] for run in runs])
    return counts[:, :, 0], counts[:, :, 1]


def _budget(runs: Sequence[Run], places: Sequence[tuple[str, str]], samples: Integers, budget: int | None) -> int:
    """Raises BadBudget where a checkpoint has fewer samples of a problem: it could not be the best single one."""
    fewest = int(samples.min())
    if budget is None:
        return fewest
    if budget > fewest:
        member, problem = divmod(int(samples.argmin()), len(places))
        raise BadBudget(
            f"--budget: pass@{budget} of a single checkpoint needs {budget} samples of each problem, and "
            f"{runs[member].named.name} has {fewest} of {places[problem][0]}"
        )
    return budget


def _member(run: Run, number: int, samples: Integers, turnover: Turnover, compared: Comparison) -> Member:
    solved = turnover.solved
    shares: tuple[Allocation, ...] | None = compared.fold_allocations
    return Member(
        name=run.named.name,
        folder=str(run.named.folder),
        alpha=run.named.alpha,
        samples=(int(samples[number].min()), int(samples[number].max())),
        solved=int(solved[number].sum()),
        only_here=int((solved[number] & (solved.sum(axis=0) == 1)).sum()),
        pass_at=compared.checkpoints[number],
        share=compared.allocation[number],
        fold_shares=None if shares is None else tuple(one[number] for one in shares),
        best_of_folds=compared.chosen.count(number),
    )


def _extrapolated(
    runs: Sequence[Run], keys: Sequence[str], samples: Integers, correct: Integers
) -> Extrapolated | None:
    some = [run.is_extrapolated for run in runs]
    if not any(some) or all(some):
        return None
    flags, by_chance = only(samples, correct, some)
    return Extrapolated(
        names=tuple(run.named.name for run in runs if run.is_extrapolated),
        problems=tuple(key for key, flag in zip(keys, flags, strict=True) if flag),
        by_chance=by_chance,
    )


def _rows(matrix: Floats) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(None if np.isnan(value) else float(value) for value in row) for row in matrix)
