"""No control groups at all, where the user insists: rlimits are all there is, and results say so."""

from __future__ import annotations

from sandbox.cgroups.base import CellGroup


class NoCell:
    """Stands in where there are no control groups: nobody counts, and rlimits are all there is."""

    def warden_entries(self) -> list[int]:
        return []

    def begin(self, memory_bytes: int, processes: int) -> list[int]:
        return []

    def cpu_s(self) -> None:
        return None

    def waited_s(self) -> float:
        return 0.0

    def sleeps(self) -> bool:
        return True

    def usage(self) -> None:
        return None

    def end(self) -> None:
        return None

    def kill(self) -> None:
        """Nothing to find processes by: the cell ends them through its own process 1."""

    def close(self) -> None:
        """Nothing was made."""


class NoCgroups:
    version = "no cgroups"

    def cell(self, name: str) -> CellGroup:
        return NoCell()

    def close(self) -> None:
        """Nothing was made."""
