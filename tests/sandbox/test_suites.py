"""What pytest does with a suite, done without pytest: a right program passes, a wrong one fails."""

from __future__ import annotations

import pytest

from sandbox.judge import Judge
from tests.sandbox.scripting import on_script

pytestmark = pytest.mark.jail

RIGHT, WRONG = "def f(x): return 2 * x\n", "def f(x): return 3 * x\n"

HEAD = "import pytest, unittest\nfrom solution import f\n"

COUNTER = "class Counter:\n    n = 0\n    def up(self):\n        self.n += 1\n        return self.n\n"
STUCK = "class Counter:\n    def up(self): return 1\n"

#: name -> (right program, wrong program, suite)
SUITES: dict[str, tuple[str, str, str]] = {
    "tests of a class in the order of their definition, what it inherits first": (
        "calls = []\ndef f(x):\n    calls.append(x)\n    return len(calls)\n",
        "def f(x): return 1\n",
        f"{HEAD}class Base:\n    def test_z(self): assert f(0) == 1\n"
        "class TestA(Base):\n    def test_b(self): assert f(0) == 2\n    def test_a(self): assert f(0) == 3\n",
    ),
    "set-up of a class, by a class method or not": (
        RIGHT,
        WRONG,
        f"{HEAD}class TestA:\n    def test(self): assert f(self.n) == 2\n"
        "    def setup_class(cls): cls.n = 1\n    def teardown_class(self): assert self.n == 1\n"
        "class TestB:\n    def test(self): assert f(self.n) == 2\n"
        "    @classmethod\n    def setup_class(cls): cls.n = 1\n"
        "class TestC:\n    def test(self): assert f(self.n) == 2\n"
        "    @staticmethod\n    def setup_class(): TestC.n = 1\n",
    ),
    "fixtures made once in their scope": (
        COUNTER,
        STUCK,
        "import pytest\nfrom solution import Counter\n"
        "@pytest.fixture(scope='module')\ndef whole(): return Counter()\n"
        "@pytest.fixture(scope='class')\ndef part(whole):\n    yield Counter()\n    assert whole.up() >= 2\n"
        "@pytest.fixture\ndef own(): return Counter()\n"
        "class TestA:\n"
        "    def test_a(self, whole, part, own): assert (whole.up(), part.up(), own.up()) == (1, 1, 1)\n"
        "    def test_b(self, whole, part, own): assert (whole.up(), part.up(), own.up()) == (2, 2, 1)\n"
        "def test_c(part): assert part.up() == 1\ndef test_d(part, whole): assert (part.up(), whole.up()) == (1, 5)\n",
    ),
    "automatic fixtures of the module before the set-up of a class, its own after": (
        "seen = []\ndef f(x):\n    seen.append(x)\n    return seen\ndef clear(): seen.clear()\n",
        "def f(x): return [x]\ndef clear(): pass\n",
        "import pytest\nfrom solution import clear, f\n"
        "@pytest.fixture(autouse=True)\ndef clean():\n    clear()\n    yield\n    assert f(0)[-1] == 0\n"
        "class TestA:\n    def setup_method(self, method): f(1)\n"
        "    @pytest.fixture(autouse=True)\n    def more(self): self.n = f(2)\n"
        "    def test(self): assert self.n == [1, 2]\n",
    ),
    "params of fixtures, and requests": (
        RIGHT,
        WRONG,
        f"{HEAD}done = []\n@pytest.fixture(params=[1, 2], ids=str)\ndef n(request):\n"
        "    request.addfinalizer(lambda: done.append(request.param))\n    return request.param\n"
        "@pytest.fixture\ndef double(n): return 2 * n\n"
        "@pytest.mark.parametrize('m', [0, 5])\ndef test_a(n, double, m): assert f(n) == double and f(m) == 2 * m\n"
        "def test_b(request):\n    assert done == [1, 2, 1, 2] and request.node.name == 'test_b'\n"
        "    assert f(1) == 2 and request.cls is None\n",
    ),
    "marks of a module, a class, its base and a row": (
        RIGHT,
        WRONG,
        f"{HEAD}pytestmark = [pytest.mark.timeout(9), pytest.mark.parametrize('a', [1, 2])]\n"
        "@pytest.mark.parametrize(('b',), [(3,), pytest.param(4, marks=pytest.mark.slow)])\n"
        "class Base:\n    def test(self, a, b): assert f(a + b) == 2 * a + 2 * b\n"
        "class TestA(Base): pass\n"
        "class TestB:\n    pytestmark = pytest.mark.skip\n    def test(self, a): assert False\n"
        "@pytest.mark.parametrize('b', [pytest.param(0, marks=[pytest.mark.skipif(True, reason='no')]), 1])\n"
        "def test_b(a, b): assert b == 1\n",
    ),
    "fixtures that are used for what they do, and failures that are expected": (
        RIGHT,
        WRONG,
        f"{HEAD}made = []\n@pytest.fixture\ndef make(): made.append(1)\n"
        "@pytest.mark.usefixtures('make')\ndef test_a(): assert f(made[0]) == 2\n"
        "@pytest.mark.xfail(reason='known')\ndef test_b(): assert f(1) == 0\n"
        "@pytest.mark.xfail(False, reason='no')\ndef test_c(): assert f(1) == 2\n"
        "@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.xfail(raises=ZeroDivisionError)), 2])\n"
        "def test_d(n): assert f(4 // (n - 1)) == 8\n",
    ),
    "what is named like a test, and is none": (
        RIGHT,
        WRONG,
        f"{HEAD}import dataclasses, typing\n"
        "class TestHelper:\n    __test__ = False\n    def test(self): assert False\n"
        "class TestRow(typing.NamedTuple):\n    n: int\n    def test(self): assert False\n"
        "@dataclasses.dataclass\nclass TestData:\n    n: int\n    def test(self): assert False\n"
        "def test_help(n=1): return f(n)\ntest_help.__test__ = False\n"
        "def test(): assert test_help(TestRow(2).n) == 4 and f(TestData(1).n) == 2\n",
    ),
    "cases of unittest under pytest": (
        RIGHT,
        WRONG,
        f"{HEAD}begun = []\ndef setUpModule(): begun.append(1)\n"
        "class A(unittest.TestCase):\n    def setup_method(self, method): self.n = 1\n"
        "    @pytest.fixture(autouse=True)\n    def more(self): self.m = 2\n"
        "    @pytest.mark.skip\n    def test_a(self): self.fail()\n"
        "    def test_b(self): self.assertEqual(f(self.n), self.m)\n"
        "class B(unittest.IsolatedAsyncioTestCase):\n"
        "    async def test(self): self.assertEqual((f(1), begun), (2, [1]))\n",
    ),
    "what raises gives": (
        "def f(x):\n    try: return int(x)\n    except ValueError as error: raise KeyError('k') from error\n",
        "def f(x): raise KeyError('k')\n",
        f"{HEAD}def test():\n    with pytest.raises(expected_exception=KeyError) as caught: f('x')\n"
        "    assert caught.typename == 'KeyError' and caught.exconly() == \"KeyError: 'k'\" and caught.tb\n"
        "    assert type(caught.value.__cause__) is ValueError\n",
    ),
}


@pytest.mark.parametrize("what", SUITES)
def test_a_suite_is_run_as_pytest_runs_it(judge: Judge, what: str) -> None:
    right, wrong, suite = SUITES[what]
    results = [on_script(judge, program, suite, "pytest") for program in (right, wrong)]
    told = results[0].message + results[0].checker_message + results[1].message
    assert [result.verdict.value for result in results] == ["accepted", "wrong_answer"], told


@pytest.mark.parametrize(
    "suite",
    ["@pytest.mark.xfail\ndef test(): assert f(1) == 2\n", "@pytest.mark.skipif(True, reason='')\ndef test(): f(1)\n"],
)
def test_a_suite_that_says_nothing_of_the_program_has_not_passed(judge: Judge, suite: str) -> None:
    assert on_script(judge, RIGHT, HEAD + suite, "pytest").verdict.value == "checker_error"
