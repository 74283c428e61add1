"""Control groups: the kernel's word on CPU time, memory and processes, on cgroup v1 and v2 behind one interface.

A worker process owns one directory, named for the process, in each hierarchy; every cell has in it a group for its
warden and one for its program, so that an out-of-memory kill can only hit the program, and CPU time and peak memory
are the program's alone. A process enters a group by writing "0" to a descriptor that this package opened: the kernel
checks the rights of the opener, so nothing in the jail needs any.

Knows nothing of jails, wardens or verdicts.
"""

from __future__ import annotations

from sandbox.cgroups.base import CellGroup, Cgroups, Usage
from sandbox.cgroups.hierarchies import V2_CONTROLLERS, Hierarchies, detect, here, is_top, not_delegated, prepare
from sandbox.cgroups.leftovers import cells_alive, owned_directories, sweep
from sandbox.cgroups.none import NoCgroups
from sandbox.cgroups.v1 import V1
from sandbox.cgroups.v2 import V2

__all__ = [
    "V2_CONTROLLERS",
    "CellGroup",
    "Cgroups",
    "Hierarchies",
    "NoCgroups",
    "Usage",
    "cells_alive",
    "detect",
    "here",
    "is_top",
    "not_delegated",
    "open_cgroups",
    "owned_directories",
    "prepare",
    "sweep",
]


def open_cgroups(*, insecure_no_cgroup: bool) -> Cgroups:
    """The groups of this process. Raises HostError where there are none and that was not accepted."""
    if insecure_no_cgroup:
        return NoCgroups()
    hierarchies = here()
    return V1(hierarchies) if hierarchies.version == "v1" else V2(hierarchies)
