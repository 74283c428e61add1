"""What this host lacks for running cells, and how to mend it: one small function a point.

Every check looks and tries, and leaves nothing behind but the two empty folders that jails are mounted on
(`sandbox.nsjail.hold_mount_points`). What only reads kernel files takes the directories it reads as arguments. Knows
nothing of how findings are shown.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sandbox import cgroups, host, languages, nsjail, testlib
from sandbox.config import SandboxConfig
from sandbox.errors import HostError, UnknownLanguage
from sandbox.findings import Finding, failed, number, ok, warning
from sandbox.resources import cores, disk, memory, swap

_PROC = Path("/proc")

#: There where systemd is process 1, see sd_booted(3).
_SYSTEMD = Path("/run/systemd/system")

#: With this release came memory.peak of cgroup v2, the newest feature in use. v1 has a peak in any.
_KERNEL_FOR_PEAK = (5, 19)

_CAP_SYS_ADMIN = 21

#: What root needs, of all that it may have: to map the two users of a cell, and to end what runs as them.
_CAPABILITIES = {"CAP_SETUID": 7, "CAP_SETGID": 6, "CAP_KILL": 5}
_JAIL_DEADLINE_S = 20


def examine(config: SandboxConfig) -> Iterator[Finding]:
    """Every check, one after the other, as each ends."""
    yield kernel()
    yield rights()
    yield user_namespaces()
    yield control_groups()
    yield seccomp()
    yield core_handler()
    yield data_directory(config)
    if os.geteuid() == 0:
        yield jail(config)
    yield from compilers()
    yield from offered_languages(config)
    yield testlib_header(config)
    yield disk(config)
    yield cores()
    yield memory()
    yield swap()


def kernel(release: str | None = None) -> Finding:
    """The kernel's release against what the sandbox needs of it."""
    release = release or platform.release()
    if tuple(int(part) for part in re.findall(r"\d+", release)[:2]) < _KERNEL_FOR_PEAK:
        least = ".".join(map(str, _KERNEL_FOR_PEAK))
        return warning(
            "kernel",
            f"Linux {release}: on cgroup v2, memory limits hold, but what results say was used is too little",
            f"use Linux {least} or later, or cgroup v1",
        )
    return ok("kernel", f"Linux {release}")


def _has(capability: int, proc: Path) -> bool:
    effective = re.search(r"^CapEff:\s*(\w+)", (proc / "self/status").read_text(), re.M)
    return effective is not None and bool(int(effective[1], 16) >> capability & 1)


def rights(proc: Path = _PROC, uid: int | None = None) -> Finding:
    """Whether this process may make cells: two host uids in one jail take root, and not all that root may."""
    uid = os.geteuid() if uid is None else uid
    if uid != 0:
        return failed("rights", f"uid {uid}", "run as root: cells need namespaces, cgroups and two uids")
    missing = [name for name, capability in _CAPABILITIES.items() if not _has(capability, proc)]
    if missing:
        added = ", ".join(name.removeprefix("CAP_") for name in missing)
        return failed("rights", f"root without {', '.join(missing)}", f"in a container: add the capabilities {added}")
    return ok("rights", "root")


def user_namespaces(proc: Path = _PROC) -> Finding:
    """The sysctls that can forbid user namespaces. Two of them bind only processes without CAP_SYS_ADMIN."""
    name = "user namespaces"
    most = number(proc / "sys/user/max_user_namespaces")
    if most is None:
        return failed(name, "not in this kernel", "use a kernel with CONFIG_USER_NS")
    if most == 0:
        return failed(name, "forbidden: user.max_user_namespaces = 0", "sysctl -w user.max_user_namespaces=10000")
    for setting, forbidding, allowed in (
        ("unprivileged_userns_clone", 0, 1),
        ("apparmor_restrict_unprivileged_userns", 1, 0),
    ):
        if number(proc / "sys/kernel" / setting) == forbidding and not _has(_CAP_SYS_ADMIN, proc):
            return failed(
                name,
                f"forbidden: kernel.{setting} = {forbidding}",
                f"run as root, or: sysctl -w kernel.{setting}={allowed}",
            )
    return ok(name, f"allowed, {most} at most")


def core_handler(proc: Path = _PROC, core_bytes: int | None = None) -> Finding:
    """Whether what crashes in a cell is handed to a program of the host's, which runs as root (core(5)).

    `core_bytes`: cells' limit on cores. That of 1 spares the handler, and cannot be had below a hard limit of 0.
    """
    name = "core handler"
    pattern = (proc / "sys/kernel/core_pattern").read_text().strip()
    core_bytes = nsjail.core_bytes() if core_bytes is None else core_bytes
    if not pattern.startswith("|"):
        return ok(name, "none: cores would be files")
    if core_bytes == 0:
        return warning(
            name,
            f"{pattern.split()[0][1:]} would take what crashes in a cell, as root",
            "start the grader with a hard limit on cores of at least 1: ulimit -H -c 1, or --ulimit core=1",
        )
    return ok(name, "spared: cells' limit on cores is 1")


def control_groups() -> Finding:
    """Which cgroup version there is, with the controllers needed, and whether a group can be made."""
    name = "cgroups"
    try:
        hierarchies = cgroups.here()
    except HostError as error:
        return failed(name, str(error), "mount cgroup v2 at /sys/fs/cgroup, or boot with systemd")
    return try_groups(hierarchies)


