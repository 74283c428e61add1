"""Puts what benchmarks printed into the page that tells of them: between `<!-- figures: FILE -->` and `<!-- end -->`.

    python bench/figures.py [NAME ...]

Each NAME, such as `judge`, is of a file in var/bench/; without any, all
that are there. Those of a `--quick` run are not taken.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "README.md"
ROOT = PAGE.parent.parent
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
    PAGE.write_text(put(PAGE.read_text(), set(sys.argv[1:])))
