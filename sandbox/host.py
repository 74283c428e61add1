"""What must be true of this machine before any cell starts, and putting it so.

Called once by whoever owns the machine's sandbox (`rkgrade serve`, `rkgrade grade`), before its judges. Fails closed:
without control groups nothing starts, unless that was asked for by name.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from sandbox import cgroups, languages, nsjail, prebuilt
from sandbox.compiling import CompileCache
from sandbox.config import SandboxConfig
from sandbox.errors import HostError, UnknownLanguage


@dataclass(frozen=True, slots=True)
class HostReport:
    sandbox: str
    """Such as "nsjail, cgroup v1"."""
    secure: bool
    """Whether memory, CPU and processes are limited by the kernel's groups."""
    swept: int
    """Directories of control groups that dead graders had left behind."""


def prepare(config: SandboxConfig) -> HostReport:
    """Check the host, clear what dead graders left, and build what cells need. Raises HostError."""
    if os.geteuid() != 0:
        raise HostError("cells need root (two uids in each jail, control groups): run as root, or in a container")
    nsjail.binary()
    try:
        nsjail.hold_mount_points()
    except OSError as error:
        raise HostError(str(error)) from error
    if not Path(languages.PYTHON).exists():
        raise HostError(f"{languages.PYTHON} runs in every cell and is missing: apt-get install python3")
    config.data_dir.mkdir(parents=True, exist_ok=True)
    check_data_dir(config.data_dir.resolve())
    swept = 0
    name = cgroups.NoCgroups.version
    if not config.insecure_no_cgroup:
        hierarchies = cgroups.here()
        cgroups.prepare(hierarchies)
        swept = cgroups.sweep(hierarchies)
        name = f"cgroup {hierarchies.version}"
    try:
        prebuilt.build(config)
    except UnknownLanguage as error:
        raise HostError(f"{error}; mend its toolchain, or leave it out of RKGRADE_LANGUAGES") from error
    CompileCache(config).sweep()
    return HostReport(f"nsjail, {name}", not config.insecure_no_cgroup, swept)


def check_data_dir(data_dir: Path) -> None:
    """Raises HostError where programs could read it, or cells could not reach what is prebuilt there."""
    for shown in nsjail.READ_ONLY:
        if data_dir.is_relative_to(shown):
            raise HostError(f"the data directory {data_dir} lies in {shown}, which programs can read: choose another")
    hidden = hidden_part(data_dir)
    if hidden is not None:
        raise HostError(
            f"cells, which have uids of their own, cannot reach the data directory {data_dir}: "
            f"chmod o+x {hidden}, or choose another"
        )


def hidden_part(folder: Path) -> Path | None:
    """The uppermost part of the path that others than its owner may not pass through, or None."""
    path = folder.absolute()
    for part in (*reversed(path.parents), path):
        if part.exists() and not part.stat().st_mode & stat.S_IXOTH:
            return part
    return None
