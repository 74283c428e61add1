"""What this host lacks for running cells, and how to mend it: one small function a point.

Every check looks and tries, and leaves the host as it found it. What only reads kernel files takes the
directories it reads as arguments. Knows nothing of how findings are shown.
"""

from __future__ import annotations

import enum
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox import cgroups, host, languages, nsjail, testlib
from sandbox.config import SandboxConfig
from sandbox.errors import HostError, UnknownLanguage

_PROC = Path("/proc")

#: The newest feature in use, a cgroup's memory.peak, came with this release; cgroup v1 does without.
_KERNEL_FOR_V2 = (5, 19)

_CAP_SYS_ADMIN = 21
_JAIL_DEADLINE_S = 20
_NEARLY_FULL_BYTES = 256 * 2**20
"""Below this, compiling one program may already fail."""


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


def examine(config: SandboxConfig) -> Iterator[Finding]:
    """Every check, one after the other, as each ends."""
    yield kernel()
    yield rights()
    yield user_namespaces()
    yield control_groups()
    yield seccomp()
    yield data_directory(config)
    yield jail(config)
    yield from compilers()
    yield from offered_languages(config)
    yield testlib_header(config)
    yield disk(config)
    yield cores()
    yield memory()
    yield swap()


def _ok(name: str, found: str) -> Finding:
    return Finding(name, Status.OK, found)


def _warning(name: str, found: str, remedy: str) -> Finding:
    return Finding(name, Status.WARNING, found, remedy)


def _failed(name: str, found: str, remedy: str) -> Finding:
    return Finding(name, Status.FAILED, found, remedy)


def _number(path: Path) -> int | None:
    """The integer a kernel file holds; None where this kernel has no such file."""
    try:
        return int(path.read_text())
    except FileNotFoundError:
        return None


def kernel(release: str | None = None) -> Finding:
    """The kernel's release against what the sandbox needs of it."""
    release = release or platform.release()
    if tuple(int(part) for part in re.findall(r"\d+", release)[:2]) < _KERNEL_FOR_V2:
        least = ".".join(map(str, _KERNEL_FOR_V2))
        return _warning("kernel", f"Linux {release}: new enough for cgroup v1 only", f"use Linux {least} or later")
    return _ok("kernel", f"Linux {release}")


def _has_admin(proc: Path) -> bool:
    effective = re.search(r"^CapEff:\s*(\w+)", (proc / "self/status").read_text(), re.M)
    return effective is not None and bool(int(effective[1], 16) >> _CAP_SYS_ADMIN & 1)


def rights(proc: Path = _PROC, uid: int | None = None) -> Finding:
    """Whether this process may make cells: two host uids in one jail take root, mounts take CAP_SYS_ADMIN."""
    uid = os.geteuid() if uid is None else uid
    if uid != 0:
        return _failed("rights", f"uid {uid}", "run as root: cells need namespaces, cgroups and two uids")
    if not _has_admin(proc):
        return _failed("rights", "root without CAP_SYS_ADMIN", "in a container: add the capability SYS_ADMIN")
    return _ok("rights", "root")


def user_namespaces(proc: Path = _PROC) -> Finding:
    """The sysctls that can forbid user namespaces. Two of them bind only processes without CAP_SYS_ADMIN."""
    name = "user namespaces"
    most = _number(proc / "sys/user/max_user_namespaces")
    if most is None:
        return _failed(name, "not in this kernel", "use a kernel with CONFIG_USER_NS")
    if most == 0:
        return _failed(name, "forbidden: user.max_user_namespaces = 0", "sysctl -w user.max_user_namespaces=10000")
    for setting, forbidding, allowed in (
        ("unprivileged_userns_clone", 0, 1),
        ("apparmor_restrict_unprivileged_userns", 1, 0),
    ):
        if _number(proc / "sys/kernel" / setting) == forbidding and not _has_admin(proc):
            return _failed(
                name,
                f"forbidden: kernel.{setting} = {forbidding}",
                f"run as root, or: sysctl -w kernel.{setting}={allowed}",
            )
    return _ok(name, f"allowed, {most} at most")


def control_groups() -> Finding:
    """Which cgroup version there is, with the controllers needed, and whether a group can be made."""
    name = "cgroups"
    try:
        hierarchies = cgroups.here()
    except HostError as error:
        return _failed(name, str(error), "mount cgroup v2 at /sys/fs/cgroup, or boot with systemd")
    return try_groups(hierarchies)


