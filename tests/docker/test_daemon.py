"""What is said where no Docker daemon can be had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docker.daemon import daemon
from tests.obtaining import Unobtainable


def test_without_dockers_packages_it_is_said_which_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unobtainable) as caught, daemon():
        pass
    if os.geteuid() == 0:
        assert str(caught.value).endswith("apt-get install debootstrap docker.io iptables")
    else:
        assert str(caught.value).endswith("only root may start one")
