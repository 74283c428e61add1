"""Data directories for the tests' graders, with what takes half a minute to prebuild taken from the run before."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sandbox import prebuilt
from sandbox.config import SandboxConfig

MADE_READY = "TESTS_DATA_DIR"
"""The variable that names a data directory to use, with what is prebuilt and compiled in it, instead of a new one:
where compilers are too slow to do it again."""

ONLY_LANGUAGES = "TESTS_LANGUAGES"
"""The variable that names the languages that the tests of the sandbox offer, where those installed are too many."""

_KEPT = Path(tempfile.gettempdir()) / "rkgrade-tests-prebuilt"


def offered_languages() -> frozenset[str] | None:
    """Ids, or None for all that are installed."""
    names = os.environ.get(ONLY_LANGUAGES)
    return None if names is None else frozenset(names.split(","))


@contextlib.contextmanager
def data_dir() -> Iterator[Path]:
    """A data directory of the caller's own, prebuilt; not below pytest's, which is closed to the users of cells."""
    if MADE_READY in os.environ:
        yield Path(os.environ[MADE_READY])
        return
    with tempfile.TemporaryDirectory(prefix="rkgrade-tests-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        _fill(SandboxConfig(data_dir=directory))
        yield directory


def _fill(config: SandboxConfig) -> None:
    """Copied, not linked: tests damage what is theirs."""
    _KEPT.mkdir(mode=0o755, exist_ok=True)
    if _KEPT.stat().st_uid != os.geteuid():
        return
    kept = SandboxConfig(data_dir=_KEPT)
    with (_KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        prebuilt.build(kept)
        current = [path for path in prebuilt.needed(kept) if path.is_relative_to(kept.prebuilt_dir)]
        for entry in kept.prebuilt_dir.iterdir():
            if not entry.name.startswith(".") and not any(path.is_relative_to(entry) for path in current):
                # Of another version of the code: two checkouts that take turns build theirs anew.
                shutil.rmtree(entry)
        shutil.copytree(kept.prebuilt_dir, config.prebuilt_dir, ignore=shutil.ignore_patterns(".*"))
