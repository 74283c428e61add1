"""Coroutines of a program that runs in another cell than its test script: awaited as its own, and never an answer."""

from __future__ import annotations

import pytest

from sandbox.judge import Judge
from tests.sandbox.scripting import on_script

pytestmark = pytest.mark.jail

#: name -> (program, script, runner)
AWAITED: dict[str, tuple[str, str, str]] = {
    "coroutines": (
        "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    if x < 0: raise ValueError\n    return [x]\n"
        "class A:\n    async def f(self, x):\n        return await f(x)\n",
        "import asyncio\nfrom solution import A, f\nimport pytest\n"
        "def test():\n    assert asyncio.run(f(3)) == [3] and asyncio.run(A().f(4)) == [4]\n"
        "    async def both(): return await asyncio.gather(f(1), f(2))\n"
        "    assert asyncio.run(both()) == [[1], [2]]\n"
        "    with pytest.raises(ValueError):\n        asyncio.run(f(-1))\n",
        "pytest",
    ),
    "async tests": (
        "async def f(x):\n    return x\n",
        "import pytest, unittest\nfrom solution import f\n"
        "@pytest.mark.asyncio\nasync def test_marked(): assert await f(3) == 3\n"
        "class TestMore:\n    async def test_method(self): assert await f([]) == []\n"
        "class T(unittest.IsolatedAsyncioTestCase):\n"
        "    async def test(self): self.assertEqual(await f(3), 3)\n",
        "pytest",
    ),
}


@pytest.mark.parametrize("what", AWAITED)
def test_coroutines_are_awaited_although_the_program_is_elsewhere(judge: Judge, what: str) -> None:
    result = on_script(judge, *AWAITED[what])
    assert (result.verdict.value, result.message, result.checker_message) == ("accepted", "", "")


def test_an_async_test_that_fails_fails(judge: Judge) -> None:
    script = "from solution import f\nasync def test(): assert await f(3) == 40\n"
    assert on_script(judge, "async def f(x): return 39\n", script, "pytest").verdict.value == "wrong_answer"


@pytest.mark.parametrize(
    ("source", "script"),
    [
        ("async def f(x): return 39\n", "assert f(3) == 40\n"),
        (
            "async def f(x): return 39\n",
            "import unittest\nclass T(unittest.IsolatedAsyncioTestCase):\n"
            "    async def test(self): assert await f(3) == 40\nunittest.main()\n",
        ),
        ("async def f(x): return 39\n", "import asyncio\nassert asyncio.run(f(3)) == 40\n"),
        ("async def g(): return 0\ndef f(x): return g()\n", "assert abs(f(3) - 40) < 1e-6\n"),
        ("async def g(): return 0\ndef f(x): return g()\n", "assert not f(3)\n"),
        ("async def g(): return 0\ndef f(x): return g()\n", "assert 40 in f(3)\n"),
        ("async def g(): return 0\ndef f(x): return g()\n", "assert len(f(3)) == 40\n"),
    ],
)
def test_a_coroutine_is_nothing_that_is_expected(judge: Judge, source: str, script: str) -> None:
    assert on_script(judge, source, script).verdict.value == "wrong_answer"
