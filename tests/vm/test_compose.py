"""A worker of docker-compose.yml on cgroup v2: with the group that `prepare` makes there, seen as Docker would show it,
and its few capabilities, it judges programs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from sandbox.config import UID_BASE
from tests.deploy.test_compose import SERVICES, WORKERS
from tests.vm import machine
from tests.vm.guest import ROOT, WITHIN_S
from tests.vm.test_pod import ENVIRONMENT, assert_judges_programs

AS_COMPOSE = ROOT / "tests/vm/as_compose"

pytestmark = [pytest.mark.jail, pytest.mark.vm, pytest.mark.timeout(WITHIN_S + 120)]


def test_the_group_and_the_rights_of_a_worker_suffice(image: machine.Image, tmp_path: Path) -> None:
    capabilities = [f"+{name.lower()}" for name in SERVICES[WORKERS[0]]["cap_add"]]
    rights = ["setpriv", "--bounding-set", ",".join(["-all", *capabilities]), "--inh-caps=-all", "--no-new-privs"]
    inside = [*rights, sys.executable, "-m", "tests.vm.inside_pod", "/run/data", str(UID_BASE)]
    ended = machine.run(
        image,
        ["/bin/sh", str(AS_COMPOSE), str(ROOT), *inside],
        tmp_path,
        environment=ENVIRONMENT,
        limit_s=WITHIN_S,
    )
    assert_judges_programs(ended)
    made = yaml.safe_load((tmp_path / "cgroups.yml").read_text())
    assert made["services"] == {
        name: {"cgroup": "host", "volumes": [f"/sys/fs/cgroup/rkgrade/{name}:/sys/fs/cgroup"]} for name in WORKERS
    }
