"""Checks of a test script's that Python lets by in silence: none that failed, or never ran, counts as passed."""

from __future__ import annotations

import pytest

from sandbox.judge import Judge
from tests.sandbox.scripting import on_script

pytestmark = pytest.mark.jail

RIGHT, WRONG = "def f(x): return 40\n", "def f(x): return 1\n"

CASE = "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n"
SUITE = "import functools, pytest, unittest\nfrom solution import f\ndef test(): assert f(1) == f(1)\n"

#: name -> (script, runner, entry point): a wrong program fails, a right one passes.
HEARD: dict[str, tuple[str, str, str]] = {
    "an assertion in a thread": (
        "import threading\ndef run(): assert f(3) == 40\nt = threading.Thread(target=run)\nt.start()\nt.join()\n",
        "exec",
        "",
    ),
    "an assertion in a future": (
        "from concurrent.futures import ThreadPoolExecutor\ndef run(): assert f(3) == 40\n"
        "with ThreadPoolExecutor() as pool: pool.submit(run)\n",
        "exec",
        "",
    ),
    "an assertion in a task": (
        "import asyncio\nasync def run(): assert f(3) == 40\n"
        "async def main():\n    asyncio.create_task(run())\n    await asyncio.sleep(0.01)\nasyncio.run(main())\n",
        "exec",
        "",
    ),
    "unittest without an exit": (
        f"{CASE}    def test(self): self.assertEqual(f(3), 40)\nunittest.main(exit=False)\n",
        "exec",
        "",
    ),
    "a subtest, of a result that nobody looks at": (
        f"{CASE}    def test(self):\n        for n in (1, 3):\n"
        "            with self.subTest(n): self.assertEqual(f(n), 40)\n"
        "unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(T))\n",
        "exec",
        "",
    ),
    "a failure that is not expected to be none": (
        f"{CASE}    @unittest.expectedFailure\n    def test(self): self.assertEqual(f(3), 1)\n"
        "unittest.main(exit=False)\n",
        "exec",
        "",
    ),
    "a check that is a coroutine": ("async def check(candidate): assert candidate(3) == 40\n", "exec", "f"),
    "a set-up that is a coroutine": (f"{SUITE}async def setup_module(): assert f(3) == 40\n", "pytest", ""),
    "a class in a class": (
        f"{SUITE}class TestA:\n    class TestB:\n        def test(self): assert f(3) == 40\n",
        "pytest",
        "",
    ),
    "a test that is partial": (
        f"{SUITE}def for_all(n): assert f(n) == 40\ntest_three = functools.partial(for_all, 3)\n",
        "pytest",
        "",
    ),
    "a test that is wrapped": (f"{SUITE}@functools.cache\ndef test_three(): assert f(3) == 40\n", "pytest", ""),
    "fail where exceptions are let by": (
        f"{SUITE}def test_three():\n    try:\n        if f(3) != 40: pytest.fail('no')\n    except Exception: pass\n",
        "pytest",
        "",
    ),
    "raises where exceptions are let by": (
        f"{SUITE}def test_three():\n    try:\n        with pytest.raises(IndexError): list(range(40))[f(3)]\n"
        "    except Exception: pass\n",
        "pytest",
        "",
    ),
    "an assertion in a thread that nobody waits for": (
        "import threading, time\ndef run():\n    time.sleep(0.3)\n    assert f(3) == 40\n"
        "x = f\nthreading.Thread(target=run).start()\n",
        "exec",
        "",
    ),
    "an assertion in a pool that nobody waits for": (
        "import time\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "def run():\n    time.sleep(0.3)\n    assert f(3) == 40\nThreadPoolExecutor().submit(run)\n",
        "exec",
        "",
    ),
    **{
        f"a test beside an automatic fixture by the name of {name}": (
            f"{SUITE}class TestA:\n    @pytest.fixture(autouse=True)\n"
            f"    def {name}(self, three):\n        self.n = three\n        yield\n"
            f"    @pytest.fixture\n    def three(self): return 3\n    def test(self): assert f(self.n) == 40\n",
            "pytest",
            "",
        )
        for name in ("setup", "setup_method", "teardown_method", "setup_class")
    },
    **{
        f"a test beside a module's automatic fixture by the name of {name}": (
            f"{SUITE}@pytest.fixture(autouse=True)\ndef {name}():\n    N.append(3)\n    yield\n"
            "N = []\ndef test_three(): assert f(N[-1]) == 40\n",
            "pytest",
            "",
        )
        for name in ("setup_module", "teardown_module", "setup_function", "teardown_function")
    },
    "a fixture by the name of a test": (
        f"{SUITE}@pytest.fixture\ndef test_data():\n    yield [3]\n"
        "def test_three(test_data): assert f(test_data[0]) == 40\n",
        "pytest",
        "",
    ),
    "an assertion among what is gathered": (
        "import asyncio\nasync def run(): assert f(3) == 40\n"
        "async def main(): await asyncio.gather(run(), run(), return_exceptions=True)\nasyncio.run(main())\n",
        "exec",
        "",
    ),
    "an assertion in a task that is kept": (
        "import asyncio\ntasks = []\nasync def run(): assert f(3) == 40\n"
        "async def main():\n    tasks.append(asyncio.create_task(run()))\n    await asyncio.wait(tasks)\n"
        "asyncio.run(main())\n",
        "exec",
        "",
    ),
    "assertions in a pool of threads": (
        "from multiprocessing.pool import ThreadPool\ndef run(n): assert f(n) == 40\n"
        "with ThreadPool(2) as pool:\n    pool.map_async(run, [1, 2]).wait()\n",
        "exec",
        "",
    ),
    "a result of which nothing is asserted but its length": (
        f"{CASE}    def test(self): self.assertEqual(f(3), 40)\n"
        "result = unittest.TestResult()\nT('test').run(result)\nprint(result.failures)\nassert result.testsRun == 1\n",
        "exec",
        "",
    ),
    "a class that is in itself": (
        f"{SUITE}class TestA:\n    def test(self): assert f(3) == 40\nTestA.TestSelf = TestA\n",
        "pytest",
        "",
    ),
    "a check that yields, to a script that takes it": (
        "def check(candidate): yield candidate(3) == 40\nassert all(check(f))\n",
        "exec",
        "f",
    ),
    "a skip of a case, beside a test": (
        f"{SUITE}class A(unittest.TestCase):\n    def test_a(self): pytest.skip('no')\n"
        "    def test_b(self): self.assertEqual(f(3), 40)\n",
        "pytest",
        "",
    ),
    "cases skipped before they begin, beside a test": (
        "import unittest\nfrom solution import f\nclass A(unittest.TestCase):\n"
        "    @classmethod\n    def setUpClass(cls): raise unittest.SkipTest\n    def test(self): assert f(3) == 0\n"
        "class B(unittest.TestCase):\n    def test(self): self.assertEqual(f(3), 40)\n",
        "pytest",
        "",
    ),
}

