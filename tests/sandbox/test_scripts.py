"""Test scripts beside Python programs: what crosses between the two, suites, ends, and whose fault an end is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox.errors import UnknownLanguage
from sandbox.judge import Judge
from sandbox.problem import Submission
from tests.sandbox.calling import PYTHONS
from tests.sandbox.cells import ROOMY, footprint
from tests.sandbox.scripting import on_script, script_problem

pytestmark = pytest.mark.jail

ECHO = "def f(x):\n    return x\n"

#: name -> (program, script, runner, entry point)
PASSES: dict[str, tuple[str, str, str, str]] = {
    "a script of assertions": ("def f(x):\n    return x + 1\n", "assert f(1) == 2\nassert f(-1) == 0\n", "exec", ""),
    "check, to be called": (ECHO, "def check(candidate):\n    assert candidate(3) == 3\n", "exec", "f"),
    "check, called already": (
        ECHO,
        "n = []\ndef check(candidate):\n    n.append(1)\n    assert len(n) == 1\n\ncheck(f)\n",
        "exec",
        "f",
    ),
    "types kept": (
        "def f(x):\n    return x\ndef names(x):\n    return type(x).__name__\n",
        "import collections, datetime, decimal, fractions, math\n"
        "values = [None, True, 1, -(10 ** 3000), 1.5, 'e\\u0301\\0', b'\\xff', bytearray(b'1'), 3j, (1, "
        "(2,)), {1, 2},\n"
        "    frozenset({(1, 2)}), {(1, 2): [3], None: {}}, range(3, 9, 2),\n"
        "    collections.Counter('aab'), collections.deque([1]), collections.OrderedDict(a=1), "
        "decimal.Decimal('1.10'), fractions.Fraction(1, 3),\n"
        "    datetime.date(2020, 2, 29), datetime.datetime(2020, 2, 29, 1, 2, 3, 4), datetime.timedelta(1, 2, 3),\n"
        "    float('inf'), int, [[[]]], {'list': [1]}, {'dict': 1}]\n"
        "for value in values:\n"
        "    back = f(value)\n"
        "    assert back == value and type(back) is type(value), value\n"
        "    assert names(value) == type(value).__name__\n"
        "assert math.isnan(f(float('nan'))) and math.copysign(1, f(-0.0)) == -1\n",
        "exec",
        "",
    ),
    "arrays": (
        "import numpy as np\ndef f(a):\n    return a * 2\ndef total(a):\n    return a.sum()\n",
        "import numpy as np\nassert np.array_equal(f(np.array([[1, 2], [3, 4]])), [[2, 4], [6, 8]])\n"
        "assert total(np.ones(3)) == 3.0\n",
        "exec",
        "",
    ),
    "arguments changed in place": (
        "def f(a, d, s):\n    a[0].append(1)\n    a.sort(key=len)\n    d['x'] = 1\n    s.clear()\n",
        "inner = [5, 5]\na, d, s = [inner, []], {}, {1}\nf(a, d, s=s)\n"
        "assert (a, d, s) == ([[], [5, 5, 1]], {'x': 1}, set())\n",
        "exec",
        "",
    ),
    "functions of the test's": (
        "def f(g, xs):\n    return sorted(map(g, xs), key=lambda x: -x)\ndef twice(g):\n    return lambda x: g(g(x))\n",
        "assert f(lambda x: x * x, [1, 2]) == [4, 1]\n@twice\ndef add(x):\n    return x + 1\nassert add(3) == 5\n"
        "def bad(x):\n    raise KeyError(x)\n"
        "try:\n    f(bad, [1])\nexcept KeyError:\n    pass\nelse:\n    assert False\n",
        "exec",
        "",
    ),
    "objects of the program's": (
        "class Account:\n    count = 0\n    def __init__(self, owner, *, balance=0):\n"
        "        self.owner, self.balance = owner, balance\n        Account.count += 1\n"
        "    def pay(self, n):\n        if n > self.balance: raise ValueError(f'lacks {n - self.balance}')\n"
        "        self.balance -= n\n        return self\n"
        "    def __eq__(self, other): return isinstance(other, Account) and self.balance == other.balance\n"
        "    def __len__(self): return self.balance\n    def __iter__(self): return iter([self.owner, self.balance])\n"
        "    def __getitem__(self, key): return getattr(self, key)\n    def __repr__(self): return f'<{self.owner}>'\n"
        "    def __lt__(self, other): return self.balance < other.balance\n"
        "    def __add__(self, n): return Account(self.owner, balance=self.balance + n)\n"
        "    def __enter__(self): return self\n    def __exit__(self, *_): self.balance = 0\n"
        "    @property\n    def rich(self): return self.balance > 1000\n"
        "    @staticmethod\n    def none(): return Account('none')\n"
        "class Savings(Account): pass\ndef same(a, b): return a is b\n",
        "a = Account('Ann', balance=70)\n"
        "assert a.owner == 'Ann' and a.pay(20) is a and a.balance == 50 and not a.rich\n"
        "a.balance = 60\n"
        "assert len(a) == 60 and list(a) == ['Ann', 60] and a['owner'] == 'Ann' and repr(a) == '<Ann>'\n"
        "assert a == Account('Bob', balance=60) and a != Account('Bob') and a != 60 and a < Account('B', balance=61)\n"
        "assert isinstance(Savings('Cy'), Account) and not isinstance(a, Savings) and Account.count == 5\n"
        "assert (a + 5).balance == 65 and Account.none().owner == 'none' and same(a, a) and not same(a, a + 0)\n"
        "with a as b:\n    assert b is a\nassert not a.balance and not hasattr(a, 'other')\n"
        "try:\n    a.pay(3)\nexcept ValueError as error:\n    assert str(error) == 'lacks 3'\n"
        "else:\n    assert False\n",
        "exec",
        "",
    ),
    "subclasses of plain types": (
        "import collections, enum\nPoint = collections.namedtuple('Point', 'x y')\n"
        "class Color(enum.Enum):\n    RED = 1\n    BLUE = 2\nclass Level(enum.IntEnum):\n    LOW = 1\n"
        "class Stack(list):\n    def top(self): return self[-1]\n"
        "def f(): return Point(1, 2)\ndef red(): return Color.RED\ndef low(): return Level.LOW\n",
        "p = f()\nassert p == (1, 2) and p.x == 1 and p == Point(1, 2) and p[1] == 2 and hash(p) == hash((1, 2))\n"
        "x, y = p\nassert y == 2 and red() is Color.RED and red() != Color.BLUE and Color['BLUE'].value == 2\n"
        "assert [c.name for c in Color] == ['RED', 'BLUE'] and low() == 1 and low() < 2 and low() + 1 == 2\n"
        "s = Stack([1])\ns.append(3)\nassert s == [1, 3] and s.top() == 3 and 3 in s and len(s) == 2\n",
        "exec",
        "",
    ),
    "generators": (
        "def f(n):\n    for i in range(n):\n        yield i, [i]\n",
        "import itertools\nassert list(f(3)) == [(0, [0]), (1, [1]), (2, [2])]\ng = f(1)\nnext(g)\n"
        "assert next(g, 'end') == 'end'\nassert len(list(itertools.islice(f(10 ** 9), 5))) == 5\n",
        "exec",
        "",
    ),
    "what the program imports": (
        "import math\nfrom typing import List\nfrom collections import Counter\ndef f(x):\n    return Counter(x)\n",
        "def g(x: List[int]): return math.floor(2.5)\nassert g([]) == 2 and f('aa') == Counter('aa')\n",
        "exec",
        "",
    ),
    "unittest": (
        ECHO,
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(f([1]), [1])\n"
        "if __name__ == '__main__':\n    unittest.main()\n",
        "exec",
        "",
    ),
    "a main guard of the program's": (
        ECHO + "if __name__ == '__main__':\n    exit(3)\n",
        "assert f(1) == 1\n",
        "exec",
        "",
    ),
    "output of the program's": (
        "print('loading')\ndef f(x):\n    print(x)\n    return x\n",
        "assert f(1) == 1\n",
        "exec",
        "",
    ),
    "a suite": (
        "class Refused(ValueError):\n    def __init__(self, code): super().__init__(f'code {code}'); self.code = code\n"
        "def f(x):\n    if x < 0: raise Refused(x)\n    return x / 3\n",
        "import pytest\nfrom solution import Refused, f\nimport solution\n"
        "@pytest.fixture\ndef three():\n    yield 3\n"
        "@pytest.mark.parametrize('x, y', [(1, 1 / 3), pytest.param(6, 2)])\n"
        "def test_values(x, y):\n    assert f(x) == pytest.approx(y)\n    assert [f(x)] == pytest.approx([y + 1e-9])\n"
        "class TestMore:\n    def setup_method(self): self.n = 9\n"
        "    def test_fixture(self, three, tmp_path): assert f(self.n) == three and tmp_path.is_dir()\n"
        "    def test_raises(self):\n        with pytest.raises(Refused, match='code -2') as caught:\n"
        "            solution.f(-2)\n        assert caught.value.code == -2 and isinstance(caught.value, ValueError)\n"
        "        pytest.raises(ValueError, f, -1)\n        with pytest.raises(TypeError):\n            f('x')\n"
        "@pytest.mark.skip(reason='broken')\ndef test_skipped(): assert False\n",
        "pytest",
        "",
    ),
    "a star import": (ECHO, "from solution import *\ndef test(): assert f(2) == 2\n", "pytest", ""),
}


@pytest.mark.parametrize("what", PASSES)
def test_a_right_program_passes(judge: Judge, what: str) -> None:
    result = on_script(judge, *PASSES[what])
    assert (result.verdict.value, result.message, result.checker_message) == ("accepted", "", "")


#: name -> (program, script, runner, entry point, verdict, message)
FAILS: dict[str, tuple[str, str, str, str, str, str]] = {
    "an assertion": (ECHO, "assert f(1) == 2\n", "exec", "", "wrong_answer", ""),
    "a list for a tuple": (ECHO, "assert f([1]) == (1,)\n", "exec", "", "wrong_answer", ""),
    "an error of the test's on what it was given": (ECHO, "assert f(None)[0] == 1\n", "exec", "", "wrong_answer", ""),
    "the second test of a suite": (
        ECHO,
        "from solution import f\ndef test_a(): assert f(1) == 1\ndef test_b(): assert f(1) == 2\n",
        "pytest",
        "",
        "wrong_answer",
        "",
    ),
    "near, but not enough": (
        ECHO,
        "import pytest\nfrom solution import f\ndef test(): assert f(1.0) == pytest.approx(1.00001)\n",
        "pytest",
        "",
        "wrong_answer",
        "",
    ),
    "nothing raised": (
        ECHO,
        "import pytest\nfrom solution import f\ndef test():\n    with pytest.raises(ValueError):\n        f(1)\n",
        "pytest",
        "",
        "wrong_answer",
        "",
    ),
    "an exit that says so": (ECHO, "import sys\nsys.exit(f(1) == 1)\n", "exec", "", "wrong_answer", ""),
    "an exception of the program's": (
        "def f(x): return [][x]\n",
        "f(1)\n",
        "exec",
        "",
        "runtime_error",
        "raised IndexError",
    ),
    "an exception while loading": ("1 // 0\n", "f(1)\n", "exec", "", "runtime_error", "raised ZeroDivisionError"),
    "no such function": ("", "def check(c): pass\n", "exec", "f", "runtime_error", "the program defines no f"),
    "no such name": ("", "f(1)\n", "exec", "", "runtime_error", "the program lacks a name that the test uses"),
    "no such import": (
        "",
        "from solution import f\ndef test(): pass\n",
        "pytest",
        "",
        "runtime_error",
        "the program lacks what the test imports from it",
    ),
    "a crash": ("import os\ndef f(x): os.abort()\n", "f(1)\n", "exec", "", "runtime_error", "died of SIGABRT"),
    "a script that does not compile": (
        ECHO,
        "assert f(1) ==\n",
        "exec",
        "",
        "checker_error",
        "the test script does not compile: SyntaxError",
    ),
    "a script that imports what there is not": (
        ECHO,
        "import nowhere\n",
        "exec",
        "",
        "checker_error",
        "the test imports what is not to be had: nowhere",
    ),
    "a fixture that is not covered": (
        ECHO,
        "def test(capsys): pass\n",
        "pytest",
        "",
        "checker_error",
        "the test needs what is not covered: the fixture capsys",
    ),
    "a word of pytest's that is not covered": (
        ECHO,
        "import pytest\ndef test():\n    with pytest.warns(UserWarning): pass\n",
        "pytest",
        "",
        "checker_error",
        "the test needs what is not covered: pytest.warns",
    ),
    "a suite without tests": (
        ECHO,
        "x = 1\n",
        "pytest",
        "",
        "checker_error",
        "the test needs what is not covered: a suite in which no test is run",
    ),
    "an object that cannot cross": (
        ECHO,
        "class Own: pass\nf(Own())\n",
        "exec",
        "",
        "checker_error",
        "the test hands the program an object of its own: Own",
    ),
    "a program replaced by the test": (
        ECHO,
        "import solution\nsolution.f = 1\n",
        "exec",
        "",
        "checker_error",
        "the test replaces names of the program",
    ),
    "a script that ends itself": (ECHO, "import os\nos._exit(5)\n", "exec", "", "checker_error", ""),
}


@pytest.mark.parametrize("what", FAILS)
def test_a_failure_and_whose_it_is(judge: Judge, what: str) -> None:
    source, script, runner, entry_point, verdict, message = FAILS[what]
    result = on_script(judge, source, script, runner, entry_point)
    assert (result.verdict.value, result.message) == (verdict, message), result.checker_message


def test_the_failing_line_is_told_to_those_who_may_see_the_test(judge: Judge) -> None:
    result = on_script(judge, ECHO, "x = 1\nassert f(x) == 2, 'no two'\n")
    assert "assert f(x) == 2" in result.checker_message
    assert result.checker_message.endswith("AssertionError: no two\n")


@pytest.mark.parametrize("language", PYTHONS)
def test_figures_are_the_programs_alone(judge: Judge, language: str) -> None:
    script = "import time\nuntil = time.process_time() + 1\nwhile time.process_time() < until: pass\nassert f(1) == 1\n"
    result = on_script(judge, ECHO, script, language=language, limits=replace(ROOMY, cpu_s=0.5, wall_s=0.8))
    assert result.verdict.value == "accepted"
    assert result.cpu_s is not None
    assert result.cpu_s < 0.4


def test_memory_limit(judge: Judge) -> None:
    result = on_script(judge, "def f(x):\n    a = bytearray(10 ** 9)\n    return len(a)\n", "assert f(1) == 1\n")
    assert result.verdict.value == "memory_limit"


def test_each_test_has_a_program_of_its_own(judge: Judge) -> None:
    source = "n = 0\ndef f():\n    global n\n    n += 1\n    return n\n"
    problem = script_problem("assert f() == 1\nassert f() == 2\n", "assert f() == 1\n")
    judgement = judge.judge(Submission(problem, "python", source.encode(), ROOMY))
    assert [result.verdict.value for result in judgement.tests] == ["accepted", "accepted"]


def test_other_languages_have_no_modules_to_serve(judge: Judge) -> None:
    with pytest.raises(UnknownLanguage, match="script problems are for python"):
        judge.judge(Submission(script_problem("assert f()"), "c", b"int main() {}", ROOMY))


def test_nothing_is_left_open(judge: Judge) -> None:
    on_script(judge, ECHO, "assert f(1) == 1\n")
    before = {one for one in footprint() if one.startswith("descriptor")}
    for script in ("assert f(1) == 1\n", "assert f(1) == 2\n", "f(\n"):
        on_script(judge, ECHO, script)
    assert len({one for one in footprint() if one.startswith("descriptor")}) <= len(before) + 8
