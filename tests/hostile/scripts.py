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

BENT = """
class Bent:
    def __init__(self, *_): pass
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return hash(40)
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
    def __sub__(self, other): return BACK
    __rsub__ = __add__ = __radd__ = __mod__ = __sub__
    def __abs__(self): return 0
    def __bool__(self): return True
    def __getattr__(self, name): return lambda *_: True
"""

FIND_CHANNEL = "import os\ndef say(data):\n    os.write(5, len(data).to_bytes(4, 'big') + data)\n"


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


FORGERIES: dict[str, Forgery] = {
    # -- the end of the process
    "an exit with success while loading": over("import os\nos._exit(0)"),
    "a polite exit while loading": over("import sys\ndef f(x): return 1\nsys.exit(0)", message="raised SystemExit"),
    "an exit with success": over("import os\ndef f(x): os._exit(0)"),
    "a polite exit": over("import sys\ndef f(x): sys.exit(0)", message="raised SystemExit"),
    "quit": over("def f(x): raise SystemExit", message="raised SystemExit"),
    "an exit from a thread": over(
        "import os, threading\ndef f(x): threading.Thread(target=os._exit, args=(0,)).start()"
    ),
    "an exit as another program": over("import os\ndef f(x): os.execv('/bin/true', ['true'])"),
    "its own process killed": over("import os\ndef f(x): os.kill(0, 9)", message="died of SIGKILL"),
    "the parent killed": Forgery(
        "import os\ndef f(x):\n    try: os.kill(os.getppid(), 9)\n    except OSError: return 1"
    ),
    "the channel closed": over("import os\ndef f(x):\n    os.close(5)\n    os._exit(0)"),
    "asleep": over("import time\ndef f(x): time.sleep(100)", "idle", None),
    "busy": over("def f(x):\n    while True: pass", "time_limit", None),
    # -- what the script uses
    "assert made to pass": Forgery(
        "import builtins, sys\nclass E(Exception): pass\nbuiltins.AssertionError = AssertionError = E\n"
        "sys.excepthook = lambda *_: None\ndef f(x): return 1"
    ),
    "builtins replaced": Forgery(
        "import builtins\n"
        "def f(x):\n    builtins.abs = lambda _: 0\n"
        "    builtins.all = builtins.isinstance = lambda *_: True\n    return 1\n"
        "abs = lambda _: 0\nall = isinstance = lambda *_: True",
        NEAR,
        "runtime_error",
        "ended before the test did",
    ),
    "pytest replaced": Forgery(
        "import sys, types\nfake = sys.modules['pytest'] = types.ModuleType('pytest')\n"
        "fake.approx = lambda *_: 1\nfake.main = lambda *_: 0\n"
        "class pytest: pass\ndef f(x): return {3: 40}.get(x, 1)",
        SUITE,
        runner="pytest",
    ),
    "check replaced": Forgery("def check(candidate): pass\ndef f(x): return 1"),
    "a check that replaces the test's while it runs": Forgery(
        "import gc, sys\ndef f(x):\n    frame = sys._getframe()\n    while frame:\n"
        "        frame.f_globals['check'] = frame.f_globals['candidate'] = lambda *_: 40\n"
        "        frame = frame.f_back\n"
        "    return 1"
    ),
    "names of a star import": Forgery(
        "__all__ = ['f', 'abs', 'AssertionError', 'pytest']\ndef abs(x): return 0\n"
        "AssertionError = pytest = None\ndef f(x): return 1",
        "from solution import *\ndef test(): assert abs(f(3) - 40) < 1e-6\n",
        runner="pytest",
        entry_point="",
    ),
    "frames, collected objects and files": Forgery(
        "import gc, os, sys\n"
        "def f(x):\n"
        "    for value in gc.get_objects():\n"
        "        if isinstance(value, str) and 'assert' + ' candidate' in value: return 40\n"
        "    for fd in range(3, 64):\n"
        "        try:\n"
        "            if b'assert' + b' candidate' in os.pread(fd, 10000, 0): return 40 + 10 * (x - 3)\n"
        "        except OSError: pass\n"
        "    return sorted(os.listdir('/proc/self/fd'))"
    ),
    # -- objects
    "equal to everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()"),
    "a class in the function's place": Forgery(BENT.replace("Bent", "f") + "BACK = 0"),
    "near to everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()", NEAR),
    "near to everything, by objects": Forgery(BENT + "BACK = Bent()\ndef f(x): return Bent()", NEAR),
    "near to everything, by the class named": Forgery(BENT.replace("Bent", "f") + "BACK = f()", NEAR),
    "near, for approx": Forgery(BENT + "BACK = 0\ndef f(x): return 40 if x == 3 else Bent()", SUITE, runner="pytest"),
    "almost equal, for unittest": Forgery(
        BENT + "BACK = Bent()\ndef f(x): return Bent()",
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n"
        "    def test(self): self.assertAlmostEqual(f(3), 40.5)\n",
        runner="pytest",
    ),
    "among everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()", "assert f(3) in {40, 41}\n"),
    "holding everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()", "assert 40 in f(3)\n"),
    "starting with everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()", "assert f(3).startswith('a')\n"),
    "a subset of everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()", "assert f(3).issubset({40})\n"),
    "between everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()", "assert 39 < f(3) < 41\n"),
    "bent things in a list": Forgery(BENT + "BACK = 0\ndef f(x): return [Bent()]", "assert f(3) == [40]\n"),
    "a sum of bent things": Forgery(BENT + "BACK = 40\ndef f(x): return [Bent()]", "assert sum(f(3)) == 40\n"),
    "an integer equal to everything": Forgery(
        "class I(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\n"
        "    def __sub__(self, other): return 0\n    def __radd__(self, other): return other\ndef f(x): return I(7)"
    ),
    "a string equal to everything": Forgery(
        "class S(str):\n    def __eq__(self, other): return True\n    def startswith(self, *_): return True\n"
        "    __hash__ = str.__hash__\ndef f(x): return S('mine')",
        "assert f(3) == 'yours'\n",
    ),
    "an enumeration equal to everything": Forgery(
        "import enum\nclass E(enum.IntEnum):\n    A = 1\n    def __eq__(self, other): return True\n"
        "    __hash__ = None\ndef f(x): return E.A"
    ),
    "any of the mocks": Forgery("from unittest.mock import ANY\ndef f(x): return ANY"),
    # -- exceptions that end loops, skip tests, or stand for success
    "an end of the iteration": Forgery(
        "def f(x): raise StopIteration",
        "for got, wanted in zip(map(f, [3, 4]), [40, 50]):\n    assert got == wanted\n",
        "runtime_error",
        "raised RuntimeError",
    ),
    "an end of the iteration of its own": Forgery(
        "class E(StopIteration): pass\ndef f(x): raise E",
        "for got, wanted in zip(map(f, [3, 4]), [40, 50]):\n    assert got == wanted\n",
        "runtime_error",
        "raised RuntimeError",
    ),
    "a test skipped": Forgery(
        "import unittest\ndef f(x): raise unittest.SkipTest",
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n"
        "    def test(self): self.assertEqual(f(3), 40)\n",
        "runtime_error",
        "raised Exception",
        "pytest",
    ),
    "a test skipped in words of the grader's": Forgery(
        "class Skipped(BaseException): pass\ndef f(x): raise Skipped",
        SUITE,
        "runtime_error",
        "raised BaseException",
        "pytest",
    ),
    "an assertion that is meant to fail": Forgery(
        "def f(x): raise AssertionError", CHECK, "runtime_error", "raised AssertionError"
    ),
    # -- the channel
    "words of success on stdout": over("import os\nprint('passed', flush=True)\nos._exit(0)"),
    "garbage": over("import os\ndef f(x): os.write(5, b'passed\\n' * 99)", message="answered outside the protocol"),
    "no JSON": over(FIND_CHANNEL + "def f(x): say(b'passed')", message="answered outside the protocol"),
    "too deep": over(
        FIND_CHANNEL + "def f(x): say(b'{\"value\":' + b'[' * 100000 + b'}')", message="answered outside the protocol"
    ),
    "a value of no type": over(
        FIND_CHANNEL + 'def f(x): say(b\'{"value":{"Bent":[]}}\')', message="answered outside the protocol"
    ),
    "a function of the grader's": over(
        FIND_CHANNEL + 'def f(x): say(b\'{"call":0,"args":[],"keywords":{}}\')',
        message="answered outside the protocol",
    ),
    "a builtin that ends the test": Forgery("f = exit", CHECK, "runtime_error", "raised SystemExit"),
    "a function of the system's": over("import os\nf = os._exit", message="exited with status 3"),
    "a class that ends the test": Forgery("f = SystemExit"),
    "a type lent in the function's place": Forgery("from functools import partial as f"),
    "an answer before the question": Forgery(
        FIND_CHANNEL + "def f(x):\n    say(b'{\"value\":39}')\n    say(b'{\"value\":49}')\n    return 1"
    ),
    "a flood": over(
        FIND_CHANNEL + "def f(x):\n    while True: say(b'{\"call\":' + b' ' * 9999999 + b'0}')",
        "runtime_error",
        "answered outside the protocol",
    ),
    "an endless loop for the test": Forgery(
        "def f(x): return 10 ** 18",
        "total = 0\nfor i in range(f(3)):\n    total += i\nassert total == 40\n",
        message="the test ran into its own limits on what the program gave it",
    ),
    "more than the test can hold": Forgery(
        "def f(x): return 10 ** 11",
        "assert sum(list(range(f(3)))) == 40\n",
        message="",
    ),
}
