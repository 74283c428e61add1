"""What the tests of the client share."""

from __future__ import annotations

import pytest

from rl_client.client import Grader
from tests.rl_client.clients import Blocking, Connect
from tests.rl_client.doubling import stored
from tests.serving import Server


@pytest.fixture(params=[Grader, Blocking], ids=["threads", "event loop"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """Makes a client of either kind."""
    client: Connect = request.param
    return client


@pytest.fixture(scope="session")
def url(grader: Server) -> str:
    """A grader that has the problem of `doubling`."""
    stored(grader.url)
    return grader.url
