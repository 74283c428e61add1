"""Control groups: which hierarchies a host offers, what the kernel counts for a cell, and what dead graders leave."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import cgroups
from sandbox.cgroups import CellGroup, Cgroups, Hierarchies, detect, open_cgroups
from sandbox.errors import HostError
from tests.sandbox.cells import MB, groups_left, processes_in, wait_until
from tests.sandbox.grouped import run, start
from tests.slowness import SLOWNESS

# ---------------------------------------------------------------------------------------------------------------
# Which hierarchies there are

V1_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
"""
V1_OWN = "9:name=systemd:/\n8:pids:/\n4:memory:/graders/one\n2:cpuacct:/\n1:cpu:/\n"

COMOUNTED_MOUNTS = """\
30 25 0:26 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory
31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
32 25 0:28 / /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids
"""
COMOUNTED_OWN = "5:pids:/user.slice\n4:memory:/user.slice\n3:cpu,cpuacct:/user.slice\n1:name=systemd:/user.slice/1\n"

HYBRID_MOUNTS = V1_MOUNTS + "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
HYBRID_OWN = V1_OWN + "0::/\n"

V2_MOUNTS = """\
22 27 0:21 / /proc rw,nosuid shared:12 - proc proc rw
35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
"""

SHIFTED_MOUNTS = """\
700 699 0:32 /docker/abc /sys/fs/cgroup/memory ro,nosuid master:15 - cgroup cgroup rw,memory
701 699 0:30 /docker/abc /sys/fs/cgroup/cpuacct ro,nosuid master:16 - cgroup cgroup rw,cpuacct
702 699 0:36 /docker/abc /sys/fs/cgroup/pids ro,nosuid master:17 - cgroup cgroup rw,pids
"""
SHIFTED_OWN = "4:memory:/docker/abc\n3:cpuacct:/docker/abc/inner\n2:pids:/\n"


def v1(memory: str, cpuacct: str, pids: str) -> Hierarchies:
    return Hierarchies("v1", {"memory": Path(memory), "cpuacct": Path(cpuacct), "pids": Path(pids)})


def v2(directory: str) -> Hierarchies:
    return Hierarchies("v2", dict.fromkeys(("memory", "cpuacct", "pids"), Path(directory)))


