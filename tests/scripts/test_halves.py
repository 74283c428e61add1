"""`scripts/halves`: two halves of the tests side by side, and what failed once more by itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOOD = "def test_good():\n    pass\n"
ONCE = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("name", ["a - b", "c"])
def test_once(name):
    begun = Path(name)
    was_begun = begun.exists()
    begun.touch()
    assert was_begun
"""
BAD = "import pytest\n\n@pytest.mark.parametrize('number', range({}))\ndef test_bad(number):\n    assert False\n"


@pytest.mark.parametrize(
    ("folder", "source", "status", "named", "again"),
    [
        ("service", GOOD, 0, 0, ""),
        ("hostile", ONCE, 0, 2, "2 passed"),
        ("service", BAD.format(1), 1, 1, "1 failed"),
        ("service", BAD.format(11), 1, 11, "[10]\n"),
        ("hostile", "nonsense", 2, 0, ""),
    ],
    ids=["all pass", "once", "twice", "many", "no test at all"],
)
def test_what_fails_twice_fails(tmp_path: Path, folder: str, source: str, status: int, named: int, again: str) -> None:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib -p no:schemathesis\n")
    for name in ("corpus", "hostile", "rl_client", "sandbox", "service"):
        (tmp_path / "tests" / name).mkdir(parents=True)
        (tmp_path / "tests" / name / f"test_{name}.py").write_text(GOOD)
    (tmp_path / "tests" / folder / "test_it.py").write_text(source)

    done = subprocess.run(["scripts/halves"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)

    assert done.returncode == status, done.stdout + done.stderr
    *names, last = done.stdout.split("failed beside the other half: ")
    assert len(names) == named
    # Of many nothing is run again: their names are the last that is printed.
    assert again in last and (named < 11 or last == "tests/service/test_it.py::test_bad[10]\n")
