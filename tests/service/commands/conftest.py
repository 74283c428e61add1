"""The command itself, as a user runs it, on a data directory that all tests of a run share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

COMMAND = (sys.executable, "-c", "from rl_client.cli import main; main()")


@pytest.fixture(scope="session")
def environment() -> Iterator[Mapping[str, str]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RKGRADE_")}
    with tempfile.TemporaryDirectory(prefix="rkgrade-test-") as name:
        # Unlike pytest's own folders, one that cells can see into.
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "tmp").mkdir()
        yield {**kept, "RKGRADE_DATA_DIR": str(folder / "data"), "TMPDIR": str(folder / "tmp"), "COLUMNS": "200"}


@pytest.fixture
def rkgrade(environment: Mapping[str, str]) -> Run:
    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=120
        )

    return run


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, source: str) -> Path:
        path = tmp_path / name
        path.write_text(source)
        return path

    return write
