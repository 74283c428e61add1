"""Labels of points, wherever these lie."""

from __future__ import annotations

import itertools
import random

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from rl_client.frontier.labels import Point, label, short


def boxes(*points: Point) -> tuple[list[Bbox], Bbox]:
    """Of the labels, and of the axes."""
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.plot([one.x for one in points], [one.y for one in points], "o")
    label(figure, axes, points)
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    figure.draw_without_rendering()
    assert [text.get_text() for text in axes.texts] == [one.words for one in points]
    # Without the lines to their points.
    return [Text.get_window_extent(text, renderer) for text in axes.texts], axes.get_window_extent()


def cluster() -> list[Point]:
    draws = random.Random(0)
    return [Point(draws.gauss(0.2, 0.02), draws.gauss(0.3, 0.02), f"{step / 8 - 0.5:g}") for step in range(17)]


@pytest.mark.parametrize(
    "points",
    [
        cluster(),
        # Four at one place, and others at the edges.
        [*(Point(0.2, 0.3, f"{alpha}") for alpha in (0.875, 1, 1.125, 1.25)), Point(0, 0, "-0.5"), Point(1, 1, "1.5")],
        [Point(1, 0.5, "trained under a reward"), Point(0, 0.5, "trained under another one")],
    ],
)
def test_labels_cover_no_other_and_are_cut_off_nowhere(points: list[Point]) -> None:
    found, inside = boxes(*points)
    assert not [pair for pair in itertools.combinations(found, 2) if Bbox.intersection(*pair) is not None]
    assert all(inside.contains(*corner) for box in found for corner in (box.min + 0.01, box.max - 0.01))


def test_long_names_are_drawn_by_both_ends() -> None:
    assert short("trained with R_3") == "trained with R_3"
    assert short("trained from one checkpoint with R_3") == "trained from...with R_3"
    assert short("x" * 25) == f"{'x' * 13}...{'x' * 8}"
