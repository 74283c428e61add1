"""testlib: the header that most checkers and interactors of contest problems are written with, and how to compile them.

The header itself is somebody else's and comes at set-up (`SandboxConfig.testlib`). Cells see a copy of it that lies in
the data directory, in a folder named by its content, so that another release makes other compiled checkers.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox import languages
from sandbox.config import SandboxConfig
from sandbox.errors import CheckerRefused
from sandbox.languages import Language

NAME = "testlib.h"
_IN_JAIL = "/rkgrade-testlib"

#: The header takes 5 s of CPU time on an idle core, and 12 s on one that shares its caches with a busy one.
COMPILE_TIME_FACTOR = 6.0

#: The exit status of `_pc(x)` is this and x. testlib's own default is 0, under which `_pc(0)` looks like "accepted" and
#: `_pc(1)` like "wrong answer".
PARTIAL_BASE = 16


@dataclass(frozen=True, slots=True)
class Header:
    shown: Path
    """The folder on the host that cells see, made by `sandbox.prebuilt`."""
    in_jail: str
    """Where they see it."""


def header(config: SandboxConfig) -> Header | None:
    """Where the header is to be found, or None where there is none on this host."""
    try:
        key = hashlib.sha256(config.testlib.read_bytes()).hexdigest()[:16]
    except OSError:
        return None
    return Header(config.prebuilt_dir / f"testlib-{key}", f"{_IN_JAIL}/{key}")


def language(config: SandboxConfig) -> Language:
    """C++17 with the header on its include path. Raises CheckerRefused where there is none on this host."""
    found = header(config)
    if found is None:
        raise CheckerRefused(f"testlib.h is not installed here: set-up puts it at {config.testlib}")
    base = languages.resolve("cpp")
    compiler, *rest = base.compile
    options = ("-I", found.in_jail, f"-DPC_BASE_EXIT_CODE={PARTIAL_BASE}")
    return replace(
        base,
        id="testlib",
        name="C++17 with testlib",
        compile=(compiler, *options, *rest),
        compile_time_factor=COMPILE_TIME_FACTOR,
    )
