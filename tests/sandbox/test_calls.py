"""Calling functions of Python programs: finding them, arguments and results, failures and their names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox.checkers.plain import Plain
from sandbox.errors import UnknownLanguage
from sandbox.judge import Judge
from sandbox.problem import Call, Limits, Problem, Submission, Test
from sandbox.stdin import Stdin
from tests.sandbox.calling import PYTHONS, call_problem, called, came_to
from tests.sandbox.cells import MB, ROOMY, footprint

pytestmark = pytest.mark.jail

ACCEPTED = ("accepted", "", "")

both_pythons = pytest.mark.parametrize("language", PYTHONS)


# ---------------------------------------------------------------------------------------------------------------
# Finding the function

FOUND = {
    "a function": ("f", "def f(a, b):\n    return a - b\n"),
    "a lambda": ("f", "f = lambda a, b: a - b\n"),
    "a class's method": ("Solution.f", "class Solution:\n    def f(self, a, b):\n        return a - b\n"),
    "a method of a class of any name": ("Other.f", "class Other:\n    def f(self, a, b):\n        return a - b\n"),
    "a function in place of a method of a class that there is not": ("Solution.f", "def f(a, b):\n    return a - b\n"),
    "a static method": ("Solution.f", "class Solution:\n    @staticmethod\n    def f(a, b):\n        return a - b\n"),
    "a method of Solution by its plain name": ("f", "class Solution:\n    def f(self, a, b):\n        return a - b\n"),
    "the function rather than the method": (
        "f",
        "class Solution:\n    def f(self, a, b):\n        return 0\ndef f(a, b):\n    return a - b\n",
    ),
    "a function in another's clothes": (
        "f",
        "import functools\n@functools.lru_cache(None)\ndef f(a, b):\n    return a - b\n",
    ),
    "a name outside ASCII": ("größe", "def größe(a, b):\n    return a - b\n"),
}


@both_pythons
@pytest.mark.parametrize("what", FOUND)
def test_a_function_is_found(judge: Judge, language: str, what: str) -> None:
    function, source = FOUND[what]
    results = called(judge, language, source, call_problem(([7, 2], 5), ([2, 7], -5), function=function))
    assert [came_to(result) for result in results] == [ACCEPTED, ACCEPTED]


LOST = {
    "no such function": ("f", "def g(x):\n    return x\n", "the program defines no f"),
    "no such class": ("Other.f", "def f(x):\n    return x\n", "the program defines no Other.f"),
    "no such method": ("Solution.f", "class Solution:\n    pass\n", "the program defines no Solution.f"),
    "a name that only the prelude has": ("gcd", "x = 1\n", "the program defines no gcd"),
    "not a function": ("f", "f = 3\n", "raised TypeError"),
    "too many arguments": ("f", "def f():\n    return 1\n", "raised TypeError"),
    "too few arguments": ("f", "def f(x, y):\n    return 1\n", "raised TypeError"),
    "a class that wants arguments": (
        "Solution.f",
        "class Solution:\n    def __init__(self, n):\n        pass\n    def f(self, x):\n        return x\n",
        "raised TypeError",
    ),
    "an exception while loading": ("f", "1 // 0\ndef f(x):\n    return x\n", "raised ZeroDivisionError"),
    "an exception": ("f", "def f(x):\n    return [][x]\n", "raised IndexError"),
    "an exception of the program's own": (
        "f",
        "class Ours(KeyError):\n    pass\ndef f(x):\n    raise Ours(x)\n",
        "raised KeyError",
    ),
    "a group of exceptions": (
        "f",
        "def f(x):\n    raise ExceptionGroup('', [ValueError()])\n",
        "raised ExceptionGroup",
    ),
    "recursion without end": ("f", "def f(x):\n    return f(x)\n", "raised RecursionError"),
    "an exit with a status": ("f", "import sys\ndef f(x):\n    sys.exit(3)\n", "exited with status 3"),
    "an exit with a status of success": ("f", "def f(x):\n    exit(0)\n", "ended without a result"),
    "a signal": ("f", "import os\ndef f(x):\n    os.kill(os.getpid(), 6)\n", "died of SIGABRT"),
}


@both_pythons
@pytest.mark.parametrize("what", LOST)
def test_a_call_that_gives_no_result(judge: Judge, language: str, what: str) -> None:
    function, source, message = LOST[what]
    (result,) = called(judge, language, source, call_problem(([1], 1), function=function, prelude="lcb"))
    assert came_to(result) == ("runtime_error", message, "")


def test_a_failure_shows_the_programs_own_lines_on_stderr(judge: Judge) -> None:
    source = "def g(x):\n    raise ValueError(x)\ndef f(x):\n    return g(x)\n"
    tails = [called(judge, language, source, call_problem(([5], 0)))[0].stderr_tail for language in PYTHONS]
    assert tails[0] == tails[1]
    assert tails[0].decode().splitlines() == [
        "Traceback (most recent call last):",
        '  File "/prog/main.py", line 4, in f',
        "    return g(x)",
        "           ^^^^",
        '  File "/prog/main.py", line 2, in g',
        "    raise ValueError(x)",
        "ValueError: 5",
    ]


@both_pythons
def test_a_source_that_does_not_compile_is_a_compile_error(judge: Judge, language: str) -> None:
    judgement = judge.judge(Submission(call_problem(([1], 1)), language, b"def f(:\n", ROOMY))
    assert judgement.compile is not None
    assert (judgement.compile.ok, judgement.tests) == (False, ())


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_other_languages_are_refused(judge: Judge, language: str) -> None:
    with pytest.raises(UnknownLanguage, match="python, python-exec"):
        judge.judge(Submission(call_problem(([1], 1)), language, b"int main() {}", ROOMY))


# ---------------------------------------------------------------------------------------------------------------
# What a program sees


@both_pythons
def test_each_test_loads_the_program_anew_and_not_as_main(judge: Judge, language: str) -> None:
    source = """
