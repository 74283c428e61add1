"""Which hierarchies of control groups this process may make groups in, and making them ready."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path

from sandbox.cgroups.owners import owner_name
from sandbox.errors import HostError

#: cgroup v2 allows processes only in leaves: the grader's own move here.
MAIN_LEAF = "rkgrade-main"

#: What v2 must hand down. CPU time is counted in every group there, with the controller `cpu` or without, and systemd
#: hands that one to few.
V2_CONTROLLERS = ("memory", "pids")

#: How long processes that are forked as others are moved may keep a group from being empty.
MOVE_S = 5.0


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Directories under which this process may make groups."""

    version: str
    """"v1" or "v2"."""
    directories: dict[str, Path]
    """By controller: memory, cpuacct, pids. On v2 all are the same."""


CONTROLLERS = ("memory", "cpuacct", "pids")


def detect(mountinfo: str, own_groups: str) -> Hierarchies:
    """Find the hierarchies from the texts of /proc/self/mountinfo and /proc/self/cgroup.

    Raises HostError where neither version offers what the sandbox needs.
    """
    own: dict[str, str] = {}
    for line in own_groups.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(",") if controllers else ["unified"]:
            own[controller] = path
    directories: dict[str, Path] = {}
    unified: Path | None = None
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        root, mount_point = fields.split()[3:5]
        kind, _, options = rest.split()[:3]
        if kind == "cgroup":
            for controller in CONTROLLERS:
                if controller in options.split(",") and controller in own:
                    directories[controller] = _own_directory(mount_point, root, own[controller])
        elif kind == "cgroup2" and "unified" in own and not root.startswith("/.."):
            # A root above that of our namespace has a name that is not known here, and so have the groups below it.
            unified = _own_directory(mount_point, root, own["unified"])
    if set(directories) == set(CONTROLLERS):
        return Hierarchies("v1", directories)
    if unified is not None:
        base = unified.parent if unified.name == MAIN_LEAF else unified
        return Hierarchies("v2", dict.fromkeys(CONTROLLERS, base))
    raise HostError("no cgroup hierarchy with the controllers memory, cpuacct (v1 only) and pids is mounted")


def _own_directory(mount_point: str, root: str, path: str) -> Path:
    """Where a group lies in a mount that may show only part of its hierarchy (as in a container)."""
    relative = os.path.relpath(path, root)
    return Path(mount_point) if relative.startswith("..") else Path(mount_point, relative)


def here() -> Hierarchies:
    """The hierarchies of this host. Raises HostError."""
    return detect(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())


def prepare(hierarchies: Hierarchies) -> None:
    """Make sure that groups can be made and limited; on v2 moves the processes of our own group into a leaf.

    Raises HostError that says what is refused.
    """
    try:
        if hierarchies.version == "v2":
            _prepare_v2(hierarchies.directories["memory"])
        for directory in set(hierarchies.directories.values()):
            probe = directory / f"{owner_name()}-probe"
            probe.mkdir()
            probe.rmdir()
    except OSError as error:
        raise HostError(
            f"cannot make control groups: {error}. Run as root (in a container: with a writable, delegated cgroup), "
            "or accept weak limits with --insecure-no-cgroup"
        ) from error


def not_delegated(base: Path) -> list[str]:
    """The controllers that a group of v2 lacks."""
    return sorted(set(V2_CONTROLLERS) - set((base / "cgroup.controllers").read_text().split()))


def is_top(group: Path) -> bool:
    """Whether it is the root of all groups of v2, of which alone it is not said what type it has."""
    return not (group / "cgroup.type").exists()


def _prepare_v2(base: Path) -> None:
    """Hand the controllers down from the group. The root of all may then keep its processes, any other may not."""
    missing = not_delegated(base)
    if missing:
        raise HostError(
            f"cgroup v2 controllers not delegated to {base}: {', '.join(missing)}. "
            "Run as a service or scope of systemd's with Delegate=yes, or enable them in the parent's subtree_control"
        )
    handed_down = base / "cgroup.subtree_control"
    if set(V2_CONTROLLERS) <= set(handed_down.read_text().split()):
        return
    until = time.monotonic() + MOVE_S
    while True:
        if not is_top(base):
            _move_into_leaf(base)
        try:
            handed_down.write_text(" ".join(f"+{controller}" for controller in V2_CONTROLLERS))
            return
        except OSError as error:
            # Somebody forked as we moved them, or belongs to a PID namespace in which we see nobody.
            if error.errno != errno.EBUSY or time.monotonic() > until:
                raise


def _move_into_leaf(base: Path) -> None:
    leaf = base / MAIN_LEAF
    for pid in (base / "cgroup.procs").read_text().split():
        leaf.mkdir(exist_ok=True)
        # "0", which a process that cannot be seen from here is called, would be taken for the writer.
        if pid != "0":
            with contextlib.suppress(ProcessLookupError):
                (leaf / "cgroup.procs").write_text(pid)
