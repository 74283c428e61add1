"""What the tests of trainers share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of no other test's."""
    for name in ("URL", "TOKEN", "LABEL", "PATIENCE_S", "UNSCORED"):
        monkeypatch.delenv(f"RKGRADE_{name}", raising=False)