import sys
calls = []
class Solution:
    def __init__(self):
        self.count = 0
    def f(self, x):
        self.count += 1
        calls.append(x)
        return [__name__, __file__, self.count, calls, sys.argv, sys.path[0], sys.modules[__name__].calls is calls]
if __name__ == "__main__":
    raise SystemExit("a main guard ran")
"""
    seen = ["solution", "/prog/main.py", 1]
    rest = [["/prog/main.py"], "/prog", True]
    problem = call_problem(*(([x], [*seen, [x], *rest]) for x in range(3)), function="Solution.f")
    assert [came_to(result) for result in called(judge, language, source, problem)] == [ACCEPTED] * 3


@both_pythons
def test_stdin_is_empty_and_stdout_is_the_programs_own(judge: Judge, language: str) -> None:
    source = """
import sys
print("loading")
def f(x):
    print('{"value":0}')
    return sys.stdin.read() + x
"""
    (result,) = called(judge, language, source, call_problem((["x"], "x")))
    assert came_to(result) == ACCEPTED
    assert result.stdout_tail == b'loading\n{"value":0}\n'
    assert result.output_tail == b'{"value":"x"}'


@both_pythons
def test_nothing_of_the_graders_is_in_sight(judge: Judge, language: str) -> None:
    source = """
import sys, __main__
def f():
    ours = sorted({"call", "zygote", "warden", "wire"} & set(sys.modules))
    return [ours, sorted(name for name in vars(__main__) if name[0] != "_"), "json" in sys.modules]
"""
    assert came_to(*called(judge, language, source, call_problem(([], [[], [], False])))) == ACCEPTED


@both_pythons
def test_modules_that_look_at_their_own_names_work(judge: Judge, language: str) -> None:
    source = """
from __future__ import annotations
import dataclasses, enum, pickle, typing
@dataclasses.dataclass
class Point:
    x: int
class Colour(enum.Enum):
    RED = 1
def f(x: int) -> int:
    hints = typing.get_type_hints(Point)
    return [pickle.loads(pickle.dumps(Point(x))) == Point(x), hints["x"] is int, repr(Colour.RED)]
