"""What a test script has in its own cell only, while the program that it tests is elsewhere: streams, builtins, the
environment, warnings, files.

A test that replaces one of these, or makes one of the last, for the program to meet would do so in vain. What it sows
(`random.seed`) is passed on.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import os
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sandbox.jail.link import Link

#: Where a test may leave files.
SCRATCH = ("/box", "/tmp")


def surroundings() -> dict[str, object]:
    """What a test may replace to hear what a program prints and to tell it what it reads: in another cell, in vain."""
    streams = {f"sys.{name}": getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
    named = {f"builtins.{name}": getattr(builtins, name) for name in ("input", "print", "open")}
    return {
        **streams,
        **named,
        "os.environ": os.environ.copy(),
        "sys.argv": [*sys.argv],
        "a hook for warnings": (warnings._showwarnmsg_impl, warnings.showwarning),  # type: ignore[attr-defined]
        "a filter that makes warnings errors": warnings.filters[:1] and warnings.filters[0][0] == "error",
    }


def sow(link: Link, source: bytes) -> None:
    """Have the program's random numbers begin where the script has its own begin."""
    if b"seed" not in source:
        return
    for name, known in (("random", True), ("numpy.random", b"numpy" in source)):
        if known:
            with contextlib.suppress(ImportError):
                module = importlib.import_module(name)
                vars(module)["seed"] = passing_on(link, name, module.seed)


def passing_on(link: Link, name: str, seed: Any) -> Any:
    def passed_on(*args: Any, **keywords: Any) -> Any:
        seed(*args, **keywords)
        first = [*args, *keywords.values(), None][0]
        if type(first) in (type(None), bool, int, float, str, bytes):
            link.value("seed", module=name, value=link.written(first))

    return passed_on


def names_a_file(text: str) -> bool:
    """Whether a text is the name of a file of the test's, or of one to be made in a folder of the test's."""
    if not 0 < len(text) < 256:
        return False
    path = os.path.abspath(text)
    above = os.path.dirname(path)
    if not path.startswith(tuple(f"{folder}/" for folder in SCRATCH)):
        return False
    return os.path.lexists(path) or (above not in SCRATCH and os.path.isdir(above))
