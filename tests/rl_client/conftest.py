"""What the tests of the client share."""

from __future__ import annotations

import pytest

from rl_client.client import Grader
from tests.rl_client.clients import Blocking, Connect


@pytest.fixture(params=[Grader, Blocking], ids=["threads", "event loop"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """Makes a client of either kind."""
    client: Connect = request.param
    return client