"""
    assert came_to(*called(judge, language, source, call_problem(([1], [True, True, "<Colour.RED: 1>"])))) == ACCEPTED


# ---------------------------------------------------------------------------------------------------------------
# Arguments and results

PASSED_ON = [
    None,
    True,
    False,
    0,
    -1,
    10**18,
    10**300,
    0.1,
    -2.5e-7,
    1e22,
    5e-324,
    "",
    'a"b\\c\nd\u0000e',
    "grün 漢字 \U0001f600",
    [],
    [[]],
    [1, [2.0, ["three", None]], True],
    {},
    {"a": {"b": [1]}, "": 0},
]


@both_pythons
def test_plain_data_goes_in_and_comes_out_as_it_was(judge: Judge, language: str) -> None:
    problem = call_problem(*(([value], value) for value in PASSED_ON))
    source = "def f(x):\n    return x\n"
    assert [came_to(result) for result in called(judge, language, source, problem)] == [ACCEPTED] * len(PASSED_ON)


RETURNED = {
    "a tuple": ("(1, (2, 3))", [1, [2, 3]]),
    "keys of every kind": (
        "{1: 'a', 2.5: 'b', 'c': 'd', None: 'e', False: 'f', __import__('enum').IntEnum('E', 'A B').B: 'g'}",
        {"1": "a", "2.5": "b", "c": "d", "null": "e", "false": "f", "2": "g"},
    ),
    "a defaultdict": ("__import__('collections').defaultdict(list, {'a': [1]})", {"a": [1]}),
    "a Counter": ("__import__('collections').Counter('aab')", {"a": 2, "b": 1}),
    "a namedtuple": ("__import__('collections').namedtuple('P', 'x y')(1, 2)", [1, 2]),
    "an IntEnum's member": ("__import__('enum').IntEnum('E', 'A B').B", 2),
    "a string of a subclass": ("type('S', (str,), {})('text')", "text"),
    "a float of a subclass": ("type('F', (float,), {})(0.5)", 0.5),
    "a list of a subclass": ("type('L', (list,), {'__iter__': None, '__len__': None})([1, 2])", [1, 2]),
    "numpy's scalars": (
        "(lambda n: [n.int64(3), n.float64(0.5), n.float32(0.25), n.bool_(True), n.str_('s'), {n.int8(1): 2}])"
        "(__import__('numpy'))",
        [3, 0.5, 0.25, True, "s", {"1": 2}],
    ),
    "one list twice": ("(lambda one: [one, one])([1])", [[1], [1]]),
}


@both_pythons
@pytest.mark.parametrize("what", RETURNED)
def test_what_counts_as_plain_data(judge: Judge, language: str, what: str) -> None:
    expression, expected = RETURNED[what]
    source = f"def f():\n    return {expression}\n"
    assert came_to(*called(judge, language, source, call_problem(([], expected)))) == ACCEPTED


NOT_PLAIN = {
    "a set": ("{1}", "set"),
    "bytes": ("b'x'", "bytes"),
    "a complex number": ("1j", "complex"),
    "a generator": ("(i for i in [1])", "generator"),
    "a dict's view": ("{}.keys()", "dict_keys"),
    "a fraction": ("__import__('fractions').Fraction(1)", "fractions.Fraction"),
    "an object of the program's": ("type('Thing', (), {})()", "Thing"),
    "a numpy array": ("__import__('numpy').zeros(2)", "numpy.ndarray"),
    "a numpy scalar that is no number of Python's": ("__import__('numpy').complex64(1)", "numpy.complex64"),
    "a set within": ("[1, [2, {3}]]", "set"),
    "keys that are tuples": ("{(1, 2): 3}", "dict with keys of type tuple"),
    "keys that JSON writes alike": ("{1: 'a', '1': 'b'}", "dict with two keys that JSON writes alike"),
    "itself": ("(lambda one: one.append(one) or one)([])", "list nested more than 200 deep"),
}


@both_pythons
@pytest.mark.parametrize("what", NOT_PLAIN)
def test_anything_else_is_a_wrong_answer_that_says_what_it_was(judge: Judge, language: str, what: str) -> None:
    expression, said = NOT_PLAIN[what]
    source = f"def f():\n    return {expression}\n"
    (result,) = called(judge, language, source, call_problem(([], [1])))
    assert came_to(result) == ("wrong_answer", "", f"returned no plain data: {said}")


@both_pythons
def test_numbers_that_are_not_finite_equal_nothing(judge: Judge, language: str) -> None:
    source = "def f(word):\n    return float(word)\n"
    problem = call_problem(*(([word], 0.0) for word in ("nan", "inf", "-inf")), checker=Plain(float_absolute=1e300))
    assert [came_to(result) for result in called(judge, language, source, problem)] == [
        ("wrong_answer", "", "NaN in place of 0.0"),
        ("wrong_answer", "", "Infinity in place of 0.0"),
        ("wrong_answer", "", "-Infinity in place of 0.0"),
    ]


@both_pythons
def test_integers_may_have_any_number_of_digits(judge: Judge, language: str) -> None:
    """On the channel: to the program itself the interpreter's own limit applies, as it would anywhere."""
    digits = "7" * 20_000
    text = f"[{digits}]".encode()
    tests = (
        Test(0, None, len(text), Stdin(text), digits.encode()),
        Test(1, None, len(text), Stdin(text), (digits[:-1] + "8").encode()),
    )
    problem = Problem(tests, Plain(), call=Call("f", "none"))
    source = "def f(x):\n    try:\n        str(x)\n    except ValueError:\n        return x\n"
    results = called(judge, language, source, problem)
    assert [result.verdict.value for result in results] == ["accepted", "wrong_answer"]


