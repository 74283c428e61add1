"""Fixtures for all tests: one real server for the session, and further ones for tests that must break theirs."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.data_dirs import data_dir
from tests.serving import Server, assert_nothing_left, serving

# A busy machine is no finding, and what passed once does not fail another day by chance.
settings.register_profile("tests", deadline=None, derandomize=True, database=None)
settings.load_profile("tests")

# A shell has what it runs in the background ignore SIGINT, and so would every command that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(os.environ.get("RKGRADE_SHARED") or Path(__file__).parents[2] / "shared")


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real problems, which is no part of the checkout."""
    folder = SHARED / "corpus"
    if not folder.is_dir():
        reason = f"no real problems in {folder}: point RKGRADE_SHARED at the folder that holds corpus/"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def grader_data_dir() -> Iterator[Path]:
    """Shared by all servers of the session."""
    with data_dir() as directory:
        yield directory


@pytest.fixture(scope="session")
def grader(grader_data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The session's server; at its end SIGTERM must leave nothing behind."""
    log = tmp_path_factory.mktemp("grader-log") / "log"
    with serving(grader_data_dir, log, "--workers", str(min(2, len(os.sched_getaffinity(0))))) as server:
        yield server
        family = server.family()
        assert server.end() == 0, log.read_text()
        assert_nothing_left(family)


@pytest.fixture(scope="session")
def grader_url(grader: Server) -> str:
    return grader.url


Serve = Callable[..., contextlib.AbstractContextManager[Server]]


@pytest.fixture
def serve(grader: Server, tmp_path: Path) -> Serve:
    """Further servers, for tests that end, kill or flood theirs: `with serve("--queue-size", "1") as server`."""

    def start(*flags: str) -> contextlib.AbstractContextManager[Server]:
        return serving(grader.data_dir, tmp_path / "log", *flags)

    return start
