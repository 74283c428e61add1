"""Whether what the chart gives a worker's container suffices, tried by running programs with just those rights.

A cluster is not needed for that: what a container is made of (a user namespace, a /proc with parts covered, a bounding
set of capabilities, no new privileges) can be had with util-linux.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.test_helm import CHART, ROOT, pods

pytestmark = pytest.mark.jail

EXAMPLE = ROOT / "examples" / "two-sum-count"
RKGRADE = Path(sys.executable).with_name("rkgrade")
#: The users of a pod with a user namespace, as kubelets give them out.
FIRST_USER, USERS = 300_000, 65_536

#: What container runtimes do to /proc, as far as the kernel is concerned: some of it is covered.
COVER = (
    "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && mount --bind /dev/null /proc/kallsyms"
)


def worker(values: str) -> dict[str, Any]:
    """The worker's container as that values file has it."""
    [pod] = [pod for name, pod in pods(CHART / "ci" / f"{values}.yaml") if name.endswith("-worker")]
    [container] = pod["containers"]
    return container | {"hostUsers": pod["hostUsers"]}


def with_rights_of(container: dict[str, Any]) -> list[str]:
    capabilities = [f"+{name.lower()}" for name in container["securityContext"]["capabilities"]["add"]]
    escalates = container["securityContext"]["allowPrivilegeEscalation"]
    bounds = ",".join(["-all", *capabilities])
    return ["setpriv", "--bounding-set", bounds, "--inh-caps=-all", *([] if escalates else ["--no-new-privs"])]


def grade(*before: str, data_dir: Path, after: tuple[str, ...] = (), uid_base: str = "") -> str:
    """The verdict on a right program, `before` being what starts rkgrade."""
    program = EXAMPLE / "submissions" / "accepted" / "counting.py"
    done = subprocess.run(
        [*before, RKGRADE, "grade", "--json", *after, EXAMPLE, program],
        capture_output=True,
        text=True,
        timeout=200,
        env=os.environ
        | {"RKGRADE_DATA_DIR": str(data_dir), "RKGRADE_WORKERS": "1"}
        | ({"RKGRADE_UID_BASE": uid_base} if uid_base else {}),
    )
    assert done.stdout, done.stderr
    verdict: str = json.loads(done.stdout)["verdict"]
    return verdict


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    """Of the node's root."""
    with tempfile.TemporaryDirectory(prefix="rkgrade-tests-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def pods_data_dir(tmp_path: Path) -> Iterator[Path]:
    """Of the pod's root, who is nobody on the node."""
    with tempfile.TemporaryDirectory(prefix="rkgrade-tests-") as name:
        os.chown(name, FIRST_USER, FIRST_USER)
        Path(name).chmod(0o755)
        yield Path(name)


@contextlib.contextmanager
def user_namespace() -> Iterator[int]:
    """A process in a user namespace such as a pod's."""
    holder = subprocess.Popen(["unshare", "--user", "sh", "-c", "echo made; read wait"], stdin=-1, stdout=-1)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"made\n"
        for kind in ("uid", "gid"):
            Path(f"/proc/{holder.pid}/{kind}_map").write_text(f"0 {FIRST_USER} {USERS}")
        yield holder.pid
    finally:
        holder.communicate(b"\n", timeout=10)


@pytest.mark.parametrize(("uid_base", "verdict"), [("chart", "accepted"), ("", "internal_error")])
def test_in_a_pods_user_namespace_its_rights_suffice_with_users_that_are_in_it(
    pods_data_dir: Path, uid_base: str, verdict: str
) -> None:
    container = worker("least")
    assert container["hostUsers"] is False
    [chosen] = [one["value"] for one in container["env"] if one["name"] == "RKGRADE_UID_BASE"]
    with user_namespace() as holder:
        came_to = grade(
            *("nsenter", "--user", "--target", str(holder), "--setuid", "0", "--setgid", "0"),
            *("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--propagation", "private"),
            *with_rights_of(container),
            # Groups of cgroup v1 can be entered from the first user namespace alone.
            after=("--insecure-no-cgroup",),
            data_dir=pods_data_dir,
            uid_base=chosen if uid_base else "",
        )
    assert came_to == verdict


@pytest.mark.parametrize("capability", ["SETUID", "SETGID"])
def test_without_the_right_to_map_users_nothing_is_graded(data_dir: Path, capability: str) -> None:
    container = copy.deepcopy(worker("least"))
    container["securityContext"]["capabilities"]["add"] = [
        name for name in container["securityContext"]["capabilities"]["add"] if name != capability
    ]
    assert grade(*with_rights_of(container), data_dir=data_dir) == "internal_error"


@pytest.mark.parametrize(("mounts", "verdict"), [(True, "accepted"), (False, "internal_error")])
def test_with_the_nodes_users_a_whole_proc_is_mounted_first_or_no_cell_gets_one(
    data_dir: Path, mounts: bool, verdict: str
) -> None:
    """With control groups, as the node's root may make them."""
    container = worker("host-users")
    assert container["hostUsers"] is True
    [script] = container["args"]
    first, _, last = script.partition("; exec ")
    assert first.startswith("mount -t proc ")
    assert last.endswith(" rkgrade worker")
    start = last.removesuffix(" rkgrade worker")
    begin = f"{first}; exec {start}" if mounts else f"exec {start}"
    came_to = grade(
        *("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--propagation", "private"),
        *("sh", "-ec", f'{COVER}; exec "$@"', "container"),
        *with_rights_of(container),
        *("sh", "-ec", f'{begin} "$@"', "worker"),
        data_dir=data_dir,
    )
    assert came_to == verdict
