"""Puts what benchmarks printed into the pages that tell of them: between `<!-- figures: FILE -->` and `<!-- end -->`.

    python bench/figures.py [NAME ...]

Each NAME, such as `judge`, is of a file in var/bench/; without any, all
that are there. Those of a `--quick` run are not taken.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "bench/README.md", ROOT / "docs/scale.md")
PLACE = re.compile(r"(<!-- figures: (?P<file>\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def put(page: str, names: set[str]) -> str:
    """The page with the figures of those names, or of all where there are none."""

    def figures(place: re.Match[str]) -> str:
        file = ROOT / place["file"]
        if (names and file.stem not in names) or not file.exists():
            return place[0]
        printed = file.read_text().strip()
        if not printed or "*quick: " in printed:
            return place[0]
        return f"{place[1]}\n{printed}\n\n{place[3]}"

    return PLACE.sub(figures, page)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(put(page.read_text(), set(sys.argv[1:])))
