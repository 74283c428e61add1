"""A folder with all that is known of a frontier: figures as PNG and SVG, numbers as CSV, and the page."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from rl_client.datasets.base import DatasetError
from rl_client.datasets.outputs import Output
from rl_client.ensemble.runs import Run
from rl_client.evaluate.report import CATEGORIES
from rl_client.evaluate.statistics import Estimate
from rl_client.frontier.examples import examples
from rl_client.frontier.figures import drawn
from rl_client.frontier.findings import Findings
from rl_client.frontier.grid import Grid
from rl_client.frontier.page import page

PAGE, RATES, MARGINS, PROBLEMS = "frontier.html", "rates.csv", "margins.csv", "problems.csv"


def draw(runs: Sequence[Run], folder: Path) -> Findings:
    """`runs`: held to each other. Each file is there whole or not at all, the page last.

    Raises DatasetError where the folder cannot be written to, and BadRun.
    """
    findings = Findings.of(Grid.of(runs))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatasetError(folder, error.strerror or str(error)) from error
    figures = drawn(findings)
    for name, (png, svg) in figures.items():
        _write(folder / f"{name}.png", png)
        _write(folder / f"{name}.svg", svg.encode())
    _write(folder / RATES, _csv(_rates(findings)))
    _write(folder / MARGINS, _csv(_margins(findings)))
    _write(folder / PROBLEMS, _csv(_problems(findings.grid)))
    texts = [examples(run) for run in findings.grid.runs]
    _write(
        folder / PAGE,
        page(findings, {name: svg for name, (_, svg) in figures.items()}, texts).encode("utf-8", "replace"),
    )
    return findings


Row = Sequence[object]


def _rates(findings: Findings) -> list[Row]:
    bounds = [f"{name}{part}" for name in CATEGORIES for part in ("", "_low", "_high")]
    rows: list[Row] = [["name", "alpha", "trained", *bounds, "ellipse_width", "ellipse_height", "ellipse_degrees"]]
    grid = findings.grid
    for number, (run, rates, ellipse) in enumerate(zip(grid.runs, findings.rates, findings.ellipses, strict=True)):
        axes = [None] * 3 if ellipse is None else [ellipse.width, ellipse.height, ellipse.degrees]
        cells = [cell for name in CATEGORIES for cell in _cells(rates[name])]
        rows.append([run.named.name, run.named.alpha, int(number in grid.trained), *cells, *axes])
    return rows


def _margins(findings: Findings) -> list[Row]:
    told = ([test.name, *([None] * 3 if test.margin is None else _cells(test.margin))] for test in findings.tests)
    return [["of", "margin", "low", "high"], *told]


def _problems(grid: Grid) -> list[Row]:
    rows: list[Row] = [["key", "problem_id", "difficulty", "name", "alpha", "samples", *CATEGORIES]]
    for row in grid.counts:
        for run, one in zip(grid.runs, row, strict=True):
            counts = [one.categories[name] for name in CATEGORIES]
            rows.append([one.key, one.problem_id, one.difficulty, run.named.name, run.named.alpha, one.graded, *counts])
    return rows


def _cells(estimate: Estimate) -> list[float | None]:
    return [estimate.mean, estimate.low, estimate.high]


def _csv(rows: list[Row]) -> bytes:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue().encode()


def _write(path: Path, content: bytes) -> None:
    with Output(path) as output:
        output.write(content)
