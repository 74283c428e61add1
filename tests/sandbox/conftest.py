"""Fixtures of the sandbox's tests: one configured host for all, one judge for each module that asks, and cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sandbox import cgroups, host, prebuilt
from sandbox.cell import Cell
from sandbox.cgroups import Cgroups, open_cgroups
from sandbox.checkers import native
from sandbox.compiling import as_file
from sandbox.config import SandboxConfig
from sandbox.errors import HostError
from sandbox.judge import Judge
from sandbox.problem import Limits
from sandbox.run import Action, RunRecord, RunRequest
from tests.data_dirs import data_dir, offered_languages
from tests.sandbox.cells import ROOMY, UID_BASE, Run, footprint, open_cell


def _has_v2() -> bool:
    try:
        return cgroups.here().version == "v2"
    except HostError:
        return False


#: What only runs where control groups are version 2; on other hosts `tests/vm` sees to it.
collect_ignore = [] if _has_v2() else ["test_cgroups_v2.py"]


@pytest.fixture(scope="session", autouse=True)
def native_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled and loaded, for tests that compare texts without a judge."""
    library = tmp_path_factory.mktemp("checkers") / "native.so"
    prebuilt.compile_library(library)
    native.load(library)
    return library


@pytest.fixture(scope="session")
def sandbox_config() -> Iterator[SandboxConfig]:
    """The settings of a prepared host, for all tests."""
    with data_dir() as directory:
        config = SandboxConfig(directory, uid_base=UID_BASE, languages=offered_languages())
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
    cgroups.prepare(cgroups.here())
    groups = open_cgroups(insecure_no_cgroup=False)
    yield groups
    groups.close()


@pytest.fixture
def cell(sandbox_config: SandboxConfig, groups: Cgroups) -> Iterator[Cell]:
    before = footprint()
    cell = open_cell(sandbox_config, groups)
    yield cell
    cell.close()
    assert footprint() - before == set()


@pytest.fixture(scope="module")
def shared_cell(sandbox_config: SandboxConfig, groups: Cgroups) -> Iterator[Cell]:
    """For runs that end well: each finds the cell as if it were the first."""
    cell = open_cell(sandbox_config, groups)
    yield cell
    cell.close()


@pytest.fixture
def run() -> Iterator[Run]:
    """Run a program in a cell: Python code, or a command; records are closed with the test."""
    records: list[RunRecord] = []

    def run(
        cell: Cell,
        program: str | Sequence[str],
        stdin: bytes = b"",
        limits: Limits = ROOMY,
        collect: tuple[str, ...] = (),
        cancel_fd: int | None = None,
    ) -> RunRecord:
        argv = ("/usr/bin/python3", "-S", "-c", program) if isinstance(program, str) else tuple(program)
        with as_file(stdin) as stdin_fd:
            record = cell.run(RunRequest(Action.EXEC, stdin_fd, limits, argv, collect), cancel_fd)
        records.append(record)
        return record

    yield run
    for record in records:
        record.close()
