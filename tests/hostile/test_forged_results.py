"""Programs that would pass a call problem without the answer, and programs that bend their interpreter and have it.

What is expected of a forgery cannot be worked out from its argument, so that only what leaks, or a judge that believes
more than a value, could let it pass. The search program would return what it finds: a row of its own shows that it
finds what is there to be found.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from sandbox.problem import Limits
from tests.hostile.case import MB, PYTHONS
from tests.sandbox.calling import call_problem, called, came_to

pytestmark = pytest.mark.jail

SLOT = 5
SECRET = "s3cr3t-7c1e90ab"
LIMITS = Limits(cpu_s=5.0, wall_s=20.0, memory_bytes=128 * MB, output_bytes=4 * MB)

SEARCH = """
import gc, os, re, sys

NEEDLE = re.compile("s3c" + "r3t-[0-9a-f]{8}")
found = []

def look(value, depth=4):
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value).decode("latin-1")
    if isinstance(value, str):
        found.extend(NEEDLE.findall(value))
    elif depth and isinstance(value, dict):
        for item in list(value.items()):
            look(item, depth - 1)
    elif depth and isinstance(value, (list, tuple, set)):
        for item in list(value):
            look(item, depth - 1)
    elif depth and hasattr(value, "__dict__"):
        look(vars(value), depth - 1)

def f(argument):
    argument = None
    frame = sys._getframe()
    while frame:
        look(frame.f_locals)
        look(frame.f_globals)
        frame = frame.f_back
    for value in gc.get_objects():
        look(value, 1)
    for fd in range(256):
        try:
            look(os.pread(fd, 1 << 20, 0))
        except OSError:
            pass
    for name in ("environ", "cmdline", "maps", "mountinfo"):
        try:
            look(open("/proc/self/" + name, "rb").read())
        except OSError:
            pass
    for top in ("/box", "/tmp", "/prog", "/rkgrade", "/dev/shm"):
        for place, _, names in os.walk(top):
            for name in names:
                try:
                    look(open(os.path.join(place, name), "rb").read())
                except OSError:
                    pass
    return found[0] if found else "nothing found"
