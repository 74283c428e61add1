"""Directories of control groups that graders own: counting cells, and clearing away those whose owner is dead."""

from __future__ import annotations

from pathlib import Path

from sandbox.cgroups.hierarchies import Hierarchies
from sandbox.cgroups.owners import OWNER, is_alive, is_own, kill_tree, remove_tree


def sweep(hierarchies: Hierarchies) -> int:
    """Kill and remove what graders that died without cleaning up left behind; how many directories that were."""
    swept = 0
    for base in set(hierarchies.directories.values()):
        for path in [path for path in base.iterdir() if path.is_dir()]:
            owner = OWNER.match(path.name)
            if owner and not is_alive(*owner.groups()):
                kill_tree(path)
                remove_tree(path)
                swept += 1
    return swept


def cells_alive(hierarchies: Hierarchies) -> int:
    """How many cells this process and its children have, by the groups of their wardens."""
    return sum(
        1
        for directory in hierarchies.directories["memory"].glob("rkgrade-*-*-*")
        if (owner := OWNER.fullmatch(directory.name)) and is_own(*owner.groups())
        for _ in directory.glob("*-warden")
    )


def owned_directories(hierarchies: Hierarchies) -> list[Path]:
    """Every directory of any grader, alive or dead: for the doctor, and for tests that nothing is left."""
    return [
        path
        for base in set(hierarchies.directories.values())
        for path in base.iterdir()
        if path.is_dir() and OWNER.match(path.name)
    ]