V1_FOUND = v1("/sys/fs/cgroup/memory/graders/one", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/pids")
OF_USERS = v1(
    "/sys/fs/cgroup/memory/user.slice", "/sys/fs/cgroup/cpu,cpuacct/user.slice", "/sys/fs/cgroup/pids/user.slice"
)


@pytest.mark.parametrize(
    ("mounts", "own", "found"),
    [
        pytest.param(V1_MOUNTS, V1_OWN, V1_FOUND, id="v1"),
        pytest.param(COMOUNTED_MOUNTS, COMOUNTED_OWN, OF_USERS, id="v1-comounted"),
        pytest.param(HYBRID_MOUNTS, HYBRID_OWN, V1_FOUND, id="hybrid"),
        pytest.param(V2_MOUNTS, "0::/\n", v2("/sys/fs/cgroup"), id="v2-root"),
        pytest.param(V2_MOUNTS, "0::/a.slice/b.service\n", v2("/sys/fs/cgroup/a.slice/b.service"), id="v2"),
        # A grader that has moved itself into its leaf makes groups beside that leaf.
        pytest.param(V2_MOUNTS, "0::/b.service/rkgrade-main\n", v2("/sys/fs/cgroup/b.service"), id="v2-in-leaf"),
        # In a container the mount may show a part of the hierarchy only; a path outside it means its top.
        pytest.param(
            SHIFTED_MOUNTS,
            SHIFTED_OWN,
            v1("/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpuacct/inner", "/sys/fs/cgroup/pids"),
            id="container",
        ),
    ],
)
def test_hierarchies_are_found(mounts: str, own: str, found: Hierarchies) -> None:
    assert detect(mounts, own) == found


@pytest.mark.parametrize(
    ("mounts", "own"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("22 27 0:21 / /proc rw shared:12 - proc proc rw\n", "0::/\n", id="not-mounted"),
        pytest.param(V2_MOUNTS, "4:memory:/\n", id="mounted-but-not-ours"),
        pytest.param("\n".join(V1_MOUNTS.splitlines()[:4]), V1_OWN, id="v1-without-pids"),
    ],
)
def test_no_hierarchy_is_an_error_that_names_what_is_missing(mounts: str, own: str) -> None:
    with pytest.raises(HostError, match=r"memory, cpuacct .* and pids"):
        detect(mounts, own)


# ---------------------------------------------------------------------------------------------------------------
# What the kernel counts

FORK_AND_SPIN = """
import os, time
if os.fork() == 0:
    while time.process_time() < 0.3:
        pass
    os._exit(0)
os.wait()
"""
FORK_UNTIL_REFUSED = """
import os, signal
children = []
try:
    while len(children) < 20:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except BlockingIOError:
    print("refused after", len(children))
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.wait()
"""


@pytest.fixture
def group(groups: Cgroups) -> Iterator[CellGroup]:
    group = groups.cell("counted")
    yield group
    group.kill()
    group.close()
    assert groups_left() == []


@pytest.mark.jail
def test_a_run_sleeps_where_it_has_threads_and_all_of_them_do(group: CellGroup) -> None:
    imports, up = "import signal, threading\n", "print('up', flush=True)\n"
    sleeper = "threading.Thread(target=signal.sigwait, args=[{signal.SIGHUP}]).start()\n"
    for code, sleeps in {
        f"{imports}{up}signal.pause()": True,
        f"{imports}{sleeper}{up}signal.pause()": True,
        f"{imports}{sleeper}{up}while True: pass": False,
    }.items():
        entries = group.begin(256 * MB, 64)
        assert not group.sleeps()
        with start(entries, code) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            if sleeps:
                wait_until(group.sleeps, "asleep")
            else:
                assert not any(group.sleeps() for _ in range(20))
            process.kill()
        group.end()


@pytest.mark.jail
def test_cpu_time_counts_dead_children_and_starts_from_nothing_each_time(group: CellGroup) -> None:
    assert run(group.begin(256 * MB, 64), FORK_AND_SPIN) == (0, "")
    so_far = group.cpu_s()
    first = group.end()
    assert run(group.begin(256 * MB, 64), "") == (0, "")
    second = group.end()

    assert so_far is not None
    assert first is not None
    assert second is not None
    assert 0.3 <= so_far <= first.cpu_s < 0.3 + 0.3 * SLOWNESS
    assert second.cpu_s < 0.1 * SLOWNESS


@pytest.mark.jail
def test_peak_memory_is_that_of_one_run(group: CellGroup) -> None:
    peaks = []
    for allocate in ("x = b'x' * (50 * 2**20)", "x = b'x' * (50 * 2**20); del x", ""):
        assert run(group.begin(256 * MB, 64), allocate) == (0, "")
        usage = group.end()
        assert usage is not None
        assert usage.oom_kills == 0
        peaks.append(usage.peak_bytes)
    assert 50 * MB <= peaks[0] < 70 * MB
    assert 50 * MB <= peaks[1] < 70 * MB
    assert peaks[2] < 20 * MB


@pytest.mark.jail
def test_too_much_memory_is_a_counted_kill_of_that_run_alone(group: CellGroup) -> None:
    assert run(group.begin(32 * MB, 64), "x = b'x' * (100 * 2**20)") == (-signal.SIGKILL, "")
    killed = group.end()
    assert run(group.begin(32 * MB, 64), "x = b'x' * 2**20") == (0, "")
    after = group.end()
    assert run(group.begin(200 * MB, 64), "x = b'x' * (100 * 2**20)") == (0, "")
    roomier = group.end()

    assert killed is not None
    assert after is not None
    assert roomier is not None
    assert (killed.oom_kills, after.oom_kills, roomier.oom_kills) == (1, 0, 0)
    assert killed.peak_bytes <= 32 * MB
    assert roomier.peak_bytes >= 100 * MB


@pytest.mark.jail
@pytest.mark.parametrize("processes", [1, 4])
def test_processes_beyond_the_limit_are_refused(group: CellGroup, processes: int) -> None:
    assert run(group.begin(256 * MB, processes), FORK_UNTIL_REFUSED) == (0, f"refused after {processes - 1}")


@pytest.mark.jail
def test_kill_ends_the_program_and_the_warden(group: CellGroup) -> None:
    entries = group.warden_entries()
    wait = "print(1, flush=True)\nimport signal\nsignal.pause()"
    with start(entries, wait) as warden, start(group.begin(256 * MB, 64), wait) as program:
        for fd in entries:
            os.close(fd)
        for process in (warden, program):
            assert process.stdout is not None
            assert process.stdout.readline() == "1\n"
        assert {warden.pid, program.pid} <= set(processes_in("counted-*"))
        group.kill()
        statuses = [warden.wait(20), program.wait(20)]
    assert statuses == [-signal.SIGKILL, -signal.SIGKILL]


# ---------------------------------------------------------------------------------------------------------------
# Owners


@pytest.mark.jail
def test_closing_the_owner_ends_what_still_runs_and_leaves_nothing(groups: Cgroups) -> None:
    code = (
        "import sys\nfrom tests.sandbox.cells import groups_left\nfrom tests.sandbox.grouped import start\n"
        "from sandbox.cgroups import open_cgroups\n"
        "owner = open_cgroups(insecure_no_cgroup=False)\n"
        "process = start(owner.cell('one').begin(2**28, 9), 'import signal; signal.pause()')\n"
        "while not any((path / 'cgroup.procs').read_text() for path in groups_left()): pass\n"
        "import threading; threading.Thread(target=process.wait, daemon=True).start()\n"
        "owner.close()\n"
        "print(process.wait(), groups_left())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("-9 []\n", "")


OWNER = """
import signal, sys
from sandbox.cgroups import open_cgroups
from tests.sandbox.grouped import start
group = open_cgroups(insecure_no_cgroup=False).cell("orphan")
# In a session of its own, as whatever a program leaves behind may be.
left = start(group.begin(2**28, 9), "import os, signal; os.setsid(); print(1, flush=True); signal.pause()")
left.stdout.readline()
print(left.pid, flush=True)
signal.pause()
"""


@contextlib.contextmanager
def owner() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another grader of this host, with the process id of a program that runs in one of its groups."""
    process = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def directories_of(process: subprocess.Popen[str]) -> list[Path]:
    return [path for path in cgroups.owned_directories(cgroups.here()) if f"-{process.pid}-" in path.name]


def is_gone(pid: int) -> bool:
    """Dead; where nobody reaps orphans, a zombie at most."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.jail
@pytest.mark.parametrize("reaped", [True, False], ids=["reaped", "zombie"])
def test_sweep_ends_what_a_dead_owner_left_and_nothing_of_a_living_one(reaped: bool) -> None:
    with owner() as (dead, orphan), owner() as (living, program):
        dead.kill()
        # Where process 1 reaps nobody, as in many containers, a dead grader's workers stay zombies for good.
        wait_until(lambda: is_gone(dead.pid), "the owner's death")
        if reaped:
            dead.wait()
        assert directories_of(dead) != []
        of_living = directories_of(living)

        swept = cgroups.sweep(cgroups.here())

        assert swept >= len(set(cgroups.here().directories.values()))
        assert directories_of(dead) == []
        wait_until(lambda: is_gone(orphan), "the orphan's death")
        assert directories_of(living) == of_living
        assert not is_gone(program)
        # Nothing is left to do for a second sweep.
        living.kill()
        living.wait()
        cgroups.sweep(cgroups.here())
        assert directories_of(living) == []
        wait_until(lambda: is_gone(program), "the other orphan's death")


@pytest.mark.jail
def test_prepare_leaves_no_probe_behind() -> None:
    cgroups.prepare(cgroups.here())
    assert [path for path in cgroups.owned_directories(cgroups.here()) if path.name.endswith("-probe")] == []


def test_prepare_says_what_to_do_where_groups_cannot_be_made(tmp_path: Path) -> None:
    nowhere = Hierarchies("v1", dict.fromkeys(("memory", "cpuacct", "pids"), tmp_path / "missing"))
    with pytest.raises(HostError, match="--insecure-no-cgroup"):
        cgroups.prepare(nowhere)


def test_without_groups_nobody_counts() -> None:
    groups = open_cgroups(insecure_no_cgroup=True)
    group = groups.cell("uncounted")
    assert (group.warden_entries(), group.begin(MB, 1), group.cpu_s(), group.end()) == ([], [], None, None)
