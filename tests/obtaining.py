"""What tests fetch for themselves, and how they say that it cannot be had."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

#: On a slow line, one package or a whole base system.
FETCH_S = 600.0


class Unobtainable(Exception):
    """Something a test needs cannot be had on this machine; the message says what, and how to mend it."""


def output_of(*command: str, cwd: Path) -> str:
    """What a command that fetches or unpacks prints. Raises Unobtainable where it fails."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=FETCH_S, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise Unobtainable(str(error)) from error
    if done.returncode != 0:
        raise Unobtainable(f"{shlex.join(command)}: {(done.stderr or done.stdout).strip()[-1000:]}")
    return done.stdout