#: name -> (script, runner, entry point, what is not covered): a check that never runs.
MISSED: dict[str, tuple[str, str, str, str]] = {
    "a generator": (f"{SUITE}def test_a():\n    yield\n    assert f(3) == 40\n", "pytest", "", "a test that yields"),
    "a generator, in a class": (
        f"{SUITE}class TestA:\n    def test(self):\n        yield\n        assert f(3) == 40\n",
        "pytest",
        "",
        "a test that yields",
    ),
    "a coroutine that yields": (
        f"{SUITE}async def test_a():\n    yield\n    assert f(3) == 40\n",
        "pytest",
        "",
        "a test that yields",
    ),
    "a tear-down": (
        f"{SUITE}def teardown_module():\n    yield\n    assert f(3) == 40\n",
        "pytest",
        "",
        "a set-up or tear-down that yields",
    ),
    **{
        f"{name} of a case, by {runner}, {what}": (
            f"{CASE}    {kind} {name}(self):\n        self.assertEqual(f(3), 40)\n{more}"
            f"    def test_a(self): self.assertEqual(f(1), f(1))\n{'unittest.main()' if runner == 'exec' else ''}\n",
            runner,
            "",
            f"{name} of a TestCase that {what}",
        )
        for runner in ("pytest", "exec")
        for name in ("test", "setUp", "tearDown")
        for kind, more, what in (("async def", "", "is a coroutine"), ("def", "        yield\n", "yields"))
    },
    "a case that is asynchronous, and yields": (
        "import unittest\nfrom solution import f\nclass T(unittest.IsolatedAsyncioTestCase):\n"
        "    async def test(self):\n        yield\n        self.assertEqual(f(3), 40)\n",
        "pytest",
        "",
        "test of a TestCase that yields",
    ),
    "a check": (
        "def check(candidate):\n    yield\n    assert candidate(3) == 40\n",
        "exec",
        "f",
        "a check that yields",
    ),
    "a check that the script calls": (
        "def check(candidate):\n    yield\n    assert candidate(3) == 40\ncheck(f)\n",
        "exec",
        "f",
        "a check that yields",
    ),
    "a coroutine that the script calls": (
        "async def check(candidate): assert candidate(3) == 40\ncheck(f)\n",
        "exec",
        "f",
        "check, a coroutine that is never awaited",
    ),
    "a coroutine in a test": (
        f"{SUITE}async def three(): assert f(3) == 40\ndef test_a(): three()\n",
        "pytest",
        "",
        "three, a coroutine that is never awaited",
    ),
    "processes of the test's own": (
        "import multiprocessing\ndef run(): assert f(3) == 40\n"
        "process = multiprocessing.Process(target=run)\nprocess.start()\nprocess.join()\n",
        "exec",
        "",
        "processes of the test's own",
    ),
    "what a case would evaluate": (
        f"{CASE}    def test(self): self.assertEqual(eval('[*' + repr([f(3)]) + ']'), [40])\nunittest.main()\n",
        "exec",
        "",
        "evaluating text that the program may have made, with Starred in it",
    ),
}


