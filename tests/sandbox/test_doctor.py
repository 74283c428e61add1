"""What the doctor says of this host, and of kernel files that tell of a host in a worse state."""

from __future__ import annotations

import dataclasses
import os
import re
import tempfile
from pathlib import Path

import pytest

from sandbox import doctor, languages, resources
from sandbox.cgroups import Hierarchies
from sandbox.config import SandboxConfig
from sandbox.findings import Finding, Status

ROOT_STATUS = "Name:\tsh\nCapEff:\t000001ffffffffff\n"
BARE_STATUS = "Name:\tsh\nCapEff:\t0000000000000040\n"
CONTAINER_STATUS = "Name:\tsh\nCapEff:\t00000000a80425fb\n"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def outcome(finding: Finding) -> tuple[Status, str]:
    """Status and what was found; each finding that is not ok must say how to mend it."""
    assert bool(finding.remedy) == (finding.status is not Status.OK)
    return finding.status, finding.found


@pytest.mark.jail
def test_a_host_that_can_run_cells_passes_every_check() -> None:
    findings = list(doctor.examine(SandboxConfig(Path("/var/lib/rkgrade"))))

    assert [f for f in findings if f.status is Status.FAILED] == []
    assert [f.name for f in findings if "language" not in f.name] == [
        "kernel",
        "rights",
        "user namespaces",
        "cgroups",
        "seccomp",
        "core handler",
        "data directory",
        "nsjail",
        "python3",
        "gcc",
        "testlib.h",
        "disk",
        "core pinning",
        "memory",
        "swap",
    ]


@pytest.mark.jail
def test_languages_are_listed_with_their_versions_and_other_names() -> None:
    found = {finding.name: outcome(finding) for finding in doctor.offered_languages(SandboxConfig(Path("/nowhere")))}
    default = [f"language {entry.id}" for entry in languages.REGISTRY.values() if entry.is_default]
    assert [name for name in default if found[name][0] is not Status.OK] == []
    assert re.fullmatch(r"Python 3\.\d+\.\d+; also py, py3, python3, cpython", found["language python"][1])
    absent = [entry.id for entry in languages.REGISTRY.values() if languages.missing(entry) is not None]
    assert found.get("other languages", (Status.OK, "not installed: "))[1] == f"not installed: {', '.join(absent)}"


def test_a_language_that_is_to_be_offered_and_is_not_there_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = dataclasses.replace(languages.REGISTRY["c"], id="absent", version_command=("/nonexistent/cc",))
    broken = dataclasses.replace(languages.REGISTRY["c"], id="broken", version_command=("/bin/false",))
    monkeypatch.setattr("sandbox.languages.REGISTRY", {"absent": absent, "broken": broken})
    config = SandboxConfig(Path("/nowhere"), languages=frozenset({"absent", "broken"}))
    found = {finding.name: outcome(finding) for finding in doctor.offered_languages(config)}
    assert found["language absent"] == (Status.WARNING, "no /nonexistent/cc")
    assert found["language broken"][0] is Status.WARNING
    assert "/bin/false failed" in found["language broken"][1]


@pytest.mark.jail
def test_the_checks_leave_nothing_behind(tmp_path: Path) -> None:
    affinity = os.sched_getaffinity(0)
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    list(doctor.examine(SandboxConfig(tmp_path / "not-made")))

    assert os.sched_getaffinity(0) == affinity
    assert len(os.listdir("/proc/self/fd")) == descriptors  # noqa: PTH208
    assert list(tmp_path.iterdir()) == []


@pytest.mark.jail
def test_a_jail_that_cannot_be_made_is_reported_with_the_kernel_s_word() -> None:
    # The kernel takes no uid map that reaches past the last uid.
    finding = doctor.jail(SandboxConfig(Path("/nowhere"), uid_base=2**32 - 2))

    assert finding.status is Status.FAILED
    assert finding.found.startswith("no jail can be made: ")


def test_a_data_directory_that_cells_cannot_see_into_is_a_failure() -> None:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        config = SandboxConfig(home / "not-made")
        home.chmod(0o700)
        status, found = outcome(doctor.data_directory(config))
        assert (status, f"chmod o+x {home}" in found) == (Status.FAILED, True)
        home.chmod(0o711)
        assert outcome(doctor.data_directory(config))[0] is Status.OK


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("6.1.0-38-amd64", (Status.OK, "Linux 6.1.0-38-amd64")),
        ("5.19.0", (Status.OK, "Linux 5.19.0")),
        (
            "5.10.0",
            (
                Status.WARNING,
                "Linux 5.10.0: on cgroup v2, memory limits hold, but what results say was used is too little",
            ),
        ),
    ],
)
def test_kernel(release: str, expected: tuple[Status, str]) -> None:
    assert outcome(doctor.kernel(release)) == expected


