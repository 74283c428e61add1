"""The service as the unit in deploy/systemd makes it: under systemd, in a machine of its own, it grades as here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serving import Server
from tests.vm import machine
from tests.vm.grades import grades
from tests.vm.guest import PYTEST, ROOT, WITHIN_S, environment

UNIT = ROOT / "deploy/systemd/rkgrade.service"

pytestmark = [pytest.mark.jail, pytest.mark.vm, pytest.mark.timeout(WITHIN_S + 120)]


def test_as_a_service_of_systemd_it_grades_as_here(image: machine.Image, grader: Server, tmp_path: Path) -> None:
    if not machine.SYSTEMD.exists():
        pytest.skip(f"no {machine.SYSTEMD} on this host, which could run in the machine")
    (tmp_path / "expected.json").write_text(json.dumps(grades(grader.url)))
    ended = machine.run(
        image,
        ["/bin/sh", "-c", 'mkdir -m 1777 /run/tests && cd "$0" && exec "$@"', str(ROOT), *PYTEST, "tests/vm/inside.py"],
        tmp_path,
        environment=environment(grader.data_dir),
        limit_s=WITHIN_S,
        unit=UNIT.read_text(),
    )
    assert ended.status == 0, ended.output