def try_groups(hierarchies: cgroups.Hierarchies) -> Finding:
    """Make and remove a group in each hierarchy."""
    name = "cgroups"
    directories = set(hierarchies.directories.values())
    if hierarchies.version == "v2":
        (base,) = directories
        if not cgroups.is_top(base) and (kind := (base / "cgroup.type").read_text().strip()) != "domain":
            return failed(name, f"v2, but the type of {base} is {kind}", "start the grader in a group of type domain")
        missing = cgroups.not_delegated(base)
        if missing:
            return failed(
                name,
                f"v2, without {', '.join(missing)} in {base}",
                "delegate them: systemd-run --scope -p Delegate=yes ..., or a parent's subtree_control",
            )
    for directory in directories:
        probe = directory / f"rkgrade-doctor-{os.getpid()}"
        try:
            probe.mkdir()
            probe.rmdir()
        except OSError as error:
            return failed(
                name,
                f"{hierarchies.version}, but no group can be made: {error}",
                "run as root; in a container: mount the cgroup hierarchy writable",
            )
    if hierarchies.version == "v1":
        return ok(name, f"v1, controllers {', '.join(sorted(hierarchies.directories))}, writable")
    found = f"v2, controllers {', '.join(cgroups.V2_CONTROLLERS)}, writable in {base}"
    if _SYSTEMD.is_dir() and not cgroups.is_top(base) and not _delegated_by_systemd(base):
        return warning(
            name,
            f"{found}, but systemd manages that group and may take the controllers away",
            "serve as a unit with Delegate=yes (docs/deployment.md), or: systemd-run --scope -p Delegate=yes ...",
        )
    return ok(name, found)


def _delegated_by_systemd(group: Path) -> bool:
    """Whether the group, or one above it, bears systemd's mark that what is in it is left alone."""
    for path in (group, *group.parents):
        for mark in ("trusted.delegate", "user.delegate"):
            with contextlib.suppress(OSError):
                if os.getxattr(path, mark) == b"1":
                    return True
    return False


def seccomp(proc: Path = _PROC) -> Finding:
    """Whether the kernel takes filters that answer system calls with an error."""
    actions = proc / "sys/kernel/seccomp/actions_avail"
    if not actions.is_file() or "errno" not in actions.read_text().split():
        return failed("seccomp", "no filters in this kernel", "use a kernel with CONFIG_SECCOMP_FILTER")
    return ok("seccomp", "filters that answer with an error")


def data_directory(config: SandboxConfig) -> Finding:
    """Whether cells, which have uids of their own, can see what is made for them in the data directory."""
    try:
        host.check_data_dir(config.data_dir.resolve())
    except HostError as error:
        return failed("data directory", str(error), "set RKGRADE_DATA_DIR to another directory")
    return ok("data directory", f"{config.data_dir}, where cells can see what is made for them")


def jail(config: SandboxConfig) -> Finding:
    """Run a program in a real jail, under the real policy, and ask it what it is there."""
    name = "nsjail"
    remedy = "in a container: lift the runtime's seccomp and AppArmor profiles, and have nothing of /proc covered"
    reader, writer = os.pipe()
    try:
        nsjail.hold_mount_points()
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
        return failed(name, "not installed", str(error))
    except OSError as error:
        return failed(name, "no jail can be made here", str(error))
    except subprocess.TimeoutExpired:
        return failed(name, f"a jail did not end within {_JAIL_DEADLINE_S} s", remedy)
    finally:
        os.close(reader)
        os.close(writer)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["no message"]
        # What follows the first error is that whatever needed it failed, too.
        cause = next((line for line in said if line.startswith("[E]")), said[-1])
        return failed(name, f"no jail can be made: {cause}", remedy)
    if done.stdout.split() != ["0", "Seccomp:", "2"]:
        return failed(name, f"a jail is not as it should be: {done.stdout.split()}", remedy)
    return ok(name, "a program ran in a jail, under a seccomp filter")


def compilers() -> Iterator[Finding]:
    """What the grader itself needs: Python runs in every cell, and gcc builds the launcher that all of them hold."""
    for program, package in (("/usr/bin/python3", "python3"), ("/usr/bin/gcc", "gcc")):
        name = Path(program).name
        if shutil.which(program) is None:
            yield failed(name, f"no {program}", f"apt-get install {package}")
        else:
            words = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            yield ok(name, words.splitlines()[0])


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
                yield warning(name, str(error), remedy)
            else:
                yield ok(name, f"{found}; also {', '.join(language.aliases)}" if language.aliases else found)
        elif language.is_default or config.languages is not None:
            yield warning(name, f"no {lacking}", remedy)
        else:
            absent.append(language.id)
    if not (Path(languages.PYTHON_LIBRARIES) / "numpy").is_dir():
        yield warning("Python libraries", "no numpy, no sortedcontainers", "scripts/run --languages python")
    if absent:
        yield ok("other languages", f"not installed: {', '.join(absent)}")


def testlib_header(config: SandboxConfig) -> Finding:
    """The header that checkers and interactors of the testlib kind include."""
    if testlib.header(config) is None:
        remedy = "run scripts/run, which fetches it, or set RKGRADE_TESTLIB; others than testlib's checkers do without"
        return warning("testlib.h", f"no {config.testlib}", remedy)
    return ok("testlib.h", str(config.testlib))
