"""What one pass of a Kattis problem knows does not reach the next through what a cell remembers.

The problem gives its number to the first pass and asks the second for it. Between them the program may say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.checkers.base import CheckerProgram, CheckerProtocol, JuryProgram, Scoring
from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from sandbox.problem import Problem, Submission, Test
from sandbox.stdin import Stdin
from sandbox.verdicts import Verdict
from tests.hostile.case import PYTHONS, ROOMY

pytestmark = pytest.mark.jail

SLOT = 7

VALIDATOR = b"""
import os, sys
state = sys.argv[3] + "state"
printed = sys.stdin.read().strip()
if os.path.exists(state):
    sys.exit(42 if printed == open(sys.argv[2]).read().strip() else 43)
open(state, "w").close()
open(sys.argv[3] + "nextpass.in", "w").write("recall\\n")
sys.exit(43 if printed else 42)
"""

# Files are numbered in the order they were made in, those removed since included.
INODES = """
import os, sys
def made():
    fd = os.open("{directory}/x", os.O_CREAT | os.O_RDWR)
    number = os.fstat(fd).st_ino
    os.close(fd)
    os.unlink("{directory}/x")
    return number
word, *number = sys.stdin.read().split()
if word == "keep":
    while made() % 1000 != int(number[0]):
        pass
else:
    print((made() - 1) % 1000)
"""

# Process 1 counts the page faults of its children that have ended.
FAULTS = """
import sys
word, *number = sys.stdin.read().split()
if word == "keep":
    if int(number[0]) > 500:
        bytes(bytearray(100 << 20))
else:
    print(700 if int(open("/proc/1/stat").read().rpartition(")")[2].split()[8]) > 20000 else 300)
"""

CHANNELS = {
    "inodes of /tmp": INODES.format(directory="/tmp"),
    "inodes of /box": INODES.format(directory="/box"),
    "page faults": FAULTS,
}


@pytest.fixture(scope="module")
def judge(config: SandboxConfig) -> Iterator[Judge]:
    judge = Judge(config, slot=SLOT, core=None)
    yield judge
    judge.close()


@pytest.mark.parametrize("language", PYTHONS)
@pytest.mark.parametrize("channel", CHANNELS)
def test_a_pass_cannot_tell_the_next_through_its_cell(judge: Judge, channel: str, language: str) -> None:
    files = (("validate.py", VALIDATOR),)
    validator = CheckerProgram(CheckerProtocol.KATTIS, JuryProgram("python", files), (), Scoring())
    tests = tuple(Test(index, None, index, Stdin(b"keep 700\n"), b"700\n") for index in range(3))
    submission = Submission(Problem(tests, validator, passes=2), language, CHANNELS[channel].encode(), ROOMY)
    results = judge.judge(submission).tests
    assert [result.verdict for result in results] == [Verdict.WRONG_ANSWER] * 3
