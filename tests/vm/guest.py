"""Tests in the machine: how they are started there, and what they use of this host."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests import slowness
from tests.data_dirs import MADE_READY, ONLY_LANGUAGES

ROOT = Path(__file__).parents[2]

#: What a machine may take, from its start to its end. On two cores, with other tests beside, those in it took 5 minutes
#: at most; it is only to end at some time.
WITHIN_S = 900.0

#: All that tests in the machine need; what these need prebuilt is, by the server of this session.
LANGUAGES = ("python", "python-exec", "c", "cpp", "cpp20")

#: pytest as it is run there, in the checkout; to be followed by which tests.
PYTEST = (sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider", "-m", "jail")


def environment(data_dir: Path) -> dict[str, str]:
    """For tests in the machine, which use this data directory as it was made ready out here."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "TMPDIR": "/run/tests",
        "PYTHONDONTWRITEBYTECODE": "1",
        MADE_READY: str(data_dir),
        ONLY_LANGUAGES: ",".join(LANGUAGES),
        slowness.VARIABLE: "10",
    }