def try_groups(hierarchies: cgroups.Hierarchies) -> Finding:
    """Make and remove a group in each hierarchy."""
    name = "cgroups"
    directories = set(hierarchies.directories.values())
    if hierarchies.version == "v2":
        (base,) = directories
        missing = {"cpu", "memory", "pids"} - set((base / "cgroup.controllers").read_text().split())
        if missing:
            return _failed(
                name,
                f"v2, without {', '.join(sorted(missing))} in {base}",
                "delegate them: systemd-run --scope -p Delegate=yes ..., or a parent's subtree_control",
            )
    for directory in directories:
        probe = directory / f"rkgrade-doctor-{os.getpid()}"
        try:
            probe.mkdir()
            probe.rmdir()
        except OSError as error:
            return _failed(
                name,
                f"{hierarchies.version}, but no group can be made: {error}",
                "run as root; in a container: mount the cgroup hierarchy writable",
            )
    return _ok(name, f"{hierarchies.version}, controllers {', '.join(sorted(hierarchies.directories))}, writable")


def seccomp(proc: Path = _PROC) -> Finding:
    """Whether the kernel takes filters that answer system calls with an error."""
    actions = proc / "sys/kernel/seccomp/actions_avail"
    if not actions.is_file() or "errno" not in actions.read_text().split():
        return _failed("seccomp", "no filters in this kernel", "use a kernel with CONFIG_SECCOMP_FILTER")
    return _ok("seccomp", "filters that answer with an error")


def data_directory(config: SandboxConfig) -> Finding:
    """Whether cells, which have uids of their own, can see what is made for them in the data directory."""
    try:
        host.check_data_dir(config.data_dir.resolve())
    except HostError as error:
        return _failed("data directory", str(error), "set RKGRADE_DATA_DIR to another directory")
    return _ok("data directory", f"{config.data_dir}, where cells can see what is made for them")


def jail(config: SandboxConfig) -> Finding:
    """Run a program in a real jail, under the real policy, and ask it what it is there."""
    name = "nsjail"
    remedy = "in a container: add SYS_ADMIN, and lift the runtime's seccomp and AppArmor profiles"
    reader, writer = os.pipe()
    try:
        command = nsjail.command(
            ["/bin/sh", "-c", "id -u; grep Seccomp: /proc/self/status"],
            host_uid=config.uid_base,
            pass_fd=writer,
            scratch_bytes=2**20,
            mounts=(),
        )
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            pass_fds=(writer,),
            timeout=_JAIL_DEADLINE_S,
            check=False,
        )
    except HostError as error:
        return _failed(name, "not installed", str(error))
    except subprocess.TimeoutExpired:
        return _failed(name, f"a jail did not end within {_JAIL_DEADLINE_S} s", remedy)
    finally:
        os.close(reader)
        os.close(writer)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return _failed(name, f"no jail can be made: {last}", remedy)
    if done.stdout.split() != ["0", "Seccomp:", "2"]:
        return _failed(name, f"a jail is not as it should be: {done.stdout.split()}", remedy)
    return _ok(name, "a program ran in a jail, under a seccomp filter")


def compilers() -> Iterator[Finding]:
    """What the grader itself needs: Python runs in every cell, and gcc builds the launcher that all of them hold."""
    for program, package in (("/usr/bin/python3", "python3"), ("/usr/bin/gcc", "gcc")):
        name = Path(program).name
        if shutil.which(program) is None:
            yield _failed(name, f"no {program}", f"apt-get install {package}")
        else:
            words = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            yield _ok(name, words.splitlines()[0])


def offered_languages(config: SandboxConfig) -> Iterator[Finding]:
    """Each language that works here, with its version and other names; what is amiss with others that should."""
    absent = []
    for language in languages.REGISTRY.values():
        if config.languages is not None and language.id not in config.languages:
            continue
        name, remedy = f"language {language.id}", f"scripts/run --languages {language.id}"
        lacking = languages.missing(language)
        if lacking is None:
            try:
                found = languages.version(language)
            except UnknownLanguage as error:
                yield _warning(name, str(error), remedy)
            else:
                yield _ok(name, f"{found}; also {', '.join(language.aliases)}" if language.aliases else found)
        elif language.is_default or config.languages is not None:
            yield _warning(name, f"no {lacking}", remedy)
        else:
            absent.append(language.id)
    if not (Path(languages.PYTHON_LIBRARIES) / "numpy").is_dir():
        yield _warning("Python libraries", "no numpy, no sortedcontainers", "scripts/run --languages python")
    if absent:
        yield _ok("other languages", f"not installed: {', '.join(absent)}")


