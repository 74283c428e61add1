"""How many samples of a budget each checkpoint is to give. Pure; needs numpy.

What is made most of is a surrogate: the coverage 1 - product over j of (1 - c_j / n_j)^k_j, as if rates were known. It
is concave in k. The unbiased estimate (`coverage`), which is what is told of the allocation then, is no good to choose
by: of nearly all samples of a checkpoint it says whether there was a correct one at all, and is chosen for its luck.

Few allocations are all tried. Of more, the samples are given out one by one, each to the checkpoint of which it covers
most, and then moved between checkpoints one by one, as long as that covers more: each sample covers the less, the more
there were before it, so that one by one gets 1 - 1/e of the best at least (Nemhauser, Wolsey and Fisher 1978), and
hardly less than all of it in tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from rl_client.ensemble.coverage import Integers
from rl_client.evaluate.statistics import Floats

Allocation = tuple[int, ...]
Search = Literal["exact", "greedy"]

#: So many allocations are all tried.
MOST_TRIED = 3_000

#: What covers no more than that more is as good: then the evener allocation is taken.
_SAME = 1e-12

#: The log of a chance of nothing, such that none of it is nothing, too.
_NEVER = -1e3


def uniform(checkpoints: int, budget: int) -> Allocation:
    """The same of each; what is left over is given by the first ones, one each."""
    share, left = divmod(budget, checkpoints)
    return tuple(share + (number < left) for number in range(checkpoints))


def search_of(checkpoints: int, budget: int) -> Search:
    """How the best allocation is looked for."""
    return "exact" if math.comb(budget + checkpoints - 1, checkpoints - 1) <= MOST_TRIED else "greedy"


def optimised(rates: Floats, budget: int) -> Allocation:
    """The allocation that covers most of the problems by the surrogate. `rates`: correct samples of all, [checkpoints,
    problems].
    """
    return exact(rates, budget) if search_of(len(rates), budget) == "exact" else greedy(rates, budget)


def exact(rates: Floats, budget: int) -> Allocation:
    """All are tried."""
    logs = _logs(rates)
    tried = list(_allocations(len(rates), budget))
    misses = np.array([np.exp(np.array(one) @ logs).mean() for one in tried])
    return tried[_least(misses, np.array([sum(k * k for k in one) for one in tried]))]


def greedy(rates: Floats, budget: int) -> Allocation:
    """One by one, then moved one by one."""
    logs = _logs(rates)
    given = np.zeros(len(rates), dtype=np.int64)
    missed = np.ones(rates.shape[1])
    for _ in range(budget):
        taker = _least((missed * np.exp(logs)).mean(axis=1), given)
        given[taker] += 1
        missed = np.exp(given @ logs)
    least = float(missed.mean())
    while True:
        moves = []
        for donor in map(int, np.flatnonzero(given)):
            fewer = given - (np.arange(len(given)) == donor)
            misses = np.exp(fewer @ logs + logs).mean(axis=1)
            moves.append((float(misses.min()), donor, int(misses.argmin())))
        best, donor, taker = min(moves)
        if best >= least - _SAME:
            return tuple(given.tolist())
        least = best
        given[donor] -= 1
        given[taker] += 1


def _logs(rates: Floats) -> Floats:
    """[checkpoints, problems]: the log chance that one sample is not correct."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log1p(-rates), _NEVER)


def _least(misses: Floats, given: Integers) -> int:
    """Where the least is missed; of those that miss as much, where least was given."""
    [same] = np.nonzero(misses <= misses.min() + _SAME)
    return int(same[given[same].argmin()])


def _allocations(checkpoints: int, budget: int) -> Iterator[Allocation]:
    """All of them: a bar between one checkpoint's samples and the next one's."""
    places = budget + checkpoints - 1
    for bars in itertools.combinations(range(places), checkpoints - 1):
        ends = (-1, *bars, places)
        yield tuple(after - before - 1 for before, after in itertools.pairwise(ends))
