"""Test scripts that end otherwise than well: by which verdict, and whose fault it is."""

from __future__ import annotations

import pytest

from sandbox.judge import Judge
from tests.sandbox.scripting import on_script

pytestmark = pytest.mark.jail

ECHO = "def f(x):\n    return x\n"

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
    **{
        f"a test of nothing: {what}": (
            ECHO,
            script,
            runner,
            "",
            "checker_error",
            "the test ended without a single look at the program",
        )
        for what, script, runner in (
            ("no code", "# nothing\n", "exec"),
            ("a check without an entry point", "def check(c):\n    assert c(2) == 2\n", "exec"),
            ("tests that nobody runs", "def test_f():\n    assert f(2) == 3\n", "exec"),
            ("an exit", "import sys\nsys.exit(0)\n", "exec"),
            ("a suite that tests itself", "import solution\ndef test(): assert 1 + 1 == 2\n", "pytest"),
            ("an import alone", "from solution import f\n", "exec"),
            ("tests imported that nobody runs", "from solution import f\ndef test(): assert f(2) == 3\n", "exec"),
            ("a suite that imports alone", "from solution import f\ndef test(): assert 1 + 1 == 2\n", "pytest"),
            ("a suite that imports all alone", "from solution import *\ndef test(): assert 1 + 1 == 2\n", "pytest"),
            ("a suite whose tests do nothing", "from solution import f as g\ndef test(): f = 1\n", "pytest"),
        )
    },
    "an object that cannot cross": (
        ECHO,
        "class Own: pass\nf(Own())\n",
        "exec",
        "",
        "checker_error",
        "the test hands the program an object of its own: Own",
    ),
    "a class of exceptions that cannot cross": (
        "def f(g, kinds):\n    try: g()\n    except kinds: return 1\n",
        "class Own(Exception): pass\ndef fails(): raise Own\nassert f(fails, (Own,)) == 1\n",
        "exec",
        "",
        "checker_error",
        "the test hands the program a class of exceptions of its own: Own",
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
