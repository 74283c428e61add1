"""The heap of a process that has started: what is left behind since is soon collected, whatever was there before."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Leaves a few thousand cycles behind at a time, which is what the younger generations hand on.
LEAVES_CYCLES = """
import gc, sys
from service.heap import settle
kept = [[] for _ in range(1_000_000)]
gc.collect()
if sys.argv[1] == "settled":
    settle()
before = gc.get_stats()[2]["collections"]
left = []
for _ in range(500_000):
    cycle = []
    cycle.append(cycle)
    left.append(cycle)
    if len(left) > 2_000:
        left.clear()
print(gc.get_stats()[2]["collections"] - before)
"""


@pytest.mark.parametrize(("how", "soon"), [("settled", True), ("unsettled", False)])
def test_what_is_left_behind_is_collected_soon(how: str, soon: bool) -> None:
    said = subprocess.run([sys.executable, "-c", LEAVES_CYCLES, how], capture_output=True, text=True, check=True)
    assert (int(said.stdout) > 0) is soon
