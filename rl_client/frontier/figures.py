"""The figures of a frontier, by matplotlib: as PNG and SVG files, and as SVG texts that stand within a page.

Names of runs are drawn as they are: nothing in them is a formula. Needs the extra `frontier`.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse as Patch

from rl_client.ensemble.runs import Run
from rl_client.evaluate.report import CATEGORIES
from rl_client.evaluate.statistics import LEVEL, Estimate
from rl_client.frontier.findings import Findings
from rl_client.frontier.labels import Point, label, short

DOTS_PER_INCH = 150

COLOURS = dict(zip(CATEGORIES, ("#2a9d5c", "#e0a526", "#c8483c", "#7d7d8a"), strict=True))
_MERGED, _TRAINED = "#3566b8", "#111111"

#: The same drawing is the same file; texts stay texts.
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "rkgrade",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "text.parse_math": False,
}


def drawn(findings: Findings) -> dict[str, tuple[bytes, str]]:
    """PNG and SVG of each figure, by its name."""
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # Texts of an SVG are a browser's to draw; the PNG has boxes for what its font lacks.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from")
        figures = {"frontier": _frontier(findings), "categories": _categories(findings), "format": _format(findings)}
        return {name: (_png(figure), _svg(figure, name)) for name, figure in figures.items()}


def _frontier(findings: Findings) -> Figure:
    figure, axes = _new("optimization-failure rate", "correctness-failure rate")
    points = [_point(one) for one in findings.rates]
    grid = findings.grid
    line = [point for point, run in zip(points, grid.runs, strict=True) if run.named.alpha is not None]
    axes.plot(*zip(*line, strict=True), color=_MERGED, linewidth=0.8, alpha=0.6, zorder=1)
    for number, ((x, y), ellipse) in enumerate(zip(points, findings.ellipses, strict=True)):
        is_trained = number in grid.trained
        colour = _TRAINED if is_trained else _MERGED
        if ellipse is not None:
            axes.add_patch(
                Patch((x, y), ellipse.width, ellipse.height, angle=ellipse.degrees, color=colour, alpha=0.12, zorder=0)
            )
        axes.plot(x, y, "*" if is_trained else "o", color=colour, markersize=11 if is_trained else 5, zorder=3)
    axes.plot([], [], "*", color=_TRAINED, markersize=11, linestyle="", label="trained")
    axes.plot([], [], "o", color=_MERGED, markersize=5, linestyle="", label="averaged, at alpha")
    axes.plot([], [], "s", color=_MERGED, alpha=0.2, markersize=10, linestyle="", label=f"{LEVEL:.0%}, by problems")
    _legend_above(axes, 3)
    axes.margins(0.12)
    axes.set_xlim(left=max(0.0, axes.get_xlim()[0]))
    axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
    label(figure, axes, [Point(x, y, _words(run)) for (x, y), run in zip(points, grid.runs, strict=True)])
    return figure


def _categories(findings: Findings) -> Figure:
    figure, axes = _new("alpha, and others that were trained", "share of samples")
    names = [_words(run) for run in findings.grid.runs]
    below = [0.0] * len(names)
    for category in CATEGORIES:
        means = [one[category].mean or 0.0 for one in findings.rates]
        axes.bar(range(len(names)), means, bottom=below, color=COLOURS[category], label=category.replace("_", " "))
        below = [low + mean for low, mean in zip(below, means, strict=True)]
    axes.set_xticks(range(len(names)), names)
    if max(map(len, names)) > 5:
        for text in axes.get_xticklabels():
            text.set(rotation=45, ha="right", rotation_mode="anchor")
    axes.set_ylim(0, 1)
    _legend_above(axes, 4)
    return figure


def _format(findings: Findings) -> Figure:
    figure, axes = _new("|alpha|", "format-error rate")
    for sign, marker, words in ((1, "o", "alpha from 0 up"), (-1, "v", "alpha below 0")):
        chosen = sorted(
            (abs(run.named.alpha), rate["format_error"])
            for run, rate in zip(findings.grid.runs, findings.rates, strict=True)
            if run.named.alpha is not None and (run.named.alpha < 0) is (sign < 0)
        )
        if chosen:
            sizes, estimates = [size for size, _ in chosen], [one for _, one in chosen]
            axes.errorbar(
                sizes,
                [one.mean or 0.0 for one in estimates],
                yerr=_whiskers(estimates),
                marker=marker,
                capsize=3,
                label=words,
            )
    axes.set_ylim(bottom=0)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small", frameon=False)
    return figure


def _words(run: Run) -> str:
    """What a checkpoint is called in a figure."""
    return short(run.named.name) if run.named.alpha is None else f"{run.named.alpha:g}"


def _legend_above(axes: Axes, columns: int) -> None:
    """Where it covers nothing."""
    axes.legend(fontsize="small", frameon=False, ncols=columns, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _point(rates: dict[str, Estimate]) -> tuple[float, float]:
    return rates["optimization_failure"].mean or 0.0, rates["correctness_failure"].mean or 0.0


def _whiskers(estimates: Sequence[Estimate]) -> list[list[float]]:
    """[below, above] the means; none of a single problem."""
    bounds = [
        (0.0, 0.0)
        if one.mean is None or one.low is None or one.high is None
        # A percentile interval need not hold the mean to the last bit.
        else (max(0.0, one.mean - one.low), max(0.0, one.high - one.mean))
        for one in estimates
    ]
    return [[low for low, _ in bounds], [high for _, high in bounds]]


def _new(across: str, up: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DOTS_PER_INCH)
    return file.getvalue()


def _svg(figure: Figure, name: str) -> str:
    """Without what names places elsewhere; its ids begin with the figure's name, so that several stand in one page."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return re.sub(r'( id="|xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
