"""A worker's pod, as the Helm chart asks for it: with a user namespace, its own control groups and few capabilities it
judges programs, on cgroup v2 as Kubernetes has it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.deploy.test_worker_rights import FIRST_USER, with_rights_of, worker
from tests.vm import machine
from tests.vm.guest import ROOT, WITHIN_S

AS_POD = ROOT / "tests/vm/as_pod"
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}

pytestmark = [pytest.mark.jail, pytest.mark.vm, pytest.mark.timeout(WITHIN_S + 120)]


def test_what_the_chart_gives_a_worker_suffices(image: machine.Image, tmp_path: Path) -> None:
    container = worker("least")
    [uid_base] = [one["value"] for one in container["env"] if one["name"] == "RKGRADE_UID_BASE"]
    inside = [*with_rights_of(container), sys.executable, "-m", "tests.vm.inside_pod", "/run/data", uid_base]
    ended = machine.run(
        image,
        ["/bin/sh", str(AS_POD), str(FIRST_USER), str(ROOT), *inside],
        tmp_path,
        environment=ENVIRONMENT,
        limit_s=WITHIN_S,
    )
    assert_judges_programs(ended)


def assert_judges_programs(ended: machine.Ended) -> None:
    assert ended.status == 0, ended.output
    said = json.loads(ended.output.splitlines()[-1])
    assert said["host"] == "nsjail, cgroup v2"
    assert (said["rights"], said["user namespaces"], said["cgroups"]) == ("ok", "ok", "ok")
    assert said["right"] == "accepted"
    assert said["too much memory"].startswith("memory_limit")
    assert said["too slow with a child"].startswith("time_limit")
