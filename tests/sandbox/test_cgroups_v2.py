"""What only version 2 of control groups has: one tree, its rules on where processes may be, and whose it is.

Groups for these tests are made and entered as systemd, a container runtime or an administrator would. Where this
host's groups are version 1, they are not collected, and `tests/vm` runs them in a machine of its own.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox import cgroups, doctor
from sandbox.cell import Cell
from sandbox.cgroups import CellGroup, Cgroups, open_cgroups
from sandbox.cgroups.hierarchies import MAIN_LEAF
from sandbox.config import SandboxConfig
from sandbox.errors import HostError
from sandbox.findings import Status
from sandbox.run import Action, RunRequest
from sandbox.stdin import Stdin
from tests.sandbox.cells import MB, ROOMY, open_cell, processes_in, wait_until
from tests.sandbox.grouped import run, start

pytestmark = pytest.mark.jail

NOBODY = 65534
NUMBERS = itertools.count(1)
ALLOCATE = "x = b'x' * ({} * 2**20)"
HOLD = "x = b'x' * (50 * 2**20)\nprint(1, flush=True)\nimport signal\nsignal.pause()"


@pytest.fixture
def service() -> Iterator[Path]:
    """A group such as systemd makes for a service: controllers are there, but nothing is handed down from it."""
    here = cgroups.here()
    cgroups.prepare(here)
    group = here.directories["memory"] / f"test-{os.getpid()}-{next(NUMBERS)}"
    group.mkdir()
    yield group
    cgroups.owners.kill_tree(group)
    cgroups.owners.remove_tree(group)


def inside(group: Path, act: Callable[[], object], *, uid: int = 0) -> object:
    """What `act` returns, or says as HostError, in a fork of this process in that group and with that uid."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            (group / "cgroup.procs").write_text("0")
            if uid:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            try:
                said = act()
            except HostError as error:
                said = str(error)
            os.write(writer, json.dumps(said).encode())
        except BaseException as error:  # noqa: BLE001 - the parent fails by it
            os.write(writer, json.dumps(repr(error)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = json.load(answer)
    os.waitpid(pid, 0)
    return said


def ready() -> None:
    cgroups.prepare(cgroups.here())


def members(group: Path) -> list[int]:
    return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]


def handed_down(group: Path) -> set[str]:
    return set((group / "cgroup.subtree_control").read_text().split())


def used() -> dict[str, object]:
    """A cell's life in the groups of this process: what the kernel counts and limits there, and what is left."""
    ready()
    groups = open_cgroups(insecure_no_cgroup=False)
    group = groups.cell("counted")
    statuses = [run(group.begin(200 * MB, 64), ALLOCATE.format(50))]
    roomy = group.end()
    statuses.append(run(group.begin(32 * MB, 64), ALLOCATE.format(100)))
    tight = group.end()
    statuses.append(run(group.begin(200 * MB, 1), "import os\ntry: os.fork()\nexcept BlockingIOError: print('no')"))
    group.end()
    with start(group.begin(200 * MB, 64), HOLD) as process:
        assert process.stdout is not None
        process.stdout.readline()
        group.kill()
        statuses.append((process.wait(60), ""))
    group.close()
    groups.close()
    assert roomy is not None
    assert tight is not None
    return {
        "statuses": statuses,
        "counted": roomy.cpu_s > 0 and 50 * MB <= roomy.peak_bytes < 70 * MB,
        "oom_kills": [roomy.oom_kills, tight.oom_kills],
        "at the limit": tight.peak_bytes == 32 * MB,
        "left": [path.name for path in cgroups.owned_directories(cgroups.here())],
    }


ALL_WELL = {
    "statuses": [[0, ""], [-signal.SIGKILL, ""], [0, "no"], [-signal.SIGKILL, ""]],
    "counted": True,
    "oom_kills": [0, 1],
    "at the limit": True,
    "left": [],
}


# ---------------------------------------------------------------------------------------------------------------
# Who may be where


def test_all_processes_of_the_graders_group_make_room_for_its_cells(service: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as beside:
        (service / "cgroup.procs").write_text(str(beside.pid))
        assert handed_down(service) == set()

        where = inside(service, lambda: (ready(), ready(), Path("/proc/self/cgroup").read_text())[-1])

        assert str(where).endswith(f"/{service.name}/{MAIN_LEAF}\n")
        assert (members(service), members(service / MAIN_LEAF)) == ([], [beside.pid])
        assert handed_down(service) == {"memory", "pids"}
        beside.kill()


def test_a_group_whose_members_keep_forking_is_emptied_all_the_same(service: Path) -> None:
    enter = f"open({str(service / 'cgroup.procs')!r}, 'w').write('0')"
    fork_on = "import os\nwhile True:\n    if os.fork(): os._exit(0)"
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", f"{enter}\n{fork_on}"]):
        wait_until(lambda: members(service), "the forking process")
        assert inside(service, ready) is None
        assert (members(service), handed_down(service)) == ([], {"memory", "pids"})


def test_a_grader_finds_its_groups_from_the_leaf_that_another_left_it_in(service: Path) -> None:
    def again() -> object:
        ready()
        found = cgroups.here().directories["memory"]
        ready()
        return [found.name, cgroups.here().directories["memory"].name]

    assert inside(service, again) == [service.name, service.name]
    assert inside(service / MAIN_LEAF, used) == ALL_WELL


def test_cells_need_no_cpu_controller(service: Path) -> None:
    assert inside(service, used) == ALL_WELL
    assert "cpu" not in handed_down(service)


def test_a_group_to_which_nothing_is_handed_down_is_refused_with_the_remedy(service: Path) -> None:
    inner = service / "inner"
    inner.mkdir()
    said = str(inside(inner, ready))
    assert f"cgroup v2 controllers not delegated to {inner}: memory, pids." in said
    assert "Delegate=yes" in said
    assert members(inner) == []
    found = doctor.try_groups(cgroups.Hierarchies("v2", dict.fromkeys(("memory", "cpuacct", "pids"), inner)))
    assert (found.status, found.found) == (Status.FAILED, f"v2, without memory, pids in {inner}")


def test_a_threaded_group_is_refused(service: Path) -> None:
    inner = service / "inner"
    inner.mkdir()
    (inner / "cgroup.type").write_text("threaded")
    found = doctor.try_groups(cgroups.Hierarchies("v2", dict.fromkeys(("memory", "cpuacct", "pids"), inner)))
    inner.rmdir()
    assert (found.status, found.found) == (Status.FAILED, f"v2, but the type of {inner} is threaded")


# ---------------------------------------------------------------------------------------------------------------
# Whose it is


def delegate(group: Path, uid: int) -> None:
    """As systemd does for a unit with User= and Delegate=yes."""
    for path in (group, *(group / f"cgroup.{name}" for name in ("procs", "threads", "subtree_control"))):
        os.chown(path, uid, uid)


def test_a_user_without_rights_has_all_of_it_in_a_group_that_is_delegated(service: Path) -> None:
    delegate(service, NOBODY)
    assert inside(service, used, uid=NOBODY) == ALL_WELL


def test_a_user_without_rights_gets_none_of_it_elsewhere(service: Path) -> None:
    said = str(inside(service, ready, uid=NOBODY))
    assert "Permission denied" in said
    assert "--insecure-no-cgroup" in said


def test_what_runs_with_other_rights_in_a_delegated_group_can_be_killed_by_its_owner(service: Path) -> None:
    """By cgroup.kill, which asks for rights on the group alone: cells have uids of their own."""
    inner = service / "inner"
    inner.mkdir()
    delegate(service, NOBODY)
    delegate(inner, NOBODY)
    os.chown(inner / "cgroup.kill", NOBODY, NOBODY)
    with subprocess.Popen(["/bin/sleep", "1000"]) as roots:
        (inner / "cgroup.procs").write_text(str(roots.pid))
        said = inside(service, lambda: cgroups.owners.kill_tree(inner), uid=NOBODY)
        by_owner = roots.poll()
        roots.kill()
    assert (said, by_owner) == (None, -signal.SIGKILL)


IN_A_CONTAINER = """
import json, sys
from pathlib import Path
from sandbox import cgroups, doctor
from sandbox.errors import HostError
from tests.sandbox.test_cgroups_v2 import used
found = doctor.control_groups()
try:
    said = used()
except HostError as error:
    said = str(error)
own = Path("/proc/self/cgroup").read_text()
print(json.dumps([own, str(cgroups.here().directories["memory"]), found.status, said]))
"""


@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_in_a_container_the_graders_group_looks_like_the_root_of_all(service: Path, mode: str) -> None:
    script = (
        f"echo $$ >{service}/cgroup.procs && exec unshare --cgroup --mount sh -c '"
        f'umount /sys/fs/cgroup && mount -t cgroup2 -o {mode} none /sys/fs/cgroup && exec "$0" -c "$1"\' "$0" "$1"'
    )
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, IN_A_CONTAINER], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    own, base, status, said = json.loads(done.stdout)
    if mode == "rw":
        assert (own, base, status, said) == ("0::/rkgrade-main\n", "/sys/fs/cgroup", Status.OK, ALL_WELL)
    else:
        assert (own, base, status) == ("0::/\n", "/sys/fs/cgroup", Status.FAILED)
        assert "Read-only file system" in said


# ---------------------------------------------------------------------------------------------------------------
# What the kernel counts


@pytest.fixture
def group(groups: Cgroups) -> Iterator[CellGroup]:
    group = groups.cell("counted")
    yield group
    group.kill()
    group.close()


def limits_of(name: str) -> dict[str, str]:
    """The limits of the group of this process's cells that is so named."""
    (path,) = cgroups.here().directories["memory"].glob(f"rkgrade-*-{os.getpid()}-*/{name}")
    files = ("memory.max", "memory.swap.max", "pids.max")
    return {file: (path / file).read_text().strip() for file in files if (path / file).exists()}


def test_limits_are_those_of_the_run_and_swap_is_off(group: CellGroup) -> None:
    for memory_bytes, processes in ((64 * MB, 8), (32 * MB, 9)):
        group.begin(memory_bytes, processes)
        expected = {"memory.max": str(memory_bytes), "memory.swap.max": "0", "pids.max": str(processes)}
        assert limits_of("counted-program") == expected
        warden = {"memory.max": str(memory_bytes + 256 * MB), "memory.swap.max": "0", "pids.max": "max"}
        assert limits_of("counted-warden") == warden


def test_a_kill_for_the_memory_of_a_group_above_is_told_from_the_programs_own(service: Path) -> None:
    """As of a container's limit: the kernel kills in the program's group, which had not come to its own limit."""
    (service / "memory.max").write_text(str(64 * MB))

    def killed() -> object:
        ready()
        groups = open_cgroups(insecure_no_cgroup=False)
        group = groups.cell("one")
        status = run(group.begin(256 * MB, 64), ALLOCATE.format(200))
        usage = group.end()
        group.close()
        groups.close()
        assert usage is not None
        return [status, usage.oom_kills, usage.peak_bytes < 128 * MB]

    assert inside(service, killed) == [[-signal.SIGKILL, ""], 1, True]


def test_before_linux_5_19_a_peak_is_what_was_seen_or_the_limit_where_it_was_reached(
    groups: Cgroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.cgroups.v2.PEAK", "memory.peak-of-later-kernels")
    group = groups.cell("sampled")
    with start(group.begin(256 * MB, 64), HOLD) as process:
        assert process.stdout is not None
        process.stdout.readline()
        group.cpu_s()
        process.kill()
    seen = group.end()
    killed = run(group.begin(32 * MB, 64), ALLOCATE.format(100))
    at_limit = group.end()
    after = run(group.begin(32 * MB, 64), "")
    little = group.end()
    group.close()

    assert seen is not None
    assert at_limit is not None
    assert little is not None
    assert 50 * MB <= seen.peak_bytes < 70 * MB
    assert (killed, at_limit.peak_bytes, at_limit.oom_kills) == ((-signal.SIGKILL, ""), 32 * MB, 1)
    assert (after, little.oom_kills) == ((0, ""), 0)
    assert little.peak_bytes < 32 * MB


def test_before_linux_5_14_processes_are_killed_one_by_one(group: CellGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.cgroups.owners.KILL", "cgroup.kill-of-later-kernels")
    spread = "import os, signal\nos.fork(); os.fork()\nif os.fork() == 0: os.setsid()\nsignal.pause()"
    with start(group.begin(256 * MB, 64), spread) as process:
        wait_until(lambda: len(processes_in("counted-program")) == 8, "eight processes")
        group.kill()
        assert process.wait(20) == -signal.SIGKILL
    assert processes_in("counted-program") == []


def test_a_program_does_not_see_in_its_group_how_many_ran_before(
    sandbox_config: SandboxConfig, groups: Cgroups
) -> None:
    cell: Cell = open_cell(sandbox_config, groups)
    stdin = Stdin(b"").open()
    seen = []
    for _ in range(2):
        record = cell.run(RunRequest(Action.EXEC, stdin, ROOMY, ("/bin/cat", "/proc/self/cgroup")))
        seen.append(record.stdout.head(1000))
        record.close()
    os.close(stdin)
    cell.close()
    assert seen[0] == seen[1]
    assert seen[0].endswith(b"-program\n")


# ---------------------------------------------------------------------------------------------------------------
# What the doctor says


def test_the_doctor_finds_a_group_in_order_and_leaves_it_so(service: Path) -> None:
    def looked() -> object:
        finding = doctor.control_groups()
        return [finding.status, finding.found, sorted(path.name for path in service.iterdir() if path.is_dir())]

    # Whether systemd runs here, and knows of the group, is not this test's to say.
    status, found, made = inside(service, looked)  # type: ignore[misc]
    assert (status in (Status.OK, Status.WARNING), found[:4], made) == (True, "v2, ", [])
    assert members(service) == []
