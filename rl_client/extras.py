"""How an extra that is missing is installed: into the very interpreter that lacks it."""

from __future__ import annotations

import shlex
import sys


def install(extra: str) -> str:
    """The command."""
    return f"{shlex.quote(sys.executable)} -m pip install 'rkgrade[{extra}]'"
