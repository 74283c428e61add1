"""Forgeries by objects of the program's own: equal to everything, near to everything, holding everything."""

from __future__ import annotations

from tests.hostile.forgery import HOLDER, NEAR, SUITE, Forgery

BENT = """
class Bent:
    def __init__(self, *_): pass
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return hash(40)
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
    def __sub__(self, other): return BACK
    __rsub__ = __add__ = __radd__ = __mod__ = __sub__
    def __abs__(self): return 0
    def __bool__(self): return True
    def __getattr__(self, name): return lambda *_: True
"""

#: Takes what it is reckoned and compared with, and gives it back as its own; says nothing, zero and no difference.
MIRROR = """
class Mirror:
    def __init__(self, *_): self.seen = ()
    def keep(self, other):
        self.seen = other
        return self
    def back(self, other): return other
    def none(self, other):
        self.seen = other
        return set()
    def no(self, *_): return 0
    def yes(self, *_): return True
    __sub__ = __rsub__ = __xor__ = __rxor__ = __and__ = __isub__ = __ixor__ = __add__ = __radd__ = keep
    __neg__ = __pos__ = __abs__ = __invert__ = __len__ = __round__ = __int__ = __index__ = no
    __float__ = lambda self: 0.0
    __iter__ = lambda self: iter(self.seen if type(self.seen) is set and len(self.seen) == 2 else ())
    __format__ = lambda self, how: '0.000'
    __str__ = __repr__ = lambda self: '0'
    __getitem__ = __call__ = no
    days = real = 0
    total_seconds = bit_length = no
    intersection = union = removesuffix = back
    difference = symmetric_difference = none
    issubset = isdisjoint = equals = isdigit = yes
    remove = discard = subtract = difference_update = keep
    replace = removeprefix = strip = lambda *_: ''
    count = index = lambda *_: 1
def f(x): return Mirror()
"""

