"""What the tests of the service send again and again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.data_dirs import data_dir
from tests.redis_server import redis_server
from tests.serving import Server, assert_nothing_left, serving, working

#: How long what is expected of a page may take to show.
BROWSER_WITHIN_MS = 60_000

SUM = "a, b = map(int, input().split())\nprint(a + b)\n"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose work goes by a Redis to workers beside it; at the end SIGTERM must leave nothing behind.

    It has a data directory of its own: what the other engine was sent is not stored here.
    """
    directory = tmp_path_factory.mktemp("cluster")
    cores = str(min(2, len(os.sched_getaffinity(0))))
    with (
        data_dir() as directory_of_data,
        redis_server(directory) as redis,
        working(redis.url, directory_of_data, directory / "host-log", "--workers", cores) as host,
        serving(directory_of_data, directory / "log", redis_url=redis.url) as server,
    ):
        yield server
        family = [*server.family(), *host.family()]
        assert server.end() == 0, server.log.read_text()
        assert host.end() == 0, host.log.read_text()
        assert_nothing_left(family)


@pytest.fixture(scope="session", params=["in-process", "rq"])
def grader_url(request: pytest.FixtureRequest) -> str:
    """Both engines give the same answers: what only asks one asks the other, too."""
    server: Server = request.getfixturevalue("grader" if request.param == "in-process" else "cluster")
    return server.url


@pytest.fixture
def a_plus_b() -> dict[str, Any]:
    """A grade that is accepted, to be changed at one place by each test."""
    return {
        "problem": {"kind": "stdio", "tests": [{"input": "1 2\n", "output": "3\n"}]},
        "language": "python",
        "source": SUM,
    }


@pytest.fixture
def sleeper() -> dict[str, Any]:
    """A grade that runs for 20 s of wall time and hardly any of CPU time, unless it is cancelled."""
    return {
        "problem": {
            "kind": "stdio",
            "tests": [{"input": "", "output": ""}],
            "limits": {"cpu_s": 5.0, "wall_s": 20.0},
        },
        "language": "python",
        "source": "import time\ntime.sleep(60)\n",
    }


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser without a window; `evil.example` means this machine to it, as after DNS rebinding.

    For a module's tests and no longer: while Playwright is there, no other event loop can run in this thread.
    """
    program = shutil.which("chromium")
    if program is None:
        reason = "no chromium on this machine: scripts/test installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        arguments = [
            # Tests run as root, for whom Chromium has no sandbox of its own.
            "--no-sandbox",
            "--host-resolver-rules=MAP evil.example 127.0.0.1",
            # Newer releases keep pages away from this machine by themselves; the service must not rely on that.
            "--disable-features=LocalNetworkAccessChecks",
        ]
        expect.set_options(timeout=BROWSER_WITHIN_MS)
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()