@pytest.mark.parametrize(
    ("status", "uid", "expected"),
    [
        (ROOT_STATUS, 0, (Status.OK, "root")),
        (CONTAINER_STATUS, 0, (Status.OK, "root")),
        (BARE_STATUS, 0, (Status.FAILED, "root without CAP_SETUID, CAP_KILL")),
        (CONTAINER_STATUS, 1000, (Status.FAILED, "uid 1000")),
    ],
)
def test_rights(tmp_path: Path, status: str, uid: int, expected: tuple[Status, str]) -> None:
    assert outcome(doctor.rights(tree(tmp_path, {"self/status": status}), uid)) == expected


MOST, CLONE, APPARMOR = (
    "sys/user/max_user_namespaces",
    "sys/kernel/unprivileged_userns_clone",
    "sys/kernel/apparmor_restrict_unprivileged_userns",
)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, (Status.FAILED, "not in this kernel")),
        ({MOST: "0\n"}, (Status.FAILED, "forbidden: user.max_user_namespaces = 0")),
        ({MOST: "9\n", CLONE: "1\n", APPARMOR: "0\n"}, (Status.OK, "allowed, 9 at most")),
        (
            {MOST: "9\n", CLONE: "0\n"},
            (Status.FAILED, "forbidden: kernel.unprivileged_userns_clone = 0"),
        ),
        (
            {MOST: "9\n", APPARMOR: "1\n"},
            (Status.FAILED, "forbidden: kernel.apparmor_restrict_unprivileged_userns = 1"),
        ),
        ({MOST: "9\n", APPARMOR: "1\n", "self/status": ROOT_STATUS}, (Status.OK, "allowed, 9 at most")),
    ],
)
def test_user_namespaces(tmp_path: Path, files: dict[str, str], expected: tuple[Status, str]) -> None:
    proc = tree(tmp_path, {"self/status": CONTAINER_STATUS, **files})
    assert outcome(doctor.user_namespaces(proc)) == expected


def unified(base: Path) -> Hierarchies:
    return Hierarchies("v2", dict.fromkeys(("memory", "cpuacct", "pids"), base))


def test_cgroup_v2_controllers_that_were_not_delegated_are_named(tmp_path: Path) -> None:
    base = tree(tmp_path, {"cgroup.controllers": "cpu io\n"})
    assert outcome(doctor.try_groups(unified(base))) == (Status.FAILED, f"v2, without memory, pids in {base}")


@pytest.mark.jail
def test_a_group_that_systemd_manages_and_has_not_delegated_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.doctor._SYSTEMD", tmp_path)
    files = {"cgroup.controllers": "memory pids\n", "cgroup.type": "domain\n"}
    base = tree(tmp_path / "system.slice" / "rkgrade.service", files)
    status, found = outcome(doctor.try_groups(unified(base)))
    assert (status, "systemd manages that group" in found) == (Status.WARNING, True)
    # Whatever is below a group that is delegated is, too.
    os.setxattr(base.parent, "trusted.delegate", b"1")
    assert outcome(doctor.try_groups(unified(base)))[0] is Status.OK


def test_a_group_of_the_wrong_type_is_a_failure(tmp_path: Path) -> None:
    base = tree(tmp_path, {"cgroup.controllers": "pids\n", "cgroup.type": "threaded\n"})
    assert outcome(doctor.try_groups(unified(base))) == (Status.FAILED, f"v2, but the type of {base} is threaded")


def test_a_group_is_made_and_removed_again(tmp_path: Path) -> None:
    base = tree(tmp_path, {"cgroup.controllers": "cpu io memory pids\n"})
    assert doctor.try_groups(unified(base)).status is Status.OK
    assert [path.name for path in base.iterdir()] == ["cgroup.controllers"]


def test_groups_that_cannot_be_made_are_a_failure() -> None:
    # Nothing can be made in /proc, not even by root.
    hierarchies = Hierarchies("v1", dict.fromkeys(("memory", "cpuacct", "pids"), Path("/proc")))
    status, found = outcome(doctor.try_groups(hierarchies))
    assert status is Status.FAILED
    assert found.startswith("v1, but no group can be made: ")


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({}, Status.FAILED),
        ({"sys/kernel/seccomp/actions_avail": "kill_thread trap allow\n"}, Status.FAILED),
        ({"sys/kernel/seccomp/actions_avail": "kill_process trap errno log allow\n"}, Status.OK),
    ],
)
def test_seccomp(tmp_path: Path, files: dict[str, str], status: Status) -> None:
    assert outcome(doctor.seccomp(tree(tmp_path, files)))[0] is status


@pytest.mark.parametrize(
    ("pattern", "core_bytes", "expected"),
    [
        ("core\n", 0, (Status.OK, "none: cores would be files")),
        ("|/usr/lib/handler %P\n", 1, (Status.OK, "spared: cells' limit on cores is 1")),
        (
            "|/usr/lib/handler %P\n",
            0,
            (Status.WARNING, "/usr/lib/handler would take what crashes in a cell, as root"),
        ),
    ],
)
def test_core_handler(tmp_path: Path, pattern: str, core_bytes: int, expected: tuple[Status, str]) -> None:
    assert outcome(doctor.core_handler(tree(tmp_path, {"sys/kernel/core_pattern": pattern}), core_bytes)) == expected