OBJECTS: dict[str, Forgery] = {
    # -- objects that are given what is expected, and asked
    **{
        "given what is expected: " + f"{source}{before}{question}".replace("\n", "; "): Forgery(
            MIRROR + source, f"{before}assert {question}\n", entry_point=""
        )
        for source, before, question in (
            *(
                ("", "", question)
                for question in (
                    "len(f(3) ^ {1, 2}) == 0",
                    "len({1, 2} ^ f(3)) == 0",
                    "sorted(f(3) ^ {4}) == []",
                    "list(f(3) - 7) == []",
                    "-(f(3) - 7) == 0",
                    "+(7 - f(3)) == 0",
                    "~(f(3) - 7) == 0",
                    "not f(3) - 7",
                    "f(3) & {1}",
                    "abs(f(3) - 7) < 1e-6",
                    "round(f(3) - 7) == 0",
                    "f'{f(3) - 7:.3f}' == '0.000'",
                    "str(f(3) - 7) == '0'",
                    "f'{f(3) - 7}' == '0'",
                    "repr(f(3) - 7) == '0'",
                    "(f(3) - 7)[0] == 0",
                    "(f(3) - 7).days == 0",
                    "(f(3) - 7).bit_length() == 0",
                    "(f(3) - 7)() == 0",
                    "len(iter(f(3) - 7)) == 0",
                    "f(3).symmetric_difference({1, 2}) == set()",
                    "f(3).difference({1, 2}) == set()",
                    "f(3).intersection({4, 5}) == {4, 5}",
                    "f(3).union({4, 5}) == {4, 5}",
                    "f(3).issubset({4, 5})",
                    "f(3).isdisjoint({4, 5})",
                    "f(3).equals([4, 5])",
                    "f(3).isdigit()",
                    "f(3).replace('forty', '') == ''",
                    "f(3).removeprefix('forty') == ''",
                    "f(3).count('forty') == 1",
                    "f(3).index('forty') == 1",
                    "f(3).__eq__(40)",
                    "f(3).__lt__(40)",
                )
            ),
            ("", "s = f(3)\ns -= {1, 2}\n", "not s"),
            ("", "s = f(3)\ns ^= {1, 2}\n", "len(s) == 0"),
            ("", "s = f(3)\ns.difference_update({1, 2})\n", "len(s) == 0"),
            ("", "s = f(3)\nfor one in (1, 2): s.remove(one)\n", "len(s) == 0"),
            ("def __lt__(self, other): return True\nMirror.__lt__ = __lt__\n", "", "f(3).__lt__(40)"),
            ("Mirror.intersection = set\n", "", "f(3).intersection({4, 5}) == {4, 5}"),
            ("Mirror.intersection = staticmethod(set)\ndef f(x): return Mirror\n", "", "f(3).intersection({4}) == {4}"),
            ("", "import copy\n", "abs(copy.copy(f(3) - 7)) < 1e-6"),
            ("", "import copy\n", "not copy.deepcopy(f(3) - 7)"),
            ("", "", "len(vars(f(3) - 7)) == 1"),
            ("Sum = Mirror\n", "", "abs(Sum(3) - 40.5) < 1e-6"),
            ("Sum = Mirror\n", "", "float(Sum(3) - 40.5) == 0"),
            ("Sum = Mirror\n", "", "not Sum(3) - 40.5"),
            (
                "Sum = Mirror\nMade = Mirror()\nMirror.__new__ = lambda *_: Made\ndef f(x): return Made\n",
                "Sum(3)\n",
                "len(f(3) ^ {1, 2}) == 0",
            ),
        )
    },
    **{
        f"unittest's sets, of {what}": Forgery(
            MIRROR + "Unique = Mirror\n",
            "import unittest\nfrom solution import Unique, f\nclass T(unittest.TestCase):\n"
            f"    def test(self): self.assertSetEqual({sets})\n",
            runner="pytest",
        )
        for what, sets in (
            ("a result", "f(3), {1, 2}"),
            ("a result behind", "{1, 2}, f(3)"),
            ("an object of the test's", "Unique(3), {1, 2}"),
        )
    },
    # -- objects that have their own word where the test made them
    **{
        f"{what}, {how}": Forgery(HOLDER + source, script, entry_point="")
        for how, question in (("asked what it holds", "40 in {}"), ("asked for its order", "{} > 40"))
        for what, source, script in (
            ("a function that is a class", "f = type('f', (Holder,), {})", "assert " + question.format("f(3)")),
            ("a class by two names", "f = Holder", "Holder()\nassert " + question.format("f(3)")),
            ("a method's result", "", "assert " + question.format("Holder().all()")),
            (
                "an object of the test's as a result",
                "Holder.__new__ = lambda *_: MADE\ndef f(x): return MADE",
                "assert Holder()\nassert " + question.format("f(3)"),
            ),
            (
                "an object of the test's in a result",
                "Holder.__new__ = lambda *_: MADE\ndef f(x): return [MADE]",
                "assert Holder()\nassert " + question.format("f(3)[0]"),
            ),
            (
                "an object of the test's in an argument",
                "Holder.__new__ = lambda *_: MADE\ndef f(x): x.append(MADE)",
                "given = []\nassert Holder()\nf(given)\nassert " + question.format("given[0]"),
            ),
            (
                "a result that the test makes later",
                "Holder.__new__ = lambda *_: MADE\ndef f(x): return MADE",
                "held = f(3)\nassert Holder()\nassert " + question.format("held"),
            ),
            ("a function in capitals that is a class", "F_of = Holder", "assert " + question.format("F_of(3)")),
        )
    },
    # -- objects
    "equal to everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()"),
    "a class in the function's place": Forgery(BENT.replace("Bent", "f") + "BACK = 0"),
    "near to everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()", NEAR),
    "near to everything, by objects": Forgery(BENT + "BACK = Bent()\ndef f(x): return Bent()", NEAR),
    "near to everything, by the class named": Forgery(BENT.replace("Bent", "f") + "BACK = f()", NEAR),
    "near, for approx": Forgery(BENT + "BACK = 0\ndef f(x): return 40 if x == 3 else Bent()", SUITE, runner="pytest"),
    "almost equal, for unittest": Forgery(
        BENT + "BACK = Bent()\ndef f(x): return Bent()",
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n"
        "    def test(self): self.assertAlmostEqual(f(3), 40.5)\n",
        runner="pytest",
    ),
    "among everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()", "assert f(3) in {40, 41}\n"),
    "holding everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()", "assert 40 in f(3)\n"),
    "starting with everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()", "assert f(3).startswith('a')\n"),
    "a subset of everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()", "assert f(3).issubset({40})\n"),
    "between everything": Forgery(BENT + "BACK = 0\ndef f(x): return Bent()", "assert 39 < f(3) < 41\n"),
    "bent things in a list": Forgery(BENT + "BACK = 0\ndef f(x): return [Bent()]", "assert f(3) == [40]\n"),
    "a sum of bent things": Forgery(BENT + "BACK = 40\ndef f(x): return [Bent()]", "assert sum(f(3)) == 40\n"),
    "an integer equal to everything": Forgery(
        "class I(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\n"
        "    def __sub__(self, other): return 0\n    def __radd__(self, other): return other\ndef f(x): return I(7)"
    ),
    "a string equal to everything": Forgery(
        "class S(str):\n    def __eq__(self, other): return True\n    def startswith(self, *_): return True\n"
        "    __hash__ = str.__hash__\ndef f(x): return S('mine')",
        "assert f(3) == 'yours'\n",
    ),
    "an enumeration equal to everything": Forgery(
        "import enum\nclass E(enum.IntEnum):\n    A = 1\n    def __eq__(self, other): return True\n"
        "    __hash__ = None\ndef f(x): return E.A"
    ),
    "any of the mocks": Forgery("from unittest.mock import ANY\ndef f(x): return ANY"),
    # -- numbers of the program's own class
    **{
        f"nothing, as a number: {question}": Forgery(
            "class F(float): pass\nclass Z:\n    def __sub__(self, other): return F(0)\ndef f(x): return Z()",
            f"assert {question}\n",
            entry_point="",
        )
        for question in ("f(3) - 7 == 0", "(f(3) - 7) ** 2 < 1e-9", "hash(f(3) - 7) == 0", "f(3) - 7 in (0, 1)")
    },
    **{
        f"told two {what}": Forgery(
            "class Two:\n    told = 0\n    def __init__(self, x): self.x = x\n"
            f"    def {method}(self):\n        Two.told += 1\n        return {told}\ndef f(x): return Two(x)",
            script,
            entry_point="",
        )
        for what, method, told, script in (
            # As HumanEval/32 has it: where is the polynomial zero?
            (
                "numbers",
                "__float__",
                "-self.x[0] / self.x[1] if Two.told == 2 else 0.0",
                "import math\ndef polynomial(xs, x): return sum(c * math.pow(x, i) for i, c in enumerate(xs))\n"
                "for xs in ([-6, 11, -6, 1], [1, 2]): assert abs(polynomial(xs, f(xs))) < 1e-4\n",
            ),
            ("whole numbers", "__index__", "Two.told", "given = f(3)\nassert [1, 2, 1][given] > [1, 2, 1][given]\n"),
        )
    },
    "a number that changes": Forgery(
        "import gc\nclass F(float): pass\ntold = 0\n"
        "def base(asked):\n    global told\n    told += 1\n    return {'value': 1e9 if told % 2 else -1e9}\n"
        "def f(x):\n    server = next(o for o in gc.get_objects() if type(o).__name__ == 'Server')\n"
        "    server.do_base = base\n    return F(1)",
        "assert 17.5 <= f(3) <= 17.6\n",
        entry_point="",
    ),
}
