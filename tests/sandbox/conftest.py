"""Fixtures of the sandbox's tests: one configured host for the session, one judge for each module that asks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import host
from sandbox.cgroups import Cgroups, open_cgroups
from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from tests.sandbox.cells import UID_BASE


@pytest.fixture(scope="session")
def sandbox_config() -> Iterator[SandboxConfig]:
    """The settings of a prepared host; the precompiled headers are built here, once for all tests."""
    with tempfile.TemporaryDirectory(prefix="rkgrade-tests-") as data:
        # Cells mount parts of it as users who own nothing on this host.
        Path(data).chmod(0o755)
        config = SandboxConfig(data_dir=Path(data), uid_base=UID_BASE)
        host.prepare(config)
        yield config


@pytest.fixture(scope="module")
def judge(sandbox_config: SandboxConfig) -> Iterator[Judge]:
    """Any number of judges may share a host, but not a process: modules with groups of their own must not ask."""
    judge = Judge(sandbox_config, slot=0, core=None)
    yield judge
    judge.close()


@pytest.fixture(scope="module")
def groups() -> Iterator[Cgroups]:
    groups = open_cgroups(insecure_no_cgroup=False)
    yield groups
    groups.close()
