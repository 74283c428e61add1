"""Programs that would pass a script problem without the answer. None may; each row says what it comes to instead.

A forgery knows all but what is expected: the names that the script uses, the grader's own modules, the way answers
travel.
"""

from __future__ import annotations

from dataclasses import dataclass

CHECK = "def check(candidate):\n    assert candidate(3) == 40\n    assert candidate(4) == 50\n"
NEAR = "def check(candidate):\n    assert abs(candidate(3) - 40.5) < 1e-6\n"
SUITE = (
    "import pytest\nfrom solution import f\n"
    "def test_three():\n    assert f(3) == 40\n"
    "def test_four():\n    assert f(4) == pytest.approx(50)\n"
)

#: Holds whatever it is asked for, and is greater than anything.
HOLDER = """
class Holder:
    def __init__(self, *_): pass
    def __contains__(self, other): return True
    def __gt__(self, other): return True
    __lt__ = __ge__ = __le__ = __gt__
    def all(self): return self
MADE = Holder()
"""

#: Sends what it likes, in frames of its own.
RAW = """
import os, time
def say(data):
    view = memoryview(len(data).to_bytes(4, 'big') + data)
    while view: view = view[os.write(5, view):]
def say_and_wait(text):
    say(text.encode())
    time.sleep(100)
"""


@dataclass(frozen=True, slots=True)
class Forgery:
    source: str
    script: str = CHECK
    verdict: str = "wrong_answer"
    message: str | None = ""
    """None where it holds times."""
    runner: str = "exec"
    entry_point: str = "f"


def over(source: str, verdict: str = "runtime_error", message: str | None = "ended before the test did") -> Forgery:
    return Forgery(source, verdict=verdict, message=message)