@pytest.mark.parametrize("what", HEARD)
def test_a_check_that_fails_is_heard(judge: Judge, what: str) -> None:
    wrong, right = on_script(judge, WRONG, *HEARD[what]), on_script(judge, RIGHT, *HEARD[what])
    assert (wrong.verdict.value, right.verdict.value) == ("wrong_answer", "accepted"), (
        wrong.checker_message + right.checker_message
    )


@pytest.mark.parametrize("what", MISSED)
def test_a_check_that_never_runs_has_not_passed(judge: Judge, what: str) -> None:
    script, runner, entry_point, lacks = MISSED[what]
    for source in (WRONG, RIGHT):
        result = on_script(judge, source, script, runner, entry_point)
        assert (result.verdict.value, result.message) == (
            "checker_error",
            f"the test needs what is not covered: {lacks}",
        ), result.checker_message


def test_a_failure_counts_before_what_never_runs(judge: Judge) -> None:
    script = f"{CASE}    async def test_a(self): pass\n    def test_b(self): self.assertEqual(f(3), 40)\n"
    assert on_script(judge, WRONG, script, "pytest").verdict.value == "wrong_answer"


def test_no_program_that_fails_is_given_what_never_runs(judge: Judge) -> None:
    """By an exception it can have a coroutine of the test's dropped."""
    script = "async def t(): return 1\ntry: print(t(), f(3))\nexcept ValueError: pass\nassert f(3) == 40\n"
    result = on_script(judge, "def f(x, n=[]):\n    n or n.append(1) or int('x')\n    return 1\n", script)
    assert result.verdict.value == "wrong_answer"


#: name -> (program, script): nothing of these is hidden.
LOOKED_AT = {
    "a coroutine that what the program raises drops": (
        "def f(x):\n    if x < 0: raise ValueError\n    return 40\n",
        "import asyncio\nasync def one(): return 1\nasync def both(a, b): return await a + b\n"
        "def deep(n): return sum(f(one) for one in (1, n))\n"
        "try: asyncio.run(both(one(), deep(-1)))\nexcept ValueError: pass\nelse: assert False\n"
        "try: print(one(), f(-1))\nexcept ValueError: pass\nassert asyncio.run(both(one(), f(1))) == 41\n",
    ),
    "a result with failures that are expected": (
        RIGHT,
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(3), 41)\n"
        "result = unittest.TestResult()\nT('test').run(result)\nassert len(result.failures) == 1\n",
    ),
    "what the program raises among what is gathered": (
        "async def f(x):\n    if x < 0: raise ValueError\n    return x\n",
        "import asyncio\nasync def call(x): assert await f(x) >= 0\n"
        "async def main(): return await asyncio.gather(call(1), call(-1), return_exceptions=True)\n"
        "assert [type(one) for one in asyncio.run(main())] == [type(None), ValueError]\n",
    ),
    "results of a pool of threads": (
        RIGHT,
        "from multiprocessing.pool import ThreadPool\ndef run(n): assert f(n) == n\n"
        "with ThreadPool(2) as pool:\n    assert pool.map(f, [1, 2]) == [40, 40]\n"
        "    assert pool.map_async(run, [40]).get() == [None]\n"
        "    for one in pool.imap(run, [40]): assert one is None\n"
        "    try: pool.apply_async(run, (3,)).get()\n    except AssertionError: pass\n",
    ),
}


@pytest.mark.parametrize("what", LOOKED_AT)
def test_what_the_script_looks_at_is_the_scripts_to_judge(judge: Judge, what: str) -> None:
    result = on_script(judge, *LOOKED_AT[what])
    assert (result.verdict.value, result.message, result.checker_message) == ("accepted", "", "")


@pytest.mark.parametrize("entry_point", ["check", ""])
def test_a_program_may_be_called_check(judge: Judge, entry_point: str) -> None:
    script = "assert check(70) == False\nassert check(73) == True\n"
    verdicts = [
        on_script(judge, f"def check(n): return n {how} 73\n", script, "exec", entry_point).verdict.value
        for how in ("==", ">=", "!=")
    ]
    assert verdicts == ["accepted", "accepted", "wrong_answer"]


@pytest.mark.parametrize(
    "asked",
    [
        "with pytest.raises(ValueError): ThreadPoolExecutor().submit(call, 3).result()",
        "assert isinstance(ThreadPoolExecutor().submit(call, 3).exception(), ValueError)",
        "with pytest.raises(ValueError): asyncio.run(asyncio.to_thread(call, 3))",
    ],
)
def test_what_is_to_be_raised_may_be_raised_in_a_future(judge: Judge, asked: str) -> None:
    script = (
        "import asyncio, pytest\nfrom concurrent.futures import ThreadPoolExecutor\nfrom solution import f\n"
        f"def call(n): assert f(n)\ndef test_call():\n    {asked}\n"
    )
    right, wrong = (
        on_script(judge, source, script, "pytest").verdict.value
        for source in ("def f(n): raise ValueError(n)\n", "def f(n): return n\n")
    )
    assert (right, wrong) == ("accepted", "wrong_answer")
