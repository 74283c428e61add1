"""Run in the machine alone: a real server there answers as the one outside does."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from sandbox import doctor
from sandbox.findings import Status
from tests.serving import assert_nothing_left, serving
from tests.vm.grades import REQUESTS, grades

pytestmark = pytest.mark.jail

#: Written by the host before the machine starts.
EXPECTED = Path("/ctl/expected.json")


@pytest.mark.timeout(600)
def test_a_server_answers_as_outside_and_leaves_nothing(grader_data_dir: Path, tmp_path: Path) -> None:
    with serving(grader_data_dir, tmp_path / "log", "--languages", "python,cpp", "--workers", "1") as server:
        said = grades(server.url)
        info = httpx.post(f"{server.url}/grade", json=REQUESTS["python, right"], timeout=60).json()["grader"]
        family = server.family()
        assert server.end() == 0
    assert_nothing_left(family)
    assert said == json.loads(EXPECTED.read_text())
    assert info["sandbox"] == "nsjail, cgroup v2"


def test_the_doctor_has_nothing_to_say_against_the_group_of_the_service() -> None:
    found = doctor.control_groups()
    expected = "v2, controllers memory, pids, writable in /sys/fs/cgroup/system.slice/rkgrade.service"
    assert (found.status, found.found) == (Status.OK, expected)
