"""What is said of one point of a host, and how such a point is read."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path


class Status(enum.StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One point of the host. `remedy` is empty where nothing needs to be mended."""

    name: str
    status: Status
    found: str
    remedy: str = ""


def ok(name: str, found: str) -> Finding:
    return Finding(name, Status.OK, found)


def warning(name: str, found: str, remedy: str) -> Finding:
    return Finding(name, Status.WARNING, found, remedy)


def failed(name: str, found: str, remedy: str) -> Finding:
    return Finding(name, Status.FAILED, found, remedy)


def number(path: Path) -> int | None:
    """The integer a kernel file holds; None where this kernel has no such file."""
    try:
        return int(path.read_text())
    except FileNotFoundError:
        return None
