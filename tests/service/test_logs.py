"""What a trace in the log tells, and what it must not."""

from __future__ import annotations

import subprocess
import sys

import pytest

FAILING = """
import logging, sys
from service.logs import configure
from service.settings import Settings
configure(Settings(log_format=sys.argv[1]))
def grade():
    program = "secret-of-the-" + "program"
    raise RuntimeError(f"a fault of {len(program)} letters")
try:
    grade()
except RuntimeError:
    logging.getLogger("uvicorn.error").exception("failed")
"""


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_traces_hold_no_values_of_variables(log_format: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING, log_format], capture_output=True, text=True, timeout=60, check=True
    )
    assert "a fault of 21 letters" in done.stderr
    assert "in grade" in done.stderr or '"grade"' in done.stderr
    assert "secret-of-the-program" not in done.stderr
