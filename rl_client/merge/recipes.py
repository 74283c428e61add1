"""What to make of checkpoints: their weights in each output, and the name of its folder."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, DecimalException

#: So many outputs are written at once; each takes a descriptor and a buffer.
MOST = 64
#: Of the name of a folder; file systems take 255 bytes, `.partial` among them.
_NAME = 240


@dataclass(frozen=True, slots=True)
class Recipe:
    """One output."""

    name: str
    """Of its folder."""
    coefficients: tuple[float, ...]
    """Of the checkpoints, in the order in which they are given: of two (1 - alpha, alpha)."""
    alpha: float | None = None


def of_alpha(alpha: float) -> Recipe:
    """alpha * high + (1 - alpha) * low. Raises ValueError."""
    if not math.isfinite(alpha):
        raise ValueError(f"alpha must be a finite number, not {alpha}")
    # -0 is 0, on the card as in the folder's name.
    alpha += 0.0
    return Recipe(f"alpha={_written(alpha)}", (1 - alpha, alpha), alpha)


def of_weights(text: str, checkpoints: int, *, of_changes: bool = False) -> Recipe:
    """Of weights such as `0.5,0.3,0.2`; `of_changes`: of adapters, for which any sum makes sense. Raises ValueError."""
    try:
        weights = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"weights must be numbers with commas between them, not {text!r}") from None
    if len(weights) != checkpoints:
        raise ValueError(f"{len(weights)} weights for {checkpoints} checkpoints: {text}")
    if not all(map(math.isfinite, weights)):
        raise ValueError(f"weights must be finite numbers, not {text}")
    if not of_changes and not math.isclose(sum(weights), 1, abs_tol=1e-6):
        raise ValueError(f"weights must add up to 1, and {text} come to {sum(weights):g}")
    name = "weights=" + ",".join(map(_written, weights))
    if len(name) > _NAME:
        name = f"weights={len(weights)}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return Recipe(name, weights)


def alphas_of(text: str) -> list[float]:
    """Those of a range `first:last:step`, both ends included. Raises ValueError."""
    try:
        first, last, step = (Decimal(part) for part in text.split(":"))
    except (ValueError, DecimalException):
        raise ValueError(f"a range of alphas is FIRST:LAST:STEP, such as -0.5:1.5:0.25, not {text!r}") from None
    if not (first.is_finite() and last.is_finite() and step.is_finite()) or step <= 0 or last < first:
        raise ValueError(f"a range of alphas needs FIRST <= LAST and a STEP above 0, not {text!r}")
    try:
        count = int((last - first) / step) + 1
    except DecimalException:
        raise ValueError(f"{text} are more alphas than can be counted; {MOST} at most are made in one pass") from None
    if count > MOST:
        raise ValueError(f"{text} are {count:,} alphas; {MOST} at most are made in one pass")
    return [float(first + number * step) for number in range(count)]


def distinct(recipes: Iterable[Recipe]) -> Sequence[Recipe]:
    """Each folder once, in order. Raises ValueError where there are too many."""
    chosen = list({recipe.name: recipe for recipe in recipes}.values())
    if len(chosen) > MOST:
        raise ValueError(f"{len(chosen)} outputs; {MOST} at most are made in one pass")
    return chosen


def _written(number: float) -> str:
    """The shortest text that is read as the same number."""
    return "0" if number == 0 else repr(number).removesuffix(".0")
