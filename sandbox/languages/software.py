"""What of a host's software and machine decides what sources compile to and programs do, beside a toolchain's version.

Cells see all of /usr: a header, a module or a C library there is part of what a program is. Two hosts with compilers of
one version may be of different architectures, or link against libraries that only one of them has.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
from collections.abc import Iterator
from pathlib import Path

from sandbox.languages.base import TOOLS

#: Of dpkg: which packages are there, and in which version.
PACKAGES = Path("/var/lib/dpkg/status")
_FIELDS = ("Package: ", "Architecture: ", "Version: ", "Status: ")


@functools.cache
def software(packages: Path = PACKAGES, tools: Path = Path(TOOLS)) -> str:
    """A digest of it all; equal where the same is installed, in whatever order it was."""
    parts = [
        platform.machine(),
        platform.libc_ver(),
        sorted(_packages(packages)),
        # Of what pip has unpacked there, such as the libraries of Python programs.
        sorted(path.name for path in tools.glob("*/*.dist-info")),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _packages(status: Path) -> Iterator[list[str]]:
    """None on hosts that are no Debian's."""
    try:
        text = status.read_text(errors="replace")
    except OSError:
        return
    for entry in text.split("\n\n"):
        if fields := [line for line in entry.splitlines() if line.startswith(_FIELDS)]:
            yield sorted(fields)
