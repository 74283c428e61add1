"""One data directory for the suite, so that headers are precompiled once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import host
from sandbox.config import SandboxConfig

#: A range of its own, so that other graders at work on this host are not mistaken for leftovers.
UID_BASE = 720_000


@pytest.fixture(scope="package")
def config() -> Iterator[SandboxConfig]:
    with tempfile.TemporaryDirectory(prefix="hostile-data-") as data:
        # Cells look into it as users who own nothing on this host.
        Path(data).chmod(0o755)
        config = SandboxConfig(data_dir=Path(data), uid_base=UID_BASE)
        host.prepare(config)
        yield config
