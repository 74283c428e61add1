"""Labels of points in a figure, each where it can be read: beside its point, on no other label and no other point.

Greedy: points get their labels one after the other, each at the nearest place around it that covers least. A label that
is not right beside its point has a line to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

_SIZE = "small"

#: Of a name that is drawn; tables have all of it.
_MOST_CHARS, _LAST_CHARS = 24, 8

#: Around a point, the better ones first: to the right and left, up and down.
_SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
_DISTANCES_PT = (5.0, 11.0, 19.0, 29.0, 41.0)

_MARKER_PT = 7.0
"""Half of a point's width, with some room around it."""


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    words: str


def short(name: str) -> str:
    """What is drawn of a name: of a long one both ends, which most often tell it from others."""
    if len(name) <= _MOST_CHARS:
        return name
    return f"{name[: _MOST_CHARS - _LAST_CHARS - 3].rstrip()}...{name[-_LAST_CHARS:].lstrip()}"


def label(figure: Figure, axes: Axes, points: Sequence[Point]) -> None:
    """Write each point's words beside it. All else is drawn already: what moves the axes after this is too late."""
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    figure.draw_without_rendering()
    scale = figure.dpi / 72
    inside = axes.get_window_extent()
    spots = [tuple(map(float, axes.transData.transform((one.x, one.y)))) for one in points]
    taken = [_box(x, y, 0, 0, 2 * _MARKER_PT * scale, 2 * _MARKER_PT * scale) for x, y in spots]
    for one, (x, y) in zip(points, spots, strict=True):
        text = axes.annotate(one.words, (one.x, one.y), xytext=(0, 0), textcoords="offset points", fontsize=_SIZE)
        size = text.get_window_extent(renderer)
        text.remove()
        places = [
            (_covered(box, taken, inside), distance, number, box, (across, up))
            for distance, (number, (across, up)) in itertools.product(_DISTANCES_PT, enumerate(_SIDES))
            for box in (_box(x + across * distance * scale, y + up * distance * scale, across, up, *size.size),)
        ]
        _, distance, _, box, (across, up) = min(places, key=lambda place: place[:3])
        taken.append(box)
        line = {"arrowstyle": "-", "linewidth": 0.5, "color": "#55555f", "shrinkA": 0, "shrinkB": 2}
        axes.annotate(
            one.words,
            (one.x, one.y),
            xytext=(across * distance, up * distance),
            textcoords="offset points",
            fontsize=_SIZE,
            ha=("right", "center", "left")[across + 1],
            va=("top", "center", "bottom")[up + 1],
            arrowprops=line if distance > _DISTANCES_PT[0] else None,
            zorder=4,
        ).set_in_layout(False)


def _box(x: float, y: float, across: int, up: int, width: float, height: float) -> Bbox:
    """Of this size, on that side of a place; around it where the side is 0."""
    return Bbox.from_bounds(x + (across - 1) * width / 2, y + (up - 1) * height / 2, width, height)


def _covered(box: Bbox, taken: Sequence[Bbox], inside: Bbox) -> float:
    """How much of what is taken it covers, and how much of it is cut off, in pixels."""
    return round(sum(_overlap(box, one) for one in taken) + box.width * box.height - _overlap(box, inside), 3)


def _overlap(one: Bbox, other: Bbox) -> float:
    both = Bbox.intersection(one, other)
    return 0.0 if both is None else float(both.width * both.height)
