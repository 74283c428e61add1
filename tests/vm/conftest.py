"""The machine with cgroup v2, where it can be had and is needed."""

from __future__ import annotations

import compileall
import os
import platform

import pytest

from sandbox import cgroups
from tests.obtaining import Unobtainable
from tests.vm import machine
from tests.vm.guest import ROOT


@pytest.fixture(scope="session")
def image() -> machine.Image:
    if cgroups.here().version == "v2":
        pytest.skip("control groups of this host are v2: all tests run with them already")
    try:
        found = machine.image()
    except Unobtainable as error:
        if os.environ.get("CI") == "true" and platform.machine() == "x86_64":
            pytest.fail(str(error))
        pytest.skip(f"no machine with cgroup v2: {error}")
    # Nothing that is compiled in there stays.
    for package in ("sandbox", "service", "rl_client", "tests"):
        compileall.compile_dir(ROOT / package, quiet=2)
    return found
