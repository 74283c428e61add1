"""Success in k tries, estimated from n of them without bias. Pure; standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterable


def pass_at_k(samples: int, successes: int, k: int) -> float:
    """1 - C(n - c, k) / C(n, k): the chance that k of the n samples hold one of the c good ones (Chen et al. 2021,
    arXiv 2107.03374).

    In whole numbers until the one division, so that it is rounded once. Raises ValueError where k is more than n, since
    nothing is known of more tries than were made (others answer 1 then), and for numbers that are none of samples.
    """
    if not 0 <= successes <= samples:
        raise ValueError(f"{successes} successes of {samples} samples")
    if not 1 <= k <= samples:
        raise ValueError(f"k is {k}: with {samples} samples it lies between 1 and {samples}")
    ways = math.comb(samples, k)
    return (ways - math.comb(samples - successes, k)) / ways


def fix_at_k(repairs: Iterable[tuple[int, int]], k: int) -> float:
    """Success given a known failure: the mean of pass@k over failed programs, each with (repairs tried, repairs that
    passed) of its own (arXiv 2605.28751).

    No rate of a whole run: what passed at once is not in it. Raises ValueError where a program has fewer repairs than
    k, and where there is none.
    """
    chances = [pass_at_k(samples, successes, k) for samples, successes in repairs]
    if not chances:
        raise ValueError("no failed program was repaired: fix@k is the mean over such")
    return math.fsum(chances) / len(chances)
