"""Trainers are installed beside the checkout's own packages, which theirs would not go with."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.obtaining import Unobtainable, output_of

ROOT = Path(__file__).parents[3]


def python_with(name: str, packages: tuple[str, ...], *trainers: str, needs: str = "") -> Path:
    """An interpreter that has these packages, and the trainers without what they ask for themselves (CUDA, for one).

    `needs`: a program that prints what they need all the same, one a line, once they are there.

    It is made in `.venv/NAME`, once for what it holds, which takes minutes and more than a gigabyte. Skips the test
    where it cannot be had, and fails it in CI.
    """
    venv = ROOT / ".venv" / name
    python, done = venv / "bin" / "python", venv / "done"
    holds = "\n".join([*packages, *trainers, needs])
    if not done.exists() or done.read_text() != holds:
        try:
            output_of(sys.executable, "-m", "venv", "--clear", str(venv), cwd=ROOT)
            output_of(str(python), "-m", "pip", "install", "-q", *packages, cwd=ROOT)
            output_of(str(python), "-m", "pip", "install", "-q", "--no-deps", *trainers, cwd=ROOT)
            more = output_of(str(python), "-c", needs, cwd=ROOT).split("\n") if needs else []
            if more := [*filter(None, more)]:
                output_of(str(python), "-m", "pip", "install", "-q", *packages, *more, cwd=ROOT)
        except Unobtainable as error:
            if os.environ.get("CI") == "true":
                pytest.fail(f"no {name} here: {error}")
            pytest.skip(f"no {name} here: {error}")
        done.write_text(holds)
    return python
