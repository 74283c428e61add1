"""docker-compose.yml for real: built, started, asked, hit and taken down by deploy/compose-test."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.daemon import daemon
from tests.obtaining import Unobtainable

ROOT = Path(__file__).parents[2]


@pytest.fixture
def docker() -> Iterator[dict[str, str]]:
    with contextlib.ExitStack() as stack:
        try:
            environment = stack.enter_context(daemon())
        except Unobtainable as reason:
            pytest.skip(f"images are not built and run: {reason}")
        yield environment


@pytest.mark.docker
@pytest.mark.timeout(1500)
def test_images_are_built_run_and_taken_away_and_a_killed_worker_costs_no_grade(docker: dict[str, str]) -> None:
    done = subprocess.run(
        [ROOT / "deploy" / "compose-test"],
        env=os.environ | docker,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1400,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout
