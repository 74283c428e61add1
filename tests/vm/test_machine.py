"""What is said where the machine with cgroup v2 cannot be had."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tests.obtaining import Unobtainable
from tests.vm import machine


def test_without_qemu_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unobtainable, match="apt-get install qemu-system-x86 cpio"):
        machine.image()


def test_on_another_processor_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(Unobtainable, match="not for aarch64"):
        machine.image()


def test_a_kernel_without_elf_inside_is_refused() -> None:
    with pytest.raises(Unobtainable, match="not compressed as it was"):
        machine._bare_kernel(b"MZ" + machine.XZ_MAGIC + b"no stream")
