"""Ranges of host uids for the cells of one run of the tests, so that runs at the same time do not see each other's."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

#: No accounts there, and far from where a grader with its default settings takes its uids.
_FIRST = 740_000
_RANGE = 4096
_RUNS_AT_ONCE = 32

_LOCKS = Path("/run/lock")


def claim(purpose: str) -> range:
    """The uids of a range that no other run holds; this process's own until it ends, and its children's.

    Children find it by the environment: what they start are cells of the same test.
    """
    variable = f"HOST_UIDS_{purpose.upper()}"
    if variable not in os.environ:
        os.environ[variable] = str(_free())
    first = int(os.environ[variable])
    return range(first, first + _RANGE)


def _free() -> int:
    for number in range(_RUNS_AT_ONCE):
        lock = os.open(_LOCKS / f"rkgrade-tests-uids-{number}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        # Left open: the range is this run's for as long as its process lives.
        return _FIRST + number * _RANGE
    raise RuntimeError(f"{_RUNS_AT_ONCE} ranges of uids are taken by other runs of the tests")
