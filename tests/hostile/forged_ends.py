"""Forgeries by how the program or the test ends: early, in another way, or with no verdict at all."""

from __future__ import annotations

from tests.hostile.forgery import CHECK, HOLDER, RAW, SUITE, Forgery, over

FIND_CHANNEL = "import os\ndef say(data):\n    os.write(5, len(data).to_bytes(4, 'big') + data)\n"

ARRAYS = '{"value":[' + ",".join(['{"array":["<U100000",[20],[' + ",".join(['"a"'] * 20) + "]]}"] * 400) + "]}"
ONE_HASH = "'[' + ','.join(str(i * (2 ** 61 - 1)) for i in range(1, 600_000)) + ']'"
RAISED = '{"raised":{"class":{"type":"ValueError"},"text":"","number":0,"args":null,"cause":null}}'
RUN_OUT = "the test ran into its own limits on what the program gave it"

ENDS: dict[str, Forgery] = {
    # -- no verdict, by what the test cannot hold or read
    "arrays far larger than their text": Forgery(
        RAW + f"say(b'{{\"value\":null}}')\nsay_and_wait({ARRAYS!r})",
        message=RUN_OUT,
    ),
    "keys of one hash before anything is asked": over(
        RAW + f"say(b'{{\"value\":null}}')\n"
        f'say_and_wait(\'{{"value":{{"dict":[["f",{{"set":\' + {ONE_HASH} + \'}}]]}}}}\')',
        message="answered outside the protocol",
    ),
    "a result of keys of one hash": over(
        RAW + f"def f(x): say_and_wait('{{\"value\":{{\"set\":' + {ONE_HASH} + '}}}}')",
        message="answered outside the protocol",
    ),
    "keys of one hash that the test is to tell apart": Forgery(
        "def f(x): return [i * (2 ** 61 - 1) for i in range(300_000)]",
        "assert len(set(f(3))) == 40\n",
        message=RUN_OUT,
    ),
    "more than the test can hold, from a function of its own": Forgery(
        "def f(g): g('a', 1_900_000_000)\n",
        "assert f(lambda a, b: (a * b).replace('a', 'bcd')) == 40\n",
        message=RUN_OUT,
    ),
    "more than can cross, from a function of the test's": Forgery(
        "def f(g): g('a', 17 * 2 ** 20)\n",
        "assert f(lambda a, b: a * b) == 40\n",
        message="the test hands the program data of more than 16 MiB",
    ),
    **{
        f"an array of {code!r}": over(
            RAW + f'def f(x): say_and_wait(\'{{"value":{{"array":["{code}",[1],[1]]}}}}\')',
            message="answered outside the protocol",
        )
        for code in ("O", "<", "", "<O8", "|V9", "<U99999999", "<M8[s]")
    },
    # -- no verdict, by what is said before anything is asked
    "an exception in place of its names": over(
        RAW + f"say(b'{{\"value\":null}}')\nsay_and_wait({RAISED!r})", message="raised ValueError"
    ),
    **{
        what: Forgery(source, "assert f(3) == 40", "runtime_error", message, entry_point="")
        for what, source, message in (
            (
                "an exception in place of a name",
                RAW + 'say(b\'{"value":null}\')\nsay(b\'{"value":{"dict":[["f",null]]}}\')\n'
                f"say_and_wait({RAISED!r})",
                "the program lacks a name that the test uses",
            ),
            (
                "a name of what cannot cross",
                "f = []\nfor _ in range(500): f = [f]",
                "the program lacks a name that the test uses",
            ),
            (
                "an object in place of a name",
                RAW + "say(b'{\"value\":null}')\n"
                'say(b\'{"value":{"dict":[[{"object":[0,{"class":1}]},null]]}}\')\n'
                'about = b\'["name","S"],["methods",[]],["hash","identity"],["plain",true]\'\n'
                'say(b\'{"value":{"dict":[%s]},"bases":[]}\' % about)\n'
                'say_and_wait(\'{"value":"f"}\')',
                "answered outside the protocol",
            ),
        )
    },
    "an exception that takes more to tell than the test can hold": Forgery(
        "raise SyntaxError('x', ('x', 1, 1, 'x', 1, 1_100_000_000))", message=RUN_OUT
    ),
    # -- no verdict, by having the test hand on what cannot cross
    "a result that is too deep once it is wrapped": Forgery(
        "def f(x):\n    return eval('[' * 140 + '1' + ']' * 140) if x == 3 else x[:]",
        "assert f([[[[[[[[[[[[f(3)]]]]]]]]]]]]) == 40",
        verdict="runtime_error",
        message=None,
        entry_point="",
    ),
    "an argument made deeper": Forgery(
        "def f(x):\n    if not x: x.append(eval('[' * 290 + '1' + ']' * 290))\n    return x",
        "given = []\nf(given)\nassert f([[[[[[[[[[[[given]]]]]]]]]]]]) == 40",
        verdict="runtime_error",
        message=None,
        entry_point="",
    ),
    "results that are too long together": Forgery(
        "def f(x):\n    return 'x' * 3_000_000",
        "assert f([f(number) for number in range(9)]) == 40",
        message="the test hands the program data of more than 16 MiB",
        entry_point="",
    ),
    "an entry point with a class's name": Forgery(
        HOLDER + "Sum = Holder", "def check(candidate):\n    assert 40 in candidate(3)\n", entry_point="Sum"
    ),
    "a function of the test's that there is none of": over(
        RAW + 'def f(x): say_and_wait(\'{"value":{"mine":0}}\')', message="answered outside the protocol"
    ),
    **{
        f"an argument given back that cannot be: {given}": over(
            RAW + f'def f(x): say_and_wait(\'{{"value":null,"given":{given}}}\')',
            message="answered outside the protocol",
        )
        for given in ('"0"', '"1"', "0", "[]")
    },
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
    # -- exceptions that cannot be told
    "a line that is no text, while loading": over(
        "raise SyntaxError('m', ('f', 1, 1, 5, 1, 1))", message="raised SyntaxError"
    ),
    "a line that is no text": over(
        "def f(x): raise SyntaxError('m', ('f', 1, 1, 5, 1, 1))", message="raised SyntaxError"
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
    "a type lent in the function's place": over("from functools import partial as f", message="raised TypeError"),
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