def testlib_header(config: SandboxConfig) -> Finding:
    """The header that checkers and interactors of the testlib kind include."""
    if testlib.header(config) is None:
        remedy = "run scripts/run, which fetches it, or set RKGRADE_TESTLIB; others than testlib's checkers do without"
        return _warning("testlib.h", f"no {config.testlib}", remedy)
    return _ok("testlib.h", str(config.testlib))


def disk(config: SandboxConfig, free_bytes: int | None = None) -> Finding:
    """Room for the compile cache in the data directory, and the right to write there."""
    existing = next(path for path in (config.data_dir, *config.data_dir.absolute().parents) if _can_see(path))
    if not os.access(existing, os.W_OK):
        return _failed("disk", f"{existing} is not writable", "set RKGRADE_DATA_DIR to a directory that is")
    free_bytes = shutil.disk_usage(existing).free if free_bytes is None else free_bytes
    found = f"{_size(free_bytes)} free for {config.data_dir}"
    remedy = f"make room, or set RKGRADE_DATA_DIR: compiled programs may take {_size(config.compile_cache_bytes)}"
    if free_bytes < _NEARLY_FULL_BYTES:
        return _failed("disk", found, remedy)
    if free_bytes < config.compile_cache_bytes:
        return _warning("disk", found, remedy)
    return _ok("disk", found)


def _can_see(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return False


def cores(groups: Path = Path("/sys/fs/cgroup")) -> Finding:
    """Whether a process can be pinned to each core, and whether a quota throttles them."""
    name = "core pinning"
    usable = os.sched_getaffinity(0)
    try:
        for core in usable:
            os.sched_setaffinity(0, {core})
    except OSError as error:
        return _failed(name, f"refused: {error}", "allow sched_setaffinity (the container's seccomp profile)")
    finally:
        os.sched_setaffinity(0, usable)
    found = f"{len(usable)} of {os.cpu_count()} cores usable"
    quota = _cpu_quota(groups)
    if quota is not None and quota < len(usable):
        return _warning(
            name,
            f"{found}, but a quota of {quota:g} cores throttles what runs",
            f"lift the quota, or serve with --workers {max(1, int(quota))}",
        )
    return _ok(name, found)


def _cpu_quota(groups: Path) -> float | None:
    """Cores' worth of CPU time that the container's own group allows; None where it is not bounded."""
    v2, v1 = groups / "cpu.max", groups / "cpu"
    if v2.is_file():
        quota, period = v2.read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    allowed, each = _number(v1 / "cpu.cfs_quota_us"), _number(v1 / "cpu.cfs_period_us")
    return allowed / each if allowed is not None and allowed > 0 and each else None


def memory(proc: Path = _PROC) -> Finding:
    """Memory at hand, and whether the kernel promises it freely, as programs with large arrays expect."""
    values = dict(re.findall(r"^(\w+):\s*(\d+) kB", (proc / "meminfo").read_text(), re.M))
    found = f"{_size(int(values['MemAvailable']) * 1024)} of {_size(int(values['MemTotal']) * 1024)} available"
    if _number(proc / "sys/vm/overcommit_memory") == 2:
        return _warning(
            "memory",
            f"{found}; strict accounting (vm.overcommit_memory = 2) refuses memory that is never touched",
            "sysctl -w vm.overcommit_memory=0",
        )
    return _ok("memory", found)


def swap(proc: Path = _PROC, groups: Path = Path("/sys/fs/cgroup")) -> Finding:
    """Whether a program could go past its memory limit by being swapped out."""
    devices = (proc / "swaps").read_text().splitlines()[1:]
    if not devices:
        return _ok("swap", "none")
    if (groups / "memory").is_dir() and not (groups / "memory/memory.memsw.limit_in_bytes").exists():
        return _warning(
            "swap",
            f"{len(devices)} in use, and cgroup v1 does not count it: memory limits can be evaded",
            "swapoff -a, or boot with swapaccount=1",
        )
    return _ok("swap", f"{len(devices)} in use; programs get none of it")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
