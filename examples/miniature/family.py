"""A family of small problems about pairs of numbers, each with a slow program that says what its statement says, and a
fast one that says something else.

    Of all i < j with a[i] and a[j] even and a[i] + a[j] == 17: the sum of j - i.

A problem is a condition on a pair, one on both its numbers, and what is asked of the pairs. The slow program looks at
every pair, in time n^2, and copies the conditions. The fast one goes along the numbers once, and keeps of those it has
passed what their later partners will ask for: which partner that is, and what to keep, it has to work out.

A condition on pairs and a question are together in training problems or in held-out ones, never in both. So a policy
has met all parts of a held-out problem, and has to put them together anew.

Pure: no file, no clock, and of chance only what it is handed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

#: Numbers are from 0 to here.
LARGEST = 20

#: Numbers of a test's input, from shortest to longest. With one or two digits and a space each they come to less than
#: 10, 10^2 and 10^3 bytes.
SIZES = (1, 2, 12, 25, 25, 150, 250)
#: At these the slow program meets the time limit, below 10^4 and 10^5 bytes. A third of the problems has a test of the
#: first, a third one of the second, a third neither, and statements do not say which: R_4 asks for speed in one third,
#: R_inf in two.
MIDDLE, LONG = 2_000, 10_000

#: Conditions on pairs with a question, of 50, that are held out.
HELD_OUT = 10


@dataclass(frozen=True, slots=True)
class Condition:
    """On a pair i < j."""

    text: str
    """In the statement, and in the slow program; `{c}` and `{m}` are constants."""
    wanted: str
    """The fast program's: which number before `x` is its partner, or which slice of numbers."""
    kept: str = "x"
    """Under which key it keeps `x`."""
    is_slice: bool = False
    constants: tuple[range, range] = (range(1), range(1))


