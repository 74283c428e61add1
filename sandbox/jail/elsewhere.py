"""What a test script has in its own cell only, while the program that it tests is elsewhere: streams, builtins, files.

A test that replaces one of the former, or makes one of the latter, for the program to meet would do so in vain.
"""

from __future__ import annotations

import builtins
import os
import sys

#: Where a test may leave files.
SCRATCH = ("/box", "/tmp")


def surroundings() -> dict[str, object]:
    """What a test may replace to hear what a program prints and to tell it what it reads: in another cell, in vain."""
    streams = {f"sys.{name}": getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
    return streams | {f"builtins.{name}": getattr(builtins, name) for name in ("input", "print", "open")}


def names_a_file(text: str) -> bool:
    """Whether a text is the name of a file of the test's, or of one to be made in a folder of the test's."""
    if not 0 < len(text) < 256:
        return False
    path = os.path.abspath(text)
    above = os.path.dirname(path)
    if not path.startswith(tuple(f"{folder}/" for folder in SCRATCH)):
        return False
    return os.path.lexists(path) or (above not in SCRATCH and os.path.isdir(above))
