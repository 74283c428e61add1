"""The sandbox's settings as one frozen value; where they come from is the caller's affair."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

#: Where set-up puts the header that checkers of the testlib kind include.
TESTLIB = Path(sys.prefix) / "share" / "rkgrade" / "testlib.h"

#: Far above what systems give to accounts, and to their containers as far as these start at 100,000 with 65,536 each.
UID_BASE = 700_000


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    data_dir: Path
    """Holds compiled programs, precompiled headers, the launcher and locks; shared by all workers of a host."""
    insecure_no_cgroup: bool = False
    """Run without cgroups: memory and CPU of whole process trees are then not limited, and results say so."""
    compile_cache_bytes: int = 2 * 2**30
    uid_base: int = UID_BASE
    """First of the host uids that cells use; 256 for each worker slot, none of which may belong to an account."""

    languages: frozenset[str] | None = None
    """Ids of the languages that are offered where they are installed; None for all."""
    time_factors: Mapping[str, float] = field(default_factory=dict)
    """By language id: what multiplies its programs' time limits, beside what a request says. 1.0 unless named."""
    testlib: Path = TESTLIB
    """The header `testlib.h`; where there is none, checkers and interactors written with it are refused."""

    checker_cpu_s: float = 30.0
    """CPU seconds of one run of a checker that is a program."""

    @property
    def compiled_dir(self) -> Path:
        return self.data_dir / "compiled"

    @property
    def prebuilt_dir(self) -> Path:
        return self.data_dir / "prebuilt"

    @property
    def locks_dir(self) -> Path:
        return self.data_dir / "locks"
