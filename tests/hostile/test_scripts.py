"""No forgery passes a script problem, and none chooses to have no verdict at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from sandbox.problem import Limits
from tests.hostile.case import MB
from tests.hostile.scripts import FORGERIES
from tests.sandbox.scripting import on_script

pytestmark = pytest.mark.jail

SLOT = 6
LIMITS = Limits(cpu_s=2.0, wall_s=4.0, memory_bytes=128 * MB, output_bytes=4 * MB)


@pytest.fixture(scope="module")
def judge(config: SandboxConfig) -> Iterator[Judge]:
    # A tester that a program keeps busy is to be given up soon.
    judge = Judge(replace(config, checker_cpu_s=3.0), slot=SLOT, core=None)
    yield judge
    judge.close()


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_does_not_pass(judge: Judge, name: str) -> None:
    forgery = FORGERIES[name]
    result = on_script(judge, forgery.source, forgery.script, forgery.runner, forgery.entry_point, limits=LIMITS)
    assert result.verdict.value == forgery.verdict, (result.message, result.checker_message)
    assert forgery.message in (None, result.message)
