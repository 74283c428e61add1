"""One data directory for the suite, so that headers are precompiled once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import host
from sandbox.config import SandboxConfig
from tests import host_uids
from tests.data_dirs import data_dir, offered_languages

#: A range of its own, so that other graders at work on this host are not mistaken for leftovers.
UIDS = host_uids.claim("hostile")


@pytest.fixture(scope="package")
def config() -> Iterator[SandboxConfig]:
    with data_dir() as directory:
        config = SandboxConfig(directory, uid_base=UIDS.start, languages=offered_languages())
        host.prepare(config)
        yield config
