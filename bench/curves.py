"""What a server has over the grades it has done, as a picture. Needs matplotlib (in the extra `dev`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("agg")

from inventory import Sample
from matplotlib import pyplot
from matplotlib.axes import Axes

INCHES = (10.0, 9.0)
DOTS_PER_INCH = 80


def draw(file: Path, title: str, samples: Sequence[Sample]) -> None:
    """Write a PNG: memory, disk, descriptors, and everything else that is counted, each from 0 on."""
    figure, panels = pyplot.subplots(4, 1, sharex=True, figsize=INCHES, layout="constrained")
    grades = [sample.grades for sample in samples]

    def lines(panel: Axes, unit: str, values: Sequence[dict[str, float]]) -> None:
        for name in values[0]:
            panel.plot(grades, [value[name] for value in values], marker=".", label=name)
        panel.set_ylabel(unit)
        panel.set_ylim(bottom=0)
        panel.margins(y=0.15)
        panel.grid(alpha=0.3)
        panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small", frameon=False)

    lines(panels[0], "memory, MB", [sample.memory_mb for sample in samples])
    lines(panels[1], "stores, MB", [sample.stores_mb for sample in samples])
    lines(panels[2], "descriptors", [_counts(sample, descriptors=True) for sample in samples])
    lines(panels[3], "count", [_counts(sample, descriptors=False) for sample in samples])
    panels[-1].set_xlabel("grades")
    figure.suptitle(title)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=DOTS_PER_INCH)
    pyplot.close(figure)


def _counts(sample: Sample, *, descriptors: bool) -> dict[str, float]:
    return {name: count for name, count in sample.counts.items() if name.startswith("descriptors") is descriptors}
