"""What a test script can have although the program runs in another cell."""

from __future__ import annotations

import pytest

from sandbox.judge import Judge
from tests.sandbox.scripting import on_script

pytestmark = pytest.mark.jail

POINT = "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n    def twice(self): return 2 * self.x\n"

#: name -> (program, script, runner)
COVERED: dict[str, tuple[str, str, str]] = {
    "what is replaced while the program is not asked": (
        "def f():\n    return 3\n",
        "import contextlib, io\nn = f()\nwith contextlib.redirect_stdout(io.StringIO()) as out:\n    print(n)\n"
        "assert out.getvalue() == '3\\n'\n",
        "exec",
    ),
    "a mock that is no patch": (
        "def f(g):\n    return g(3)\n",
        "from unittest.mock import Mock\ng = Mock(return_value=4)\nassert f(g) == 4\ng.assert_called_once_with(3)\n",
        "exec",
    ),
    "texts that name no file": (
        "def f(text):\n    return text\n",
        "for text in ('', '.', '..', '/', '/tmp', '/usr/bin', 'test.txt', 'a/b', '\\0', '\\ud800', 'x' * 999, '~'):\n"
        "    assert f(text) == text\n",
        "exec",
    ),
    "copies": (
        POINT,
        "import copy, pickle\np = P(1)\nshallow, deep, many = copy.copy(p), copy.deepcopy(p), copy.deepcopy([p, p])\n"
        "assert p == shallow == deep == many[0] == pickle.loads(pickle.dumps(p))\n"
        "assert shallow is not p and deep is not p and many[0] is many[1]\n"
        "p.x, p.y = 2, [3]\nassert (shallow.x, deep.x, many[0].x) == (1, 1, 1)\n"
        "assert (vars(p), vars(deep), p.__dict__['y']) == ({'x': 2, 'y': [3]}, {'x': 1}, [3])\n",
        "exec",
    ),
    "what attributes and items hold, changed by the test": (
        "import asyncio\nLEVELS = []\ndef levels(): return LEVELS\nasync def later(): return 1\n"
        "class Node:\n    def __init__(self, value):\n"
        "        self.value, self.children, self.seen, self.later = value, [], {'at': [[0], {1}]}, [later()]\n"
        "    def depth(self): return 1 + max([child.depth() for child in self.children], default=0)\n"
        "    def __getitem__(self, name): return self.seen[name]\n"
        "    @property\n    def copied(self): return [*self.children]\n",
        "import asyncio, solution\nnodes = [Node(n) for n in range(20)]\n"
        "for above, below in zip(nodes, nodes[1:]): above.children.append(below)\n"
        "top, held = nodes[0], nodes[0].children\n"
        "assert top.depth() == 20 and held is top.children and held[0] is nodes[1]\n"
        "held.append(leaf := Node(-1))\nassert [one.value for one in top.children] == [1, -1]\n"
        "held.remove(nodes[1])\nassert top.depth() == 2 and held == [leaf]\n"
        "top.copied.clear()\nassert top.depth() == 2 and len(top.copied) == 1\n"
        "top.seen['at'][0].append(5)\ntop['at'][1].add(6)\ndel leaf.seen['at']\n"
        "assert (top.seen, top['at'], leaf.seen) == ({'at': [[0, 5], {1, 6}]}, [[0, 5], {1, 6}], {})\n"
        "solution.LEVELS.append(3)\nassert levels() == [3]\n"
        "assert asyncio.run(asyncio.wait_for(top.later[0], 1)) == 1\n",
        "exec",
    ),
    "dicts with defaults": (
        "from collections import defaultdict\ndef f(given):\n    given['b'].append(1)\n"
        "    return defaultdict(int, a=1)\n"
        "def g():\n    return defaultdict(lambda: 3, a=1)\n",
        "from collections import defaultdict\ngiven = defaultdict(list)\nfound = f(given)\n"
        "assert given == {'b': [1]} and given['c'] == [] and found['a'] == 1 and found['z'] == 0\n"
        "assert g() == {'a': 1}\n",
        "exec",
    ),
    "iterators that builtins make": (
        "def f(x):\n"
        "    return map(str, x), zip(x, x), filter(None, x), enumerate(x), reversed(x), iter({1: 2}.items())\n",
        "assert [list(one) for one in f([0, 1])] == [\n"
        "    ['0', '1'], [(0, 0), (1, 1)], [1], [(0, 0), (1, 1)], [1, 0], [(1, 2)]]\n"
        "assert next(f([5])[0]) == '5' and f([1])[1] != [(1, 1)]\n",
        "exec",
    ),
    "integers of any length": (
        "def f(x): return [x * x, -x, {x}]\n",
        "big = 10 ** 5000\nassert f(big) == [big * big, -big, {big}] and f(10 ** 4000 - 1)[1] == 1 - 10 ** 4000\n",
        "exec",
    ),
    "times and zones": (
        "import datetime\ndef f(x): return x + datetime.timedelta(hours=1), x.timetz() == x.time(), x.time()\n",
        "import datetime as d\nhere = d.datetime(2020, 1, 2, 3, tzinfo=d.timezone(d.timedelta(hours=-5, minutes=30)))\n"
        "assert f(here) == (here.replace(hour=4), False, d.time(3)) and f(here)[0].utcoffset() == here.utcoffset()\n"
        "assert f(here.replace(tzinfo=None)) == (d.datetime(2020, 1, 2, 4), True, d.time(3))\n",
        "exec",
    ),
    "what raises hands out, as text": (
        "class E(ValueError): pass\ndef f(): raise E('why not')\n",
        "import pytest\nfrom solution import E, f\ndef test():\n    with pytest.raises(E) as caught: f()\n"
        "    assert 'why not' in str(caught) and str(caught.value) == 'why not'\n",
        "pytest",
    ),
    "classes of exceptions as arguments": (
        "class E(Exception): pass\ndef f(g, kinds):\n    try: return g()\n    except kinds: return 'caught'\n"
        "def fails(): raise E\n",
        "def own(): raise ValueError\n"
        "assert f(fails, E) == f(fails, (KeyError, E)) == f(own, ValueError) == 'caught'\n",
        "exec",
    ),
    "generators": (
        "def f(n): yield from range(n)\n",
        "import inspect, types\nassert isinstance(f(3), types.GeneratorType) and inspect.isgenerator(f(3))\n"
        "assert not inspect.isgenerator(f) and list(f(3)) == [0, 1, 2]\n",
        "exec",
    ),
    "looks at what is the test's own": (
        "def f(x): return x\n",
        "import dataclasses, inspect\n@dataclasses.dataclass\nclass Own:\n    x: int\ndef own(a): return f(a)\n"
        "assert dataclasses.asdict(Own(f(1))) == {'x': 1} and list(inspect.signature(own).parameters) == ['a']\n",
        "exec",
    ),
    "random numbers sown by the test": (
        "import random\nimport numpy as np\ndef f(): return random.random(), float(np.random.rand())\n",
        "import random\nimport numpy as np\nfound = []\n"
        "for n in (5, 5, 6):\n    random.seed(n)\n    np.random.seed(seed=n)\n    found.append(f())\n"
        "random.seed(6)\nassert found[0] == found[1] != found[2] and found[2][0] == random.random()\n",
        "exec",
    ),
    "an argument that comes back": (
        "def f(x, *, more=None):\n    x.sort()\n    return x if more is None else more\n",
        "given, more = [2, 1], {3}\nassert f(given) is given and given == [1, 2] and f([0], more=more) is more\n"
        "assert f([*given]) is not given\n",
        "exec",
    ),
    "iterators of the test's": (
        "def f(items): return [next(items), *items]\ndef g(items): yield from items\n",
        "from itertools import count\nassert f(n for n in [1, 2]) == f(iter([1, 2])) == f(map(int, '12')) == [1, 2]\n"
        "numbers = g(count())\nassert [next(numbers), next(numbers)] == [0, 1]\n",
        "exec",
    ),
    "functions of the test's, called in threads": (
        "from concurrent.futures import ThreadPoolExecutor\ndef f(g, items):\n"
        "    with ThreadPoolExecutor(4) as pool: return list(pool.map(g, items))\n",
        "assert f(lambda n: n * n, range(50)) == [n * n for n in range(50)]\n",
        "exec",
    ),
    "functions of the test's, known again": (
        "class Events:\n    def __init__(self): self.held = []\n"
        "    def on(self, g): self.held.append(g)\n    def off(self, g): self.held.remove(g)\n"
        "    def emit(self, n): return [g(n) for g in self.held]\n"
        "def same(g): return g\ndef tagged(g):\n    g.tag = 'x'\n    return g\n",
        "from unittest.mock import Mock\nclass Own:\n    def call(self, n): return -n\n"
        "events, own, mock = Events(), Own(), Mock(return_value=5)\ndef twice(n): return 2 * n\n"
        "for g in (twice, own.call, mock): events.on(g)\nassert events.emit(1) == [2, -1, 5]\n"
        "events.off(own.call)\nevents.off(twice)\nassert events.emit(1) == [5]\nevents.off(mock)\n"
        "assert not events.held\n"
        "assert same(twice) is twice and same(own.call) == own.call and same(mock)(1) == 5\n"
        "assert tagged(lambda n: n).tag == 'x'\n",
        "exec",
    ),
    "slices and paths": (
        "from pathlib import Path\nclass Row:\n    def __init__(self, *items): self.items = items\n"
        "    def __getitem__(self, at): return self.items[at]\n"
        "def f(path): return Path(path) / 'a'\nclass C:\n    @property\n    def x(self): return 1\n",
        "from pathlib import Path\nassert Row(1, 2, 3)[1:] == (2, 3) and Row(1, 2, 3)[::-1][0] == 3\n"
        "assert f(Path('b')) == f('b') == Path('b/a') and isinstance(C.x, property)\n",
        "exec",
    ),
    "names in texts": (
        "def f(x): return x + 1\ndef g(): return 5\n",
        "for text in ('f(1) == 2', 'f(f(1)) == 3'): assert eval(text), text\n"
        "exec('assert f(2) == 3')\nassert globals()['g']() == 5\n",
        "exec",
    ),
    "what functions and classes are": (
        "import abc, dataclasses\ndef f(a: int, b: str = 'x') -> float:\n    def inner(): return a\n    return inner\n"
        "@dataclasses.dataclass\nclass Point:\n    x: int\n"
        "class Shape(abc.ABC):\n    @abc.abstractmethod\n    def area(self): ...\n",
        "import dataclasses, types\n"
        "assert f.__annotations__ == {'a': int, 'b': str, 'return': float} and f.__defaults__ == ('x',)\n"
        "assert f.__code__.co_argcount == 2 and isinstance(f, types.FunctionType)\n"
        "assert isinstance(f(3), types.FunctionType) and f(3)() == 3 and Point.__annotations__ == {'x': int}\n"
        "assert dataclasses.is_dataclass(Point) and hasattr(Point(1), '__dataclass_fields__')\n"
        "assert not dataclasses.is_dataclass(Shape) and Shape.__abstractmethods__ == {'area'}\n"
        "assert 'area' in dir(Shape) and 'x' in dir(Point(1)) and 'y' not in dir(Point(1))\n",
        "exec",
    ),
    "decorators": (
        "import functools\nclass A:\n    'An a.'\nclass B: pass\n"
        "def counted(g):\n    'Counts.'\n    @functools.wraps(g)\n    def inner(*args):\n        inner.count += 1\n"
        "        return g(*args)\n    inner.count = 0\n    return inner\n",
        "@counted\ndef add(x, y):\n    '''Adds.'''\n    return x + y\n"
        "assert add(1, 2) == 3 and add(2, 2) == 4 and add.count == 2\n"
        "assert add.__name__ == 'add' and add.__doc__ == 'Adds.' and counted.__doc__ == 'Counts.'\n"
        "assert A.__doc__ == A().__doc__ == 'An a.' and B.__doc__ is None\n",
        "exec",
    ),
}


@pytest.mark.parametrize("what", COVERED)
def test_what_is_covered_although_the_program_is_elsewhere(judge: Judge, what: str) -> None:
    result = on_script(judge, *COVERED[what])
    assert (result.verdict.value, result.message, result.checker_message) == ("accepted", "", "")
