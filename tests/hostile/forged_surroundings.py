"""Forgeries by what the test works with: its library, its names, its callers, and what it evaluates."""

from __future__ import annotations

from tests.hostile.forgery import NEAR, RAW, SUITE, Forgery, over

#: Whoever resolves them ends its own process, as if all had passed.
HOSTILE_ANNOTATIONS = """
class Held:
    def __init__(self): self.__annotations__ = {'x': '__import__("os")._exit(0)'}
    def __call__(self, x): return x
"""

SURROUNDINGS: dict[str, Forgery] = {
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
    # -- what the library does for whoever is called by another name
    "annotations that end the test": Forgery(
        HOSTILE_ANNOTATIONS + "from typing import get_type_hints as f\n",
        "from solution import Held, f\nassert f(Held()) == 40\n",
        "runtime_error",
        "ended before the test did",
        entry_point="",
    ),
    "annotations that end the test, of a function that wraps": Forgery(
        "def f(x): return x\nf.__annotations__ = {'x': '__import__(\"os\")._exit(0)'}\n",
        "import functools, typing\n@functools.wraps(f)\ndef wrapped(x): return f(x)\n"
        "assert typing.get_type_hints(wrapped) == {} and wrapped(3) == 40\n",
        entry_point="",
    ),
    "a function of the library's, said to be of that name": over(
        RAW + 'say(b\'{"value":null}\')\nsay_and_wait(\'{"value":{"dict":[["f","typing.get_type_hints"]]}}\')',
        message="answered outside the protocol",
    ),
    # -- what the test has of the library by the program's import
    **{
        f"the library's, of its own making: {question}": Forgery(
            "class math: fabs = staticmethod(lambda x: 0)\n"
            "class np:\n"
            "    abs = staticmethod(lambda x: 0)\n"
            "    class testing: assert_allclose = staticmethod(lambda *a: None)\n"
            "def f(x): return 1\n",
            f"{before}{question}\n",
            entry_point="",
        )
        for before, question in (
            ("", "assert math.fabs(f(3) - 40.5) < 1e-6"),
            ("", "assert np.abs(f(3) - 40.5) < 1e-6"),
            ("", "np.testing.assert_allclose(f(3), 40.5)"),
            ("from solution import *\n", "assert math.fabs(f(3) - 40.5) < 1e-6"),
        )
    },
    # -- what the library takes for like anything
    **{
        f"nothing, near to all there is: {question}": Forgery(
            f"def f(x): return {result}",
            f"import numpy as np\nimport numpy.testing\n{question}\n",
            entry_point="",
        )
        for result, question in (
            ("[]", "assert np.allclose(f(3), 40.5, rtol=1e-07, atol=1e-06)"),
            ("()", "assert np.isclose(f(3), [40.5]).all()"),
            ("range(0)", "assert all(np.isclose(40.5, f(3)))"),
            ("[]", "assert np.array_equiv(f(3), [40.5])"),
            ("[40.5]", "assert np.allclose(f(3), [])"),
            ("[]", "np.testing.assert_allclose(f(3), 40.5)"),
            ("[]", "numpy.testing.assert_array_less(f(3), 40.5)"),
        )
    },
    # -- what a block or a caller of the program's swallows
    "swallowed by who calls the test's function": Forgery(
        "def quiet(g):\n"
        "    def inner(*args):\n"
        "        try: return g(*args)\n"
        "        except BaseException: return None\n"
        "    return inner\n"
        "def f(x): return 1\n",
        "@quiet\ndef one(): assert f(3) == 40\none()\nassert f(4) == 1\n",
        entry_point="",
    ),
    **{
        f"swallowed: {asserted}": Forgery(
            "class Block:\n"
            "    def __enter__(self): return self\n"
            "    def __exit__(self, *_): return True\n"
            "    def fails(self): raise KeyError\n"
            "def f(x): return 1\n",
            f"import unittest\ncase = unittest.TestCase()\nwith Block() as block:\n    {asserted}\n",
            verdict,
            None,
            entry_point="",
        )
        for asserted, verdict in (
            ("assert f(3) == 40", "wrong_answer"),
            ("case.assertEqual(f(3), 40)", "wrong_answer"),
            ("assert block.fails() == 40", "runtime_error"),
            ("case.assertEqual(\n        block.fails(), 40)", "runtime_error"),
            ("assert block.nothing == 40", "runtime_error"),
            ("assert f(3).nothing == 40", "wrong_answer"),
        )
    },
    # -- what the test evaluates
    **{
        f"evaluated: {result}": Forgery(
            f"def f(x): return {result!r}",
            f"class Own: pass\ndef end(): raise SystemExit\nassert {how}(f(3)) == 40\n",
            verdict="checker_error",
            message=None,
            entry_point="",
        )
        for how, result in (
            ("eval", "__import__('os')._exit(0)"),
            ("eval", "end()"),
            ("eval", "exit()"),
            ("eval", "sorted([0, None], key=exit)"),
            ("eval", "max(map(exit, [0]))"),
            ("eval", "().__class__.__base__.__subclasses__()"),
            ("eval", "[exit for exit in [0]]"),
            ("eval", "(lambda: 40)()"),
            ("eval", "f'{exit(0)}'"),
            ("eval", "Own"),
            ("exec", "raise SystemExit"),
            ("(lambda text: exec(compile(text, 'text', 'exec')))", "raise SystemExit"),
        )
    },
    "timed": Forgery(
        "def f(x): return \"__import__('os')._exit(0)\"",
        "import timeit\nassert timeit.timeit(f(3), number=1) < 1 and f(3) == 40\n",
        verdict="checker_error",
        message="the test needs what is not covered: timing text that the program may have made",
        entry_point="",
    ),
    "unpickled": Forgery(
        "import os, pickle\nclass End:\n    def __reduce__(self): return os._exit, (0,)\n"
        "def f(x): return pickle.dumps(End())",
        "import pickle\nassert pickle.loads(f(3)) == 40\n",
        verdict="checker_error",
        message="the test needs what is not covered: unpickling posix._exit",
        entry_point="",
    ),
    **{
        f"annotations that the test resolves, by {how}": Forgery(
            HOSTILE_ANNOTATIONS + "f = Held()\n",
            f"import inspect, typing\nassert f(3) != 40\nassert {how} == 40\n",
            verdict="checker_error",
            message="the test needs what is not covered: resolving annotations of the program's",
            entry_point="",
        )
        for how in ("typing.get_type_hints(f)", "inspect.get_annotations(f, eval_str=True)")
    },
}
