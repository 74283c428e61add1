"""Test scripts beside Python programs: what crosses between the two, suites, whose figures are whose."""

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
    "what arguments hold, which others hold too": (
        "def f(x):\n    x[0].append(1)\n    return len(x)\n"
        "def g(x):\n    x['a'].append(1)\n    x['b'] = 2\n"
        "def h(x):\n    x[0].append(1)\n    x.append(3)\n",
        "t = ([], ([], 2))\nassert f(t) == 2 and t == ([1], ([], 2))\nassert f(x=t) == 2 and t[0] == [1, 1]\n"
        "assert f(t[1]) == 2 and t[1] == ([1], 2)\n"
        "d = {'a': []}\na = d['a']\ng(d)\nassert a == [1] and a is d['a'] and d == {'a': [1], 'b': 2}\n"
        "x = [[], (7, [])]\nrow, held = x[0], x[1][1]\nh(x)\n"
        "assert row == [1] and row is x[0] and held is x[1][1] and x == [[1], (7, []), 3]\n",
        "exec",
        "",
    ),
    "arrays": (
        "import numpy as np\ndef f(a):\n    return a * 2\ndef total(a):\n    return a.sum()\n"
        "def doubled(a):\n    a *= 2\n    return a\n",
        "import numpy as np\nassert np.array_equal(f(np.array([[1, 2], [3, 4]])), [[2, 4], [6, 8]])\n"
        "assert total(np.ones(3)) == 3.0\n"
        "a = np.ones((2, 3))\nassert doubled(a) is a and doubled(a=a).tolist() == [[4] * 3] * 2 == a.tolist()\n",
        "exec",
        "",
    ),
    "numbers that are near": (
        ECHO,
        "import math\nimport numpy as np\nfrom numpy import allclose\n"
        "assert np.allclose(f([]), []) and np.allclose(f([1.0]), 1) and allclose(b=1.0, a=f((1, 1))) and not "
        "allclose(f(2), 1)\nassert np.isclose(f(1.0), 1) is np.True_ and math.isclose(f(1.5), 1.5)\n"
        "np.testing.assert_allclose(f([1, 2]), [1, 2])\nnp.testing.assert_equal(f({'a': [1]}), {'a': [1]})\n"
        "np.testing.assert_array_equal(actual=f([]), desired=[])\n",
        "exec",
        "",
    ),
    "what changes with time": (
        "import time\nclass Clock:\n    def __len__(self): return time.monotonic_ns()\n    __int__ = __len__\n"
        "    def __str__(self): return str(len(self))\ndef clock(): return Clock()\n",
        "made, given = Clock(), clock()\n"
        "for read in (len, str): assert read(made) != read(made) and read(given) != read(given)\n"
        "assert int(made) < int(made)\n",
        "exec",
        "",
    ),
    "a function that is timed": (
        "def f(x=3):\n    return x\n",
        "import timeit\nassert f() == 3 and timeit.timeit(f, number=2) < 9\n"
        "assert timeit.timeit(lambda: f(1), number=1) < 9\n"
        "assert timeit.timeit('f(10)', 'from solution import f', number=1) < 9\n"
        "assert min(timeit.repeat(stmt='f(10)', globals=globals(), repeat=2, number=1)) < 9\n",
        "exec",
        "",
    ),
    "an expression found, and evaluated": (
        "def f(n):\n    return '(1 + 3) * max(10, 2)'\n",
        "target = 40\n"
        "def holds(text):\n    found = 1\n    return eval(text) and eval('found + 1') == 2\n"
        "assert eval(f(3)) == 40 and holds(f(3) + ' == target') and eval('holds(f(3))')\n"
        "exec('x = holds')\nassert x is holds\n"
        "assert eval('a', {'a': 5}) == 5 and eval(f(3) + ' - b', {}, {'b': 40}) == 0\n",
        "exec",
        "",
    ),
    "names of modules that are the program's own": (
        "class statistics:\n    def spread(*values):\n        return max(values) - min(values)\n"
        "def bisect(values, one):\n    return values.index(one)\n",
        "assert statistics.spread(1, 5) == 4\nassert bisect([5, 7], 7) == 1\n",
        "exec",
        "",
    ),
    "blocks that are left by an exception": (
        "import contextlib\nclass Own(Exception):\n    pass\n"
        "class Block:\n"
        "    def __init__(self, *kinds):\n        self.kinds = kinds\n        self.left = []\n"
        "    def __enter__(self):\n        return self\n"
        "    def __exit__(self, kind, error, trace):\n"
        "        self.left.append(None if kind is None else (kind.__name__, str(error), type(error) is kind, trace))\n"
        "        return kind is not None and issubclass(kind, self.kinds)\n"
        "@contextlib.contextmanager\ndef quiet():\n"
        "    try:\n        yield 5\n    except ValueError:\n        pass\n"
        "def fail():\n    raise Own('mine')\n"
        "def own():\n    return Block(Own)\n",
        "block = Block(ValueError)\n"
        "with block:\n    raise ValueError('here')\n"
        "with block:\n    pass\n"
        "with own() as other:\n    fail()\n"
        "try:\n    with block:\n        [][5]\nexcept IndexError:\n    pass\n"
        "assert block.left == [('ValueError', 'here', True, None), None, "
        "('IndexError', 'list index out of range', True, None)]\n"
        "assert other.left == [('Own', 'mine', True, None)]\n"
        "with quiet() as five:\n    int('x')\nassert five == 5\n",
        "exec",
        "",
    ),
    "errors that the test makes for the program to keep": (
        "class Quiet:\n    def __enter__(self):\n        return self\n"
        "    def __exit__(self, kind, error, trace):\n        return True\n"
        "def safe(g):\n    try:\n        return g()\n"
        "    except Exception as error:\n        return type(error).__name__\n",
        "def fails():\n    assert False, 'made'\n"
        "def raises():\n    raise AssertionError\n"
        "assert safe(fails) == safe(raises) == 'AssertionError'\nassert safe(lambda: [][5]) == 'IndexError'\n"
        "with Quiet():\n    assert False\n"
        "with Quiet():\n    raise AssertionError\n",
        "exec",
        "",
    ),
    "what was pickled by the test": (
        ECHO,
        "import pickle\nclass Own:\n    pass\n"
        "back = pickle.loads(pickle.dumps([f([1, {2}, (3, b'4')]), Own(), int]))\n"
        "assert back[0] == [1, {2}, (3, b'4')] and type(back[1]) is Own and back[2] is int\n",
        "exec",
        "",
    ),
    "modules and types by the program's import": (
        "import math\nimport numpy as np\nfrom collections import Counter as Count\nfrom typing import Optional\n"
        "def f(x):\n    return Count(x)\n",
        "def g(x: Optional[int]): return math.floor(2.5)\nassert g(1) == 2 and np.sum([1, 2]) == 3\n"
        "assert f('aa') == Count('aa')\n",
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
    "what objects of the test's making hold, and their order": (
        "import functools\nclass Trie:\n    def __init__(self): self.words = set()\n"
        "    def insert(self, word): self.words.add(word)\n"
        "    def __contains__(self, word): return word in self.words\n"
        "@functools.total_ordering\nclass Version:\n    def __init__(self, text): self.parts = text.split('.')\n"
        "    def __eq__(self, other): return self.parts == getattr(other, 'parts', other)\n"
        "    def __lt__(self, other): return self.parts < (other.split('.') if type(other) is str else other.parts)\n",
        "import solution\nt = Trie()\nt.insert('ab')\nassert 'ab' in t and 'b' not in t\n"
        "assert Version('1.2') < '1.3' and '1.3' > Version('1.2') and not Version('1.4') < '1.3'\n"
        "assert Version('1.2') <= Version('1.2') and max(Version('1.1'), Version('1.2')) == Version('1.2')\n"
        "assert 'c' not in solution.Trie()\n",
        "exec",
        "",
    ),
    "what is reckoned from objects of the test's making, and how they compare": (
        "class Vector:\n    def __init__(self, *items): self.items = list(items)\n"
        "    def __mul__(self, n): return Vector(*[n * one for one in self.items])\n"
        "    def __iadd__(self, n):\n        self.items = [one + n for one in self.items]\n        return self\n"
        "    def __neg__(self): return self * -1\n    def __len__(self): return len(self.items)\n"
        "    def __getitem__(self, i): return self.items[i]\n    def __repr__(self): return f'Vector{self.items}'\n"
        "    def __eq__(self, other): return self.items == other.items\n"
        "    def __enter__(self): return self\n    def __exit__(self, *_): pass\n"
        "    def count(self, n): return self.items.count(n)\n    def remove(self, n): self.items.remove(n)\n"
        "    def union(self, other): return set(self.items) | other\n    def startswith(self, n): return self[0] == n\n"
        "    @classmethod\n    def index(cls, n): return n\n"
        "class Result:\n    def __init__(self): self.count, self.index = 3, [2]\n"
        "    def replace(self): return 5\ndef f(): return Result()\n",
        "v = Vector(1, 2)\nw = v * 3\n"
        "assert list(w) == [3, 6] and len(w) == 2 and w[1] == 6 and repr(w) == 'Vector[3, 6]' and w.items == [3, 6]\n"
        "assert list(-(v * 3)) == [-3, -6] and v * 3 == Vector(3, 6) and w.count(6) == 1\n"
        "with v as same:\n    assert same is v\nv += 1\n"
        "assert v and len(v) == 2 and v.count(3) == 1 and v.union({9}) == {2, 3, 9} and v.startswith(2)\n"
        "v.remove(2)\nassert list(v) == [3] and Vector.index(4) == 4\n"
        "assert f().count == 3 and f().index == [2] and f().replace() == 5 and f() and v.__eq__(3) is False\n",
        "exec",
        "",
    ),
    "unittest's sets": (
        ECHO,
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n"
        "    def test(self):\n        self.assertSetEqual(f({1}), {1})\n        self.assertEqual({2}, f({2}))\n"
        "        self.assertRaises(AssertionError, self.assertSetEqual, f({1}), {2})\n",
        "pytest",
        "",
    ),
    "powers of two that share a hash": (
        ECHO,
        "powers = {2 ** n for n in range(0, 14000, 61)} | set(range(100))\nassert f(powers) == powers\n",
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
    "a look without a call": (ECHO, "assert callable(f)\n", "exec", ""),
    **{
        f"a look without a call, of what is imported: {script}": (f"{ECHO}LEVEL = 3\n", script, runner, "")
        for script, runner in (
            ("from solution import f\nassert callable(f)\n", "exec"),
            ("import solution as s\nassert hasattr(s, 'f')\n", "exec"),
            ("from solution import f as g\ndef test(): assert callable(g)\n", "pytest"),
            ("from solution import *\ndef test(): assert LEVEL == 3\n", "pytest"),
            ("def test():\n    import solution\n    assert solution.LEVEL == 3\n", "pytest"),
        )
    },
    "no answer but exceptions": (
        "def f(x):\n    raise ValueError\n",
        "def check(c):\n    try: c(1)\n    except ValueError: pass\n",
        "exec",
        "f",
    ),
    "an end that is said": (ECHO, "import sys\nassert f(1) == 1\nsys.exit()\n", "exec", ""),
    "a star import": (ECHO, "from solution import *\ndef test(): assert f(2) == 2\n", "pytest", ""),
}


@pytest.mark.parametrize("what", PASSES)
def test_a_right_program_passes(judge: Judge, what: str) -> None:
    result = on_script(judge, *PASSES[what])
    assert (result.verdict.value, result.message, result.checker_message) == ("accepted", "", "")


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