def test_testlib(tmp_path: Path) -> None:
    header = tmp_path / "testlib.h"
    config = SandboxConfig(tmp_path, testlib=header)
    assert outcome(doctor.testlib_header(config)) == (Status.WARNING, f"no {header}")
    header.touch()
    assert outcome(doctor.testlib_header(config)) == (Status.OK, str(header))


@pytest.mark.parametrize(
    ("free_bytes", "status"),
    [(100 * 2**20, Status.FAILED), (2**30, Status.WARNING), (3 * 2**30, Status.OK)],
)
def test_disk(tmp_path: Path, free_bytes: int, status: Status) -> None:
    finding = resources.disk(SandboxConfig(tmp_path / "a" / "b", compile_cache_bytes=2 * 2**30), free_bytes)
    assert outcome(finding)[0] is status


def test_a_data_directory_that_nobody_can_write_to_is_a_failure() -> None:
    # The kernel lets nobody make files in /proc/sys, root included.
    finding = resources.disk(SandboxConfig(Path("/proc/sys/rkgrade")))
    assert finding.status is Status.FAILED


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({}, Status.OK),
        ({"cpu.max": "max 100000\n"}, Status.OK),
        ({"cpu.max": "50000 100000\n"}, Status.WARNING),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, Status.OK),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, Status.WARNING),
    ],
)
def test_cores(tmp_path: Path, files: dict[str, str], status: Status) -> None:
    assert outcome(resources.cores(tree(tmp_path, files), tmp_path))[0] is status


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"a.slice/cpu.max": "max 100000\n", "a.slice/b.service/cpu.max": "max 100000\n"}, None),
        ({"a.slice/cpu.max": "max 100000\n", "a.slice/b.service/cpu.max": "50000 100000\n"}, "0.5"),
        ({"a.slice/cpu.max": "25000 100000\n", "a.slice/b.service/cpu.max": "50000 100000\n"}, "0.25"),
        ({"other.slice/cpu.max": "25000 100000\n"}, None),
    ],
)
def test_the_least_quota_of_the_own_group_and_those_above_it_counts(
    tmp_path: Path, files: dict[str, str], quota: str | None
) -> None:
    _, found = outcome(resources.cores(tree(tmp_path, files), tmp_path / "a.slice/b.service"))
    assert found.endswith(f"but a quota of {quota} cores throttles what runs") is (quota is not None)


MEMINFO = "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n"


@pytest.mark.parametrize(("overcommit", "status"), [("0", Status.OK), ("1", Status.OK), ("2", Status.WARNING)])
def test_memory(tmp_path: Path, overcommit: str, status: Status) -> None:
    proc = tree(tmp_path, {"meminfo": MEMINFO, "sys/vm/overcommit_memory": f"{overcommit}\n"})
    finding = resources.memory(proc, tmp_path, tmp_path)
    assert outcome(finding)[0] is status
    assert finding.found.startswith("8.0 GiB of 16.0 GiB available")


def test_memory_of_the_own_group_and_those_above_it_is_bounded(tmp_path: Path) -> None:
    proc = tree(tmp_path / "proc", {"meminfo": MEMINFO})
    limits = {"a.slice/memory.max": f"{2**30}\n", "a.slice/b.service/memory.max": "max\n"}
    finding = resources.memory(proc, tree(tmp_path / "groups", limits), tmp_path / "groups/a.slice/b.service")
    expected = "8.0 GiB of 16.0 GiB available, 1.0 GiB at most for the grader and all it runs"
    assert outcome(finding) == (Status.OK, expected)


SWAPS = "Filename\tType\tSize\tUsed\tPriority\n"


@pytest.mark.parametrize(
    ("devices", "groups", "expected"),
    [
        ("", {"memory/memory.stat": ""}, (Status.OK, "none")),
        (
            "/dev/vdb partition 1 0 -2\n",
            {"cgroup.controllers": ""},
            (Status.OK, "1 in use; programs get none of it"),
        ),
        (
            "/dev/vdb partition 1 0 -2\n",
            {"memory/memory.memsw.limit_in_bytes": "0"},
            (Status.OK, "1 in use; programs get none of it"),
        ),
        (
            "/dev/vdb partition 1 0 -2\n",
            {"memory/memory.stat": ""},
            (Status.WARNING, "1 in use, and cgroup v1 does not count it: memory limits can be evaded"),
        ),
        (
            "/dev/vdb partition 1 0 -2\n",
            {"memory.max": "max\n", "memory.swap.max": "max\n"},
            (Status.OK, "1 in use; programs get none of it"),
        ),
        (
            "/dev/vdb partition 1 0 -2\n",
            {"memory.max": "max\n"},
            (Status.WARNING, "1 in use, and this kernel does not count it: memory limits can be evaded"),
        ),
    ],
)
def test_swap(tmp_path: Path, devices: str, groups: dict[str, str], expected: tuple[Status, str]) -> None:
    proc = tree(tmp_path / "proc", {"swaps": SWAPS + devices})
    found = tree(tmp_path / "groups", groups)
    assert outcome(resources.swap(proc, found, found)) == expected
