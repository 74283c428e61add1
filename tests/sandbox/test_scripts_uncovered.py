"""What a test script cannot have where the program runs in another cell: named, rather than laid to a right program."""

from __future__ import annotations

import pytest

from sandbox.judge import Judge
from tests.sandbox.scripting import on_script

pytestmark = pytest.mark.jail

ASKS = "def f():\n    return int(input())\n"
TELLS = "def f():\n    print('told')\n"
READS = "def f(path):\n    with open(path) as file:\n        return file.read()\n"
WRITES = "def f(path):\n    with open(path, 'w') as file:\n        file.write('1')\n"

#: name -> (program, script, runner, what is not covered); each program is right.
UNCOVERED: dict[str, tuple[str, str, str, str]] = {
    "stdout taken": (
        TELLS,
        "import contextlib, io\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n    f()\n"
        "assert out.getvalue() == 'told\\n'\n",
        "exec",
        "sys.stdout of its own for the program",
    ),
    "stdin given": (
        ASKS,
        "import io, sys\nfrom solution import f\ndef test():\n    sys.stdin = io.StringIO('3')\n    assert f() == 3\n",
        "pytest",
        "sys.stdin of its own for the program",
    ),
    "a builtin replaced": (
        ASKS,
        "import builtins\nbuiltins.input = lambda: '3'\nassert f() == 3\n",
        "exec",
        "builtins.input of its own for the program",
    ),
    "a patch": (
        ASKS,
        "from unittest.mock import patch\nfrom solution import f\n"
        "def test():\n    with patch('builtins.input', return_value='3'):\n        assert f() == 3\n",
        "pytest",
        "unittest.mock.patch",
    ),
    "a patch by decorator, of unittest": (
        ASKS,
        "import unittest\nfrom unittest import mock\nclass T(unittest.TestCase):\n"
        "    @mock.patch('builtins.input', return_value='3')\n    def test(self, _): self.assertEqual(f(), 3)\n"
        "if __name__ == '__main__':\n    unittest.main()\n",
        "exec",
        "unittest.mock.patch",
    ),
    "a patched dict": (
        "import os\ndef f():\n    return os.environ['N']\n",
        "import os\nfrom unittest.mock import patch\nfrom solution import f\n"
        "@patch.dict(os.environ, {'N': '3'})\ndef test(): assert f() == '3'\n",
        "pytest",
        "unittest.mock.patch",
    ),
    "a file to be read": (
        READS,
        "from solution import f\ndef test(tmp_path):\n    path = tmp_path / 'given'\n    path.write_text('1')\n"
        "    assert f(str(path)) == '1'\n",
        "pytest",
        "files of its own for the program",
    ),
    "a file to be read, by its path": (
        READS,
        "from solution import f\ndef test(tmp_path):\n    path = tmp_path / 'given'\n    path.write_text('1')\n"
        "    assert f(path) == '1'\n",
        "pytest",
        "files of its own for the program",
    ),
    "a file beside the test": (
        READS,
        "open('given', 'w').write('1')\nassert f(path='given') == '1'\n",
        "exec",
        "files of its own for the program",
    ),
    "a file to be written": (
        WRITES,
        "from solution import f\ndef test(tmp_path):\n    path = f'{tmp_path}/made'\n    f(path)\n"
        "    assert open(path).read() == '1'\n",
        "pytest",
        "files of its own for the program",
    ),
    "a file of the program's": (
        WRITES,
        "f('made')\nassert open('made').read() == '1'\n",
        "exec",
        "files of the program's",
    ),
}

POINT = "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n    def twice(self): return 2 * self.x\n"
LOOKS = {
    "inspect.isfunction": "inspect.isfunction(P(1).twice) or inspect.ismethod(P(1).twice)",
    "inspect.signature": "list(inspect.signature(P).parameters) == ['x']",
    "inspect.getsource": "'2 *' in inspect.getsource(P)",
    "dataclasses.asdict": "dataclasses.asdict(P(1)) == {'x': 1}",
    "dataclasses.replace": "dataclasses.replace(P(1), x=2).x == 2",
}
UNCOVERED |= {
    name: (POINT, f"import dataclasses, inspect\nassert {look}\n", "exec", f"{name} of the program's")
    for name, look in LOOKS.items()
} | {
    "what the test logs": (
        "import logging\ndef f(): logging.getLogger('f').warning('told')\n",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
        "        with self.assertLogs('f') as seen: f()\n        assert 'told' in seen.output[0]\nunittest.main()\n",
        "exec",
        "assertLogs of the program's",
    ),
    "warnings taken": (
        "import warnings\ndef f(): warnings.warn('told')\n",
        "import warnings\nwith warnings.catch_warnings(record=True) as seen: f()\nassert len(seen) == 1\n",
        "exec",
        "a hook for warnings of its own for the program",
    ),
    "warnings made errors": (
        "import warnings\ndef f(): warnings.warn('told')\n",
        "import warnings\nwarnings.simplefilter('error')\ntry: f()\nexcept UserWarning: pass\nelse: assert False\n",
        "exec",
        "a filter that makes warnings errors of its own for the program",
    ),
    "an environment": (
        "import os\ndef f(): return os.environ['N']\n",
        "import os\nos.environ['N'] = '3'\nassert f() == '3'\n",
        "exec",
        "os.environ of its own for the program",
    ),
    "arguments of a command line": (
        "import sys\ndef f(): return sys.argv[1]\n",
        "import sys\nsys.argv[1:] = ['3']\nassert f() == '3'\n",
        "exec",
        "sys.argv of its own for the program",
    ),
    "the program loaded anew": (
        "n = []\ndef f():\n    n.append(1)\n    return len(n)\n",
        "import importlib, solution\nassert solution.f() == 1\nimportlib.reload(solution)\nassert solution.f() == 1\n",
        "exec",
        "the program, loaded anew",
    ),
    "async with": (
        "class C:\n    async def __aenter__(self): return 1\n    async def __aexit__(self, *_): pass\n",
        "import asyncio\nasync def enter():\n    async with C() as one: return one\nassert asyncio.run(enter()) == 1\n",
        "exec",
        "async with and async for on the program's objects",
    ),
    "async for": (
        "async def f():\n    yield 1\n",
        "import asyncio\nasync def ones(): return [one async for one in f()]\nassert asyncio.run(ones()) == [1]\n",
        "exec",
        "async with and async for on the program's objects",
    ),
    "a class made from the program's": (
        "class Shape:\n    def double(self): return 2 * self.area()\n",
        "from solution import Shape\nclass Square(Shape):\n    def area(self): return 4\n"
        "def test(): assert Square().double() == 8\n",
        "pytest",
        "classes of its own, made from the program's",
    ),
}


@pytest.mark.parametrize("what", UNCOVERED)
def test_no_right_program_is_wrong_for_what_is_not_covered(judge: Judge, what: str) -> None:
    source, script, runner, lacks = UNCOVERED[what]
    result = on_script(judge, source, script, runner)
    assert (result.verdict.value, result.message) == (
        "checker_error",
        f"the test needs what is not covered: {lacks}",
    ), result.checker_message


def test_a_name_that_a_suite_does_not_import_is_no_fault_of_the_programs(judge: Judge) -> None:
    result = on_script(judge, READS, "def test(): assert f('x') == 1\n", "pytest")
    assert (result.verdict.value, result.message) == (
        "checker_error",
        "the test uses a name of the program's that it does not import",
    )