@dataclass(frozen=True, slots=True)
class Filter:
    """On both numbers of a pair."""

    words: str
    test: str
    """Of a number `{0}`."""
    constants: range = range(1)


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be printed of the pairs."""

    text: str
    start: str
    """Of the answer `t`."""
    each: str
    """The slow program, for a pair."""
    by_key: tuple[str, ...]
    """The fast program: tables, what `x` adds to the answer, and what is kept of it, by `k`, a number, and `{kept}`."""
    by_slice: tuple[str, ...]
    """The same, by `{wanted}`, a slice of the numbers that may be partners."""


_SUMS, _DIFFERENCES = range(4, 33), range(1, 13)

CONDITIONS = {
    "sum": Condition("a[i] + a[j] == {c}", "{c} - x", constants=(_SUMS, range(1))),
    "rise": Condition("a[j] - a[i] == {c}", "x - {c}", constants=(_DIFFERENCES, range(1))),
    "fall": Condition("a[i] - a[j] == {c}", "x + {c}", constants=(_DIFFERENCES, range(1))),
    "xor": Condition("a[i] ^ a[j] == {c}", "x ^ {c}", constants=(range(1, 16), range(1))),
    "sum-mod": Condition("(a[i] + a[j]) % {m} == {c}", "({c} - x) % {m}", "x % {m}", constants=(range(3), range(3, 8))),
    "rise-mod": Condition(
        "(a[j] - a[i]) % {m} == {c}", "(x - {c}) % {m}", "x % {m}", constants=(range(3), range(3, 8))
    ),
    "less": Condition("a[i] < a[j]", ":x", is_slice=True),
    "more": Condition("a[i] > a[j]", "x + 1:", is_slice=True),
    "sum-less": Condition(
        "a[i] + a[j] < {c}", ":max(0, {c} - x)", is_slice=True, constants=(_SUMS, range(1))
    ),
    "sum-more": Condition(
        "a[i] + a[j] > {c}", "max(0, {c} + 1 - x):", is_slice=True, constants=(_SUMS, range(1))
    ),
}  # fmt: skip

FILTERS = {
    "all": Filter("", ""),
    "even": Filter("a[i] and a[j] even", "{0} % 2 == 0"),
    "odd": Filter("a[i] and a[j] odd", "{0} % 2 == 1"),
    "above": Filter("a[i] and a[j] above {d}", "{0} > {d}", range(2, 8)),
    "below": Filter("a[i] and a[j] below {d}", "{0} < {d}", range(13, 19)),
}

QUESTIONS = {
    "count": Question(
        "their number", "0", "t += 1",
        ("c = {{}}", "t += c.get(k, 0)", "c[{kept}] = c.get({kept}, 0) + 1"),
        ("c = [0] * 21", "t += sum(c[{wanted}])", "c[x] += 1"),
    ),
    "farthest": Question(
        "the largest j - i, or 0", "0", "t = max(t, j - i)",
        ("f = {{}}", "t = max(t, i - f.get(k, i))", "f.setdefault({kept}, i)"),
        ("f = [n] * 21", "t = max(t, i - min(f[{wanted}], default=i))", "f[x] = min(f[x], i)"),
    ),
    "nearest": Question(
        "the smallest j - i, or n", "n", "t = min(t, j - i)",
        ("l = {{}}", "t = min(t, i - l.get(k, i - n))", "l[{kept}] = i"),
        ("l = [-n] * 21", "t = min(t, i - max(l[{wanted}], default=i - n))", "l[x] = i"),
    ),
    "distance": Question(
        "the sum of j - i", "0", "t += j - i",
        ("c = {{}}\ns = {{}}", "t += i * c.get(k, 0) - s.get(k, 0)",
         "c[{kept}] = c.get({kept}, 0) + 1\ns[{kept}] = s.get({kept}, 0) + i"),
        ("c = [0] * 21\ns = [0] * 21", "t += i * sum(c[{wanted}]) - sum(s[{wanted}])", "c[x] += 1\ns[x] += i"),
    ),
    "first": Question(
        "the sum of a[i]", "0", "t += a[i]",
        ("s = {{}}", "t += s.get(k, 0)", "s[{kept}] = s.get({kept}, 0) + x"),
        ("s = [0] * 21", "t += sum(s[{wanted}])", "s[x] += x"),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """A problem but for its constants: names of its parts."""

    condition: str
    filter: str
    question: str


#: What a model of a hundred thousand parameters learns in some hundred steps: programs are short, and few lines differ.
EASY = [
    Shape(condition, "all", question) for condition in ("sum", "rise", "fall", "xor") for question in ("count", "first")
]


def shapes(seed: int) -> tuple[list[Shape], list[Shape]]:
    """All shapes in two parts, in random order: for training, and held out."""
    chance = random.Random(seed)
    held_out = set(chance.sample([*itertools.product(CONDITIONS, QUESTIONS)], HELD_OUT))
    parts: tuple[list[Shape], list[Shape]] = ([], [])
    for names in itertools.product(CONDITIONS, FILTERS, QUESTIONS):
        shape = Shape(*names)
        parts[(shape.condition, shape.question) in held_out].append(shape)
    for part in parts:
        chance.shuffle(part)
    return parts


@dataclass(frozen=True, slots=True)
class Problem:
    """One of the family."""

    shape: Shape
    c: int
    m: int
    d: int

    @staticmethod
    def drawn(shape: Shape, chance: random.Random) -> Problem:
        """With constants that are drawn, such that there are pairs: no two even numbers have an odd sum."""
        constants = (*CONDITIONS[shape.condition].constants, FILTERS[shape.filter].constants)
        while True:
            problem = Problem(shape, *map(chance.choice, constants))
            if problem._has_pairs():
                return problem

    @property
    def key(self) -> str:
        shape = self.shape
        return f"{shape.condition}-{shape.filter}-{shape.question}-{self.c}-{self.m}-{self.d}"

    @property
    def statement(self) -> str:
        words = FILTERS[self.shape.filter].words
        both = f"{words} and {self._condition.text}" if words else self._condition.text
        return self._filled(f"Of all i < j with {both}: {self._question.text}.")

    @property
    def slow(self) -> str:
        """A program that looks at every pair."""
        return self._filled(
            _READ
            + f"t = {self._question.start}\n"
            + "for i in range(n):\n"
            + "    for j in range(i + 1, n):\n"
            + f"        if {self._tests}:\n"
            + f"            {self._question.each}\n"
            + "print(t)\n"
        )

    @property
    def fast(self) -> str:
        """A program that looks at every number once."""
        condition = self._condition
        wanted = self._filled(condition.wanted)
        lines = self._question.by_slice if condition.is_slice else self._question.by_key
        tables, asked, kept = (
            line.format(wanted=wanted, kept=self._filled(condition.kept)).split("\n") for line in lines
        )
        body = [*([] if condition.is_slice else [f"k = {wanted}"]), *asked, *kept]
        test = FILTERS[self.shape.filter].test
        if test:
            body = [f"if {test.format('x', d=self.d)}:", *(f"    {line}" for line in body)]
        return "".join(
            [
                _READ,
                *(f"{line}\n" for line in tables),
                f"t = {self._question.start}\n",
                "for i, x in enumerate(a):\n",
                *(f"    {line}\n" for line in body),
                "print(t)\n",
            ]
        )

    def inputs(self, chance: random.Random) -> Iterator[str]:
        """Of its tests, from shortest to longest."""
        for size in (*SIZES, *chance.choice([(), (MIDDLE,), (LONG,)])):
            numbers = " ".join(str(chance.randint(0, LARGEST)) for _ in range(size))
            yield f"{size}\n{numbers}\n"

    @property
    def _tests(self) -> str:
        """All that the slow program asks of a pair."""
        test = FILTERS[self.shape.filter].test
        both = [test.format(name, d=self.d) for name in ("a[i]", "a[j]") if test]
        return self._filled(" and ".join([*both, self._condition.text]))

    def _has_pairs(self) -> bool:
        test = compile(self._tests, self.key, "eval")
        numbers = range(LARGEST + 1)
        return any(eval(test, {"a": pair, "i": 0, "j": 1}) for pair in itertools.product(numbers, numbers))

    @property
    def _condition(self) -> Condition:
        return CONDITIONS[self.shape.condition]

    @property
    def _question(self) -> Question:
        return QUESTIONS[self.shape.question]

    def _filled(self, text: str) -> str:
        return text.replace("{c}", str(self.c)).replace("{m}", str(self.m)).replace("{d}", str(self.d))


_READ = "n = int(input())\na = list(map(int, input().split()))\n"