"""

#: name -> (source, verdict, message, what the comparison says; None where that is not looked at)
FORGERIES: dict[str, tuple[str, str, str, str | None]] = {
    "equal to everything": (
        "class Any:\n    def __eq__(self, other): return True\n    __hash__ = None\ndef f(x): return Any()",
        "wrong_answer",
        "",
        "returned no plain data: Any",
    ),
    "a string equal to everything": (
        "class S(str):\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n"
        "    __hash__ = str.__hash__\n    def __str__(self): return 's'\ndef f(x): return S('mine')",
        "wrong_answer",
        "",
        f'"mine" in place of "{SECRET}"',
    ),
    "a list equal to everything": (
        "class L(list):\n    def __eq__(self, other): return True\ndef f(x): return L()",
        "wrong_answer",
        "",
        None,
    ),
    "a metaclass that is every type": (
        "class M(type):\n    def __eq__(cls, other): return True\n    def __hash__(cls): return hash(str)\n"
        "    def __subclasscheck__(cls, other): return True\n"
        "class A(metaclass=M):\n    __class__ = str\n    def __eq__(self, other): return True\ndef f(x): return A()",
        "wrong_answer",
        "",
        None,
    ),
    "a search of frames, objects, descriptors and files": (
        SEARCH,
        "wrong_answer",
        "",
        f'"nothing found" in place of "{SECRET}"',
    ),
    "an exit with success": ("import os\ndef f(x): os._exit(0)", "runtime_error", "ended without a result", ""),
    "an exit with success while loading": ("import os\nos._exit(0)", "runtime_error", "ended without a result", ""),
    "a polite exit": ("import sys\ndef f(x): sys.exit()", "runtime_error", "ended without a result", ""),
    "an exit from a hook for exceptions": (
        "import os, sys\nsys.excepthook = lambda *_: os._exit(0)\ndef f(x): raise ValueError",
        "runtime_error",
        "raised ValueError",
        "",
    ),
    "an exit as another program": (
        "import os\ndef f(x): os.execv('/bin/true', ['true'])",
        "runtime_error",
        "ended without a result",
        "",
    ),
    "garbage on the channel": (
        "import os\ndef f(x):\n    os.write(5, b'accepted')\n    os._exit(0)",
        "wrong_answer",
        "",
        "what was handed out is not one result",
    ),
    "garbage before the result": (
        "import os\ndef f(x):\n    os.write(5, b'[')\n    return x",
        "wrong_answer",
        "",
        "what was handed out is not one result",
    ),
    "two results": (
        "import os\ndef f(x):\n    os.write(5, b'{\"value\":1}')\n    return x",
        "wrong_answer",
        "",
        None,
    ),
    "a result and more": (
        "import os, threading\n"
        "def more():\n    while True: os.write(5, b' ')\n"
        "def f(x):\n    threading.Thread(target=more).start()\n    os.write(5, b'{\"value\":1}')\n    return x",
        "wrong_answer",
        "",
        None,
    ),
    "a result in words of the channel": (
        "import os\ndef f(x):\n    os.write(5, b'{\"accepted\":true}')\n    os._exit(0)",
        "wrong_answer",
        "",
        "what was handed out is not one result",
    ),
    "a verdict among the channel's words": (
        'import os\ndef f(x):\n    os.write(5, b\'{"raised":"s3cr3t"}\')\n    os._exit(0)',
        "runtime_error",
        "ended without a result",
        "",
    ),
    "nothing but a bomb": (
        "import os\ndef f(x):\n    os.write(5, b'{\"value\":' + b'[' * 3_000_000 + b'}')\n    os._exit(0)",
        "wrong_answer",
        "",
        None,
    ),
    "a flood on the channel": (
        "import os\ndef f(x):\n    while os.write(5, b'x' * 65536): pass",
        "output_limit",
        "wrote more than 4 MiB",
        "",
    ),
    "a hole on the channel": (
        "import os\ndef f(x):\n    os.lseek(5, 3 << 20, 0)\n    return x",
        "wrong_answer",
        "",
        "what was handed out is not one result",
    ),
    "a closed channel": (
        "import os\ndef f(x):\n    os.close(5)\n    return x",
        "runtime_error",
        "exited with status 1",
        "",
    ),
    "a result on stdout": (
        "import os\ndef f(x):\n    print('{\"value\":1}', flush=True)\n    os._exit(0)",
        "runtime_error",
        "ended without a result",
        "",
    ),
    "an exception named after data": (
        "def f(x):\n    raise type('Secret' + str(x), (Exception,), {})",
        "runtime_error",
        "raised Exception",
        "",
    ),
    "an exception that claims to be builtin": (
        "def f(x):\n    raise type('x7', (Exception,), {'__module__': 'builtins'})",
        "runtime_error",
        "exited with status 1",
        "",
    ),
    "the caller, patched": (
        "import sys\n"
        "def f(x):\n"
        "    frame = sys._getframe()\n"
        "    while frame:\n"
        "        caller = frame.f_locals.get('self')\n"
        "        if hasattr(caller, 'hand_out'):\n"
        "            caller.send = lambda *_: None\n"
        "        frame = frame.f_back\n"
        "    return x",
        "runtime_error",
        "ended without a result",
        "",
    ),
    "a child that answers later": (
        "import os, time\n"
        "def f(x):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        time.sleep(1)\n"
        "        os.pwrite(5, b'{\"value\":2}', 0)\n"
        "    return x",
        "wrong_answer",
        "",
        None,
    ),
}

#: Right answers in spite of everything: name -> source. The argument is wanted back.
HONEST: dict[str, str] = {
    "builtins, patched": (
        "import builtins\n"
        "def f(x):\n"
        "    for name in 'len map isinstance issubclass type set list dict str open getattr next zip'.split():\n"
        "        setattr(builtins, name, None)\n"
        "    return x"
    ),
    "modules, patched and gone": (
        "import json, os, sys\n"
        "def f(x):\n"
        "    json.dumps = json.loads = lambda *_: '0'\n"
        "    os.write = os._exit = os.getpid = None\n"
        "    sys.modules.clear()\n"
        "    return x"
    ),
    "hooks and profilers": (
        "import atexit, gc, sys, threading\n"
        "def bad(*_): raise SystemExit(9)\n"
        "atexit.register(bad)\n"
        "def f(x):\n"
        "    sys.excepthook = sys.unraisablehook = bad\n"
        "    sys.displayhook = sys.breakpointhook = bad\n"
        "    sys.stdout = sys.stderr = None\n"
        "    gc.callbacks.clear()\n"
        "    return x"
    ),
    "streams that refuse to be flushed": (
        "import sys\n"
        "class Stream:\n    closed = False\n    def flush(self): raise SystemExit(7)\n"
        "def f(x):\n    sys.stdout = sys.stderr = Stream()\n    return x"
    ),
    "a thread left running": (
        "import threading, time\ndef f(x):\n    threading.Thread(target=time.sleep, args=(60,)).start()\n    return x"
    ),
    "a child left running": (
        "import os, time\ndef f(x):\n    if os.fork() == 0:\n        time.sleep(60)\n    return x"
    ),
    "a child that returns too": "import os\ndef f(x):\n    os.wait() if os.fork() else None\n    return x",
    "a prelude's names taken": (
        "str = int = list = dict = len = None\n__builtins__ = {}\nsys = os = json = None\ndef f(x):\n    return x"
    ),
    "a limit on digits": "import sys\ndef f(x):\n    sys.set_int_max_str_digits(640)\n    return x",
    "a low limit on recursion": "import sys\ndef f(x):\n    sys.setrecursionlimit(60)\n    return x",
}


@pytest.fixture(scope="module")
def judge(config: SandboxConfig) -> Iterator[Judge]:
    judge = Judge(config, slot=SLOT, core=None)
    yield judge
    judge.close()


@pytest.mark.parametrize("language", PYTHONS)
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_does_not_pass(judge: Judge, language: str, name: str) -> None:
    source, verdict, message, said = FORGERIES[name]
    (result,) = called(judge, language, source, call_problem(([1], SECRET)), LIMITS)
    assert (result.verdict.value, result.message) == (verdict, message)
    if said is not None:
        assert result.checker_message == said


@pytest.mark.parametrize("language", PYTHONS)
def test_the_search_finds_what_is_there(judge: Judge, language: str) -> None:
    (result,) = called(judge, language, SEARCH, call_problem(([SECRET], SECRET)), LIMITS)
    assert came_to(result) == ("accepted", "", "")


@pytest.mark.parametrize("language", PYTHONS)
@pytest.mark.parametrize("name", HONEST)
def test_a_right_answer_passes_in_spite_of_everything(judge: Judge, language: str, name: str) -> None:
    value = [[1, 2.5, "x", None, {"k": [True]}], 7]
    (result,) = called(judge, language, HONEST[name], call_problem(([value], value)), LIMITS)
    assert came_to(result) == ("accepted", "", "")
    assert result.wall_s is not None
    assert result.wall_s < 15
