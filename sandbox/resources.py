"""What this host has of disk, cores and memory for running cells; as `doctor` reports it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from sandbox import cgroups
from sandbox.config import SandboxConfig
from sandbox.errors import HostError
from sandbox.findings import Finding, failed, number, ok, warning

_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")

_NEARLY_FULL_BYTES = 256 * 2**20
"""Below this, compiling one program may already fail."""


def disk(config: SandboxConfig, free_bytes: int | None = None) -> Finding:
    """Room for the compile cache in the data directory, and the right to write there."""
    existing = next(path for path in (config.data_dir, *config.data_dir.absolute().parents) if _can_see(path))
    if not os.access(existing, os.W_OK):
        return failed("disk", f"{existing} is not writable", "set RKGRADE_DATA_DIR to a directory that is")
    free_bytes = shutil.disk_usage(existing).free if free_bytes is None else free_bytes
    found = f"{_size(free_bytes)} free for {config.data_dir}"
    remedy = f"make room, or set RKGRADE_DATA_DIR: compiled programs may take {_size(config.compile_cache_bytes)}"
    if free_bytes < _NEARLY_FULL_BYTES:
        return failed("disk", found, remedy)
    if free_bytes < config.compile_cache_bytes:
        return warning("disk", found, remedy)
    return ok("disk", found)


def _can_see(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return False


def cores(groups: Path = _GROUPS, own: Path | None = None) -> Finding:
    """Whether a process can be pinned to each core, and whether a quota throttles them.

    `own`: on cgroup v2, the grader's own group below `groups`.
    """
    name = "core pinning"
    usable = os.sched_getaffinity(0)
    try:
        for core in usable:
            os.sched_setaffinity(0, {core})
    except OSError as error:
        return failed(name, f"refused: {error}", "allow sched_setaffinity (the container's seccomp profile)")
    finally:
        os.sched_setaffinity(0, usable)
    found = f"{len(usable)} of {os.cpu_count()} cores usable"
    quota = _cpu_quota(groups, own or _own_group(groups))
    if quota is not None and quota < len(usable):
        return warning(
            name,
            f"{found}, but a quota of {quota:g} cores throttles what runs",
            f"lift the quota, or serve with --workers {max(1, int(quota))}",
        )
    return ok(name, found)


def _cpu_quota(groups: Path, own: Path) -> float | None:
    """Cores' worth of CPU time that the grader's groups allow; None where it is not bounded."""
    limits = [line.split() for line in _in_groups(groups, own, "cpu.max")]
    quotas = [int(quota) / int(period) for quota, period in limits if quota != "max"]
    v1 = groups / "cpu"
    allowed, each = number(v1 / "cpu.cfs_quota_us"), number(v1 / "cpu.cfs_period_us")
    if allowed is not None and allowed > 0 and each:
        quotas.append(allowed / each)
    return min(quotas, default=None)


def _own_group(groups: Path) -> Path:
    """The grader's group on cgroup v2; else where all groups are."""
    try:
        hierarchies = cgroups.here()
    except HostError:
        return groups
    return hierarchies.directories["memory"] if hierarchies.version == "v2" else groups


def _in_groups(groups: Path, own: Path, file: str) -> list[str]:
    """What this file of cgroup v2 says in the grader's own group and those above it: each binds what is below."""
    paths = [path / file for path in (own, *own.parents) if path.is_relative_to(groups)]
    return [path.read_text().strip() for path in paths if path.is_file()]


def memory(proc: Path = _PROC, groups: Path = _GROUPS, own: Path | None = None) -> Finding:
    """Memory at hand, and whether the kernel promises it freely, as programs with large arrays expect."""
    values = dict(re.findall(r"^(\w+):\s*(\d+) kB", (proc / "meminfo").read_text(), re.M))
    found = f"{_size(int(values['MemAvailable']) * 1024)} of {_size(int(values['MemTotal']) * 1024)} available"
    bounds = [int(bound) for bound in _in_groups(groups, own or _own_group(groups), "memory.max") if bound != "max"]
    if bounds:
        found += f", {_size(min(bounds))} at most for the grader and all it runs"
    if number(proc / "sys/vm/overcommit_memory") == 2:
        return warning(
            "memory",
            f"{found}; strict accounting (vm.overcommit_memory = 2) refuses memory that is never touched",
            "sysctl -w vm.overcommit_memory=0",
        )
    return ok("memory", found)


def swap(proc: Path = _PROC, groups: Path = _GROUPS, own: Path | None = None) -> Finding:
    """Whether a program could go past its memory limit by being swapped out."""
    devices = (proc / "swaps").read_text().splitlines()[1:]
    if not devices:
        return ok("swap", "none")
    if (groups / "memory").is_dir() and not (groups / "memory/memory.memsw.limit_in_bytes").exists():
        return warning(
            "swap",
            f"{len(devices)} in use, and cgroup v1 does not count it: memory limits can be evaded",
            "swapoff -a, or boot with swapaccount=1",
        )
    group = own or _own_group(groups)
    if (group / "memory.max").exists() and not (group / "memory.swap.max").exists():
        return warning(
            "swap",
            f"{len(devices)} in use, and this kernel does not count it: memory limits can be evaded",
            "swapoff -a, or boot with swapaccount=1",
        )
    return ok("swap", f"{len(devices)} in use; programs get none of it")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
