"""Hosts that have the same installed are told from those that have not."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.languages import software as module
from sandbox.languages.software import software

GCC = "Package: gcc\nStatus: install ok installed\nMaintainer: someone\nArchitecture: amd64\nVersion: 4:12.2.0-3\n"
LIBC = "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.36-9\n"


class Host:
    """Of what is installed on it, as dpkg and pip leave it."""

    def __init__(self, root: Path) -> None:
        self.tools, self.packages = root / "tools", root / "status"
        (self.tools / "python" / "numpy-2.2.6.dist-info").mkdir(parents=True)
        self.packages.write_text(f"{GCC}\n{LIBC}")

    def digest(self) -> str:
        software.cache_clear()
        return software(self.packages, self.tools)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_the_order_of_packages_and_what_is_said_of_them_does_not_matter(host: Host) -> None:
    before = host.digest()
    host.packages.write_text(f"{LIBC}\n{GCC.replace('someone', 'someone else')}")
    assert host.digest() == before


def install(host: Host) -> None:
    host.packages.write_text(f"{GCC}\n{LIBC}\n{GCC.replace('gcc', 'libboost-dev')}")


def upgrade(host: Host) -> None:
    host.packages.write_text(f"{GCC}\n{LIBC.replace('2.36-9', '2.41-1')}")


def remove(host: Host) -> None:
    host.packages.write_text(f"{GCC.replace('install ok installed', 'deinstall ok config-files')}\n{LIBC}")


def lose_packages(host: Host) -> None:
    host.packages.unlink()


def upgrade_library(host: Host) -> None:
    (host.tools / "python" / "numpy-2.2.6.dist-info").rename(host.tools / "python" / "numpy-2.3.0.dist-info")


@pytest.mark.parametrize("change", [install, upgrade, remove, lose_packages, upgrade_library])
def test_what_is_installed_matters(host: Host, change: Callable[[Host], None]) -> None:
    before = host.digest()
    change(host)
    assert host.digest() != before


def test_machines_of_another_kind_are_told_apart(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compilers of one version say so in the same words on both, and neither runs the other's programs."""
    before = host.digest()
    monkeypatch.setattr(platform, "machine", lambda: "another")
    assert host.digest() != before


def test_this_hosts_packages_are_read() -> None:
    found = list(module._packages(module.PACKAGES))
    assert any("Package: gcc" in package for package in found)