@both_pythons
def test_a_large_result_is_its_output_and_not_its_memory(judge: Judge, language: str) -> None:
    source = "def f(n):\n    return ['x' * 1024] * n\n"
    limits = replace(ROOMY, memory_bytes=192 * MB, output_bytes=24 * MB)
    problem = call_problem(([20_000], ["x" * 1024] * 20_000), ([30_000], []))
    fits, floods = called(judge, language, source, problem, limits)
    assert came_to(fits) == ACCEPTED
    assert came_to(floods) == ("output_limit", "wrote more than 24 MiB", "")


@both_pythons
def test_limits_hold_for_calls(judge: Judge, language: str) -> None:
    source = """
import time
def f(what):
    if what == "spin":
        while True: pass
    if what == "sleep":
        time.sleep(60)
    return [0] * 10**8
"""
    limits = Limits(cpu_s=0.5, wall_s=1.5, memory_bytes=64 * MB, output_bytes=MB)
    results = called(judge, language, source, call_problem(([""], 0), (["spin"], 0), (["sleep"], 0)), limits)
    assert [result.verdict.value for result in results] == ["memory_limit", "time_limit", "idle"]


# ---------------------------------------------------------------------------------------------------------------
# The judge


def test_exit_status_and_result(judge: Judge) -> None:
    """A status other than 0 fails a run, unless the problem ignores it; a result there must be."""
    source = """
import os
def f(hand_out):
    if hand_out:
        os.write(5, b'{"value":1}')
    os._exit(3)
"""
    problem = call_problem(([True], 1), ([False], 1))
    strict = called(judge, "python", source, problem)
    ignored = called(judge, "python", source, replace(problem, ignore_exit_code=True))
    assert [came_to(result) for result in strict] == [("runtime_error", "exited with status 3", "")] * 2
    assert [came_to(result) for result in ignored] == [ACCEPTED, ("runtime_error", "ended without a result", "")]


def test_calls_leave_nothing_behind(judge: Judge) -> None:
    problem = call_problem(*(([n], n) for n in range(5)))
    called(judge, "python", "def f(x):\n    return x\n", problem)
    before = {item for item in footprint() if item.startswith("descriptor")}
    for language in PYTHONS:
        called(judge, language, "def f(x):\n    return x\n", problem)
    after = {item for item in footprint() if item.startswith("descriptor")}
    # Cells on their way out hold two descriptors each; runs and results none.
    assert len(after) - len(before) <= 4
