"""The text checkers: what each calls equal, against plain references, and what it says."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from decimal import Decimal

import pytest

from sandbox.checkers import Checker, Exact, Lcb, Lines, Tokens
from sandbox.errors import CheckerRefused
from sandbox.verdicts import Verdict
from tests.sandbox import references
from tests.sandbox.references import BOM


def accepts(checker: Checker, output: bytes, expected: bytes) -> bool:
    outcome = checker.check(memoryview(output), expected)
    assert outcome.verdict in (Verdict.ACCEPTED, Verdict.WRONG_ANSWER)
    assert (outcome.verdict is Verdict.ACCEPTED) == (outcome.message == "")
    return outcome.verdict is Verdict.ACCEPTED


@pytest.mark.parametrize(
    ("output", "expected", "equal"),
    [
        (b"", b"", True),
        (b" \n\t", b"", True),
        (b"", b"x", False),
        (b"x", b"", False),
        (b"1\n2\r\n3", b"1 2 3\n", True),
        (b"\x0b1\x0c2\x0b", b"1 2", True),
        (b"12", b"1 2", False),
        (b"1 2", b"12", False),
        (b"1 2 3", b"1 2", False),
        (b"1 2", b"1 2 3", False),
        (b"Yes", b"YES", False),
        (b"01", b"1", False),
        (b"1.0", b"1", False),
        (b"a\x00b\x00", b"a\x00b\x00\n", True),
        (b"a\x00b", b"a b", False),
        (b"\xff\xfe \x80", b"\xff\xfe\n\x80", True),
        (b"\xff", b"\xfe", False),
        (b"a\xa0b", b"a b", False),
        ("a\u00a0b".encode(), b"a b", False),
        (b"1\x1c2", b"1 2", False),
        (BOM + b"1", b"1", True),
        (b"1", BOM + b"1\n", True),
        (BOM + BOM + b"1", b"1", False),
        (b"1 " + BOM, b"1", False),
    ],
)
def test_tokens(output: bytes, expected: bytes, equal: bool) -> None:
    assert accepts(Tokens(), output, expected) is equal


@pytest.mark.parametrize(
    ("output", "expected", "equal"),
    [
        (b"yes\nNO", b"YES no", True),
        (b"yes", b"yess", False),
        # Only ASCII letters have case.
        ("é".encode(), "É".encode(), False),
        (b"1.0", b"1", False),
    ],
)
def test_tokens_ignoring_case(output: bytes, expected: bytes, equal: bool) -> None:
    assert accepts(Tokens(case_sensitive=False), output, expected) is equal


@pytest.mark.parametrize(
    ("output", "expected", "equal"),
    [
        (b"1", b"1.0", True),
        (b"1.000001", b"1", True),
        (b"1.0000010000001", b"1", False),
        (b"0.999999", b"1", True),
        (b"1e0 +1 .1e1 1.", b"1 1 1 1", True),
        (b"-0", b"0", True),
        (b"0.5 x", b"0.50 x", True),
        (b"Case #1: 0.5", b"Case #1: 0.50", True),
        (b"case #1: 0.5", b"Case #1: 0.50", False),
        (b"x", b"0.5", False),
        (b"0.5", b"x", False),
        # What is no finite ASCII decimal number is text.
        (b"nan", b"nan", True),
        (b"nan", b"NaN", False),
        (b"inf", b"infinity", False),
        (b"1", b"inf", False),
        (b"inf", b"1", False),
        (b"1e999", b"1e998", False),
        (b"1e999", b"1e999", True),
        (b"1", b"1e999", False),
        (b"1e999", b"1", False),
        (b"1_000", b"1000", False),
        (b"0x10", b"16", False),
        ("\u0661".encode(), b"1", False),
        (b"1e", b"1", False),
        (b"--1", b"1", False),
        (b"1e-99999999999999999999", b"0", True),
        # More digits than a double has.
        (b"1234567890123456789", b"1234567890123456788", False),
        (b"1234567890123456789.0", b"1234567890123456789", True),
        (b"0." + b"3" * 5000, b"0.33333333", True),
        (b"1" + b"0" * 70_000, b"1" + b"0" * 69_999, False),
        (b"1.0 2", b"1 2 3", False),
        (b"1.0 2 3", b"1 2", False),
    ],
)
def test_tokens_within_absolute_tolerance(output: bytes, expected: bytes, equal: bool) -> None:
    assert accepts(Tokens(float_absolute=1e-6), output, expected) is equal


@pytest.mark.parametrize(
    ("absolute", "relative", "output", "expected", "equal"),
    [
        (None, 1e-6, b"1000001", b"1000000", True),
        (None, 1e-6, b"1000001.1", b"1000000", False),
        (None, 1e-6, b"1000000", b"1000001", True),
        (None, 1e-6, b"0.0000001", b"0", False),
        (1e-6, 1e-6, b"0.0000001", b"0", True),
        (1e-6, 1e-6, b"1000001", b"1000000", True),
        (0.0, None, b"1.00", b"1", True),
        (0.0, None, b"1.00000000000000000001", b"1", False),
        (0.0, 0.0, b"0.1", b"1e-1", True),
        (None, 10.0, b"5", b"1e308", True),
        (1e308, None, b"-1e308", b"1.7e308", False),
    ],
)
def test_tolerances_stand_alone_or_together(
    absolute: float | None, relative: float | None, output: bytes, expected: bytes, equal: bool
) -> None:
    checker = Tokens(float_absolute=absolute, float_relative=relative)
    assert accepts(checker, output, expected) is equal


def test_case_and_tolerance_together() -> None:
    assert accepts(Tokens(case_sensitive=False, float_absolute=0.1), b"yes 1.05 NAN", b"YES 1 nan")


@pytest.mark.parametrize("tolerance", [-1e-9, float("nan"), float("inf")])
def test_senseless_tolerances_are_refused(tolerance: float) -> None:
    with pytest.raises(CheckerRefused):
        Tokens(float_absolute=tolerance)
    with pytest.raises(CheckerRefused):
        Tokens(float_relative=tolerance)


@pytest.mark.parametrize(
    ("output", "expected", "equal"),
    [
        (b"", b"", True),
        (b"", b"\n", False),
        (b"a", b"a\n", False),
        (b"a\r\n", b"a\n", False),
        (BOM + b"a", b"a", False),
        (b"\x00\xff\n", b"\x00\xff\n", True),
        (b"ab", b"ac", False),
    ],
)
def test_exact(output: bytes, expected: bytes, equal: bool) -> None:
    assert accepts(Exact(), output, expected) is equal


@pytest.mark.parametrize(
    ("output", "expected", "equal"),
    [
        (b"", b"", True),
        (b"\n \r\n\t", b"", True),
        (b"a \t\r\nb\x0b\n\n\n", b"a\nb", True),
        (b"a\nb", b"a\r\nb\r\n", True),
        (b" a", b"a", False),
        (b"a  b", b"a b", False),
        (b"a\tb", b"a b", False),
        (b"a\rb", b"a\nb", False),
        (b"a\n\nb", b"a\nb", False),
        (b"\na", b"a", False),
        (b" \na", b"\na", True),
        (b"a\n \nb", b"a\n\nb", True),
        (b"a\xff \nb", b"a\xff\nb", True),
        (b"a\x00\nb", b"a\nb", False),
        (BOM + b"a", b"a", True),
        (b"a\nb\nc", b"a\nb", False),
        (b"a\nb", b"a\nb\nc", False),
        (b"A", b"a", False),
    ],
)
def test_lines(output: bytes, expected: bytes, equal: bool) -> None:
    assert accepts(Lines(), output, expected) is equal


@pytest.mark.parametrize(
    ("output", "expected", "equal"),
    [
        (b"", b"", True),
        (b"\n\n", b" ", True),
        (b"", b"0", False),
        (b"\n 1 \r\n\t2\n\n", b"1\n2", True),
        (b"1\n\n2", b"1\n2", False),
        (b"1\n \n2", b"1\n\n2", True),
        (b"1 2", b"1\n2", False),
        (b"a  b", b"a b", False),
        (b"1  2", b"1 2", True),
        (b"1\r2", b"1 2", True),
        (b"x 1.0", b"x 1", False),
        (b"1.0", b"1", True),
        (b"1.0 2", b"1 2.00", True),
        (b"1.0 2 3", b"1 2", False),
        (b"0.333333", b"0.333333333333", False),
        (b"NaN", b"nan", False),
        (b"NaN", b"NaN", True),
        (b"1 NaN", b"1  NaN", False),
        (b"sNaN", b"sNaN ", True),
        (b"sNaN", b"1", False),
        (b"1", b"sNaN", False),
        (b"Infinity", b"inf", True),
        (b"Yes", b"YES", False),
        (b"1_000", b"1000", True),
        ("\u0661\u0662".encode(), b"12", True),
        ("\uff11".encode(), b"1", True),
        (b"0x10", b"16", False),
        (b"1e999999999", b"10e999999998", True),
        (b"1e999999999", b"1", False),
        (b"1e-999999999", b"0", False),
        (b"1e99999999999999999999", b"1", False),
        (b"1" + b"0" * 5000, b"1e5000", True),
        ("\u3000a\u2003\n\u00a0b".encode(), b"a\nb", True),
        ("1\u30002".encode(), b"1 2", True),
        ("a\u3000b".encode(), b"a b", False),
        ("a\u3000b".encode(), "a\u2000b".encode(), False),
        ("a\u3000b\x1cc ".encode(), "a\u3000b\x1cc".encode(), True),
        (b"1\x1f2", b"1 2", True),
        (b"\x1d1\x1c", b"1", True),
        (b"a\x1cb", b"a\x1c\x1db", False),
        (BOM + b"1", b"1", False),
        (b"\xff", b"\xff\n", True),
        (b"\xff", b"\xfe", False),
        (b"\xff 1.0", b"\xff 1", False),
        (b"1\x00", b"1", False),
    ],
)
def test_lcb(output: bytes, expected: bytes, equal: bool) -> None:
    assert accepts(Lcb(), output, expected) is equal


def test_lcb_knows_every_space_of_str() -> None:
    every = [chr(c) for c in range(sys.maxunicode + 1) if chr(c).isspace()]
    for space in every:
        assert accepts(Lcb(), f"1{space}2{space}".encode(), b"1 2.0") is (space != "\n")


def scramble(text: list[str], rng: random.Random, spaces: list[str], changed: float) -> bytes:
    """The text with this share of its spaces turned into others, doubled or dropped, and at times an atom changed."""
    out = []
    for atom in text:
        if atom in spaces and rng.random() < changed:
            out += rng.choices(spaces, k=rng.choice([0, 1, 1, 2, 7]))
        elif rng.random() < 0.05 * changed:
            out.append(rng.choice(text))
        else:
            out.append(atom)
    out += rng.choices(spaces, k=rng.choice([0, 0, 1, 3]) if changed else 0)
    return "".join(out).encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("make", "plain", "words", "spaces"),
    [
        (Tokens, references.tokens, ["a", "bc", "7", "\udcff", "\x00"], [" ", "\n", "\r\n", "\t", "\x0b"]),
        (
            lambda: Tokens(case_sensitive=False),
            references.folded_tokens,
            ["a", "A", "bC", "Bc"],
            [" ", "\n", " \x0c"],
        ),
        (Lines, references.lines, ["a", "bc", "\udcff", "\x00"], [" ", "\n", "\r\n", " \n", "\t", "\n\n"]),
        (Exact, bytes.__eq__, ["a", "b"], [" ", "\n"]),
        (Lcb, references.lcb, ["a", "\udcff", "\u0663"], [" ", "\n", "\r\n", " \n", "\n\t", "\x1c", "\u3000"]),
        (Lcb, references.lcb, ["1", "1.0", "1e0", "2"], [" ", " ", " ", "\n", " \n", "\n ", "\t"]),
        (Lcb, references.lcb, ["1", "1.0", "1_0", "10", "x", "NaN"], [" ", " \n", "\u2003", "\x1f"]),
    ],
)
def test_verdicts_agree_with_a_plain_reference(
    make: Callable[[], Checker],
    plain: Callable[[bytes, bytes], bool],
    words: list[str],
    spaces: list[str],
) -> None:
    rng = random.Random(7)
    seen = {True: 0, False: 0}
    for _ in range(1500):
        text = [
            atom
            for _ in range(rng.randrange(12))
            for atom in (rng.choice(words) * rng.choice([1, 1, 1, 5]), rng.choice(spaces))
        ]
        if plain is references.lcb:
            # Numbers written otherwise, word for word.
            same = {"1": "1.0", "1.0": "1e0", "1_0": "10"}
            other = [same.get(atom, atom) if rng.random() < 0.5 else atom for atom in text]
        else:
            other = [atom.swapcase() if rng.random() < 0.2 else atom for atom in text]
        expected = scramble(text, rng, spaces, rng.choice([0, 0, 0.3]))
        output = scramble(other, rng, spaces, rng.choice([0, 0.3]))
        if rng.random() < 0.3:
            output = expected[: rng.randrange(len(expected) + 1)] + output[len(output) // 2 :]
        equal = plain(output, expected)
        seen[equal] += 1
        assert accepts(make(), output, expected) is equal, (output, expected)
    assert min(seen.values()) > 100, seen


def test_tolerance_agrees_with_exact_fractions() -> None:
    rng = random.Random(8)
    seen = {True: 0, False: 0}
    for _ in range(1500):
        want = [str(Decimal(rng.randrange(-200, 200)) / 100) for _ in range(rng.randrange(6))]
        got = [str(Decimal(word) + rng.choice([0, 0, 1, -1, 2, 10]) * Decimal("0.010")) for word in want]
        if rng.random() < 0.5:
            got.insert(0, "x")
            want.insert(0, "x" if rng.random() < 0.8 else "y")
        output = rng.choice([" ", "\n", "\t\r\n"]).join(got).encode()
        expected = " ".join(want).encode()
        equal = references.near_tokens(output, expected, absolute=0.01, relative=0.1)
        seen[equal] += 1
        checker = Tokens(float_absolute=0.01, float_relative=0.1)
        assert accepts(checker, output, expected) is equal, (output, expected)
    assert min(seen.values()) > 100, seen


@pytest.mark.parametrize(
    ("checker", "output", "expected", "message"),
    [
        (Tokens(), b"1\n2 4", b"1 2\n3", "token 3: expected '3', got '4'"),
        (Tokens(), b"1 2", b"1 2 3", "token 3: expected '3', got end of output"),
        (Tokens(), b"1 2 3", b"1 2", "token 3: expected end of output, got '3'"),
        (Lines(), b"a\n\nb\tc\xff", b"a\n\nb c", "line 3: expected 'b c', got 'b\\tc\\xff'"),
        (Lcb(), b"\n\n1\n2\nx", b"\n1.0\n2\ny", "line 4: expected 'y', got 'x'"),
        (Exact(), b"a\x00", b"a\n", "byte 2: expected 'a\\n', got 'a\\x00'"),
        (Exact(), b"a", b"a\n", "byte 2: expected 'a\\n', got end of output"),
    ],
)
def test_messages_name_the_place_and_quote_both_sides(
    checker: Checker, output: bytes, expected: bytes, message: str
) -> None:
    assert checker.check(memoryview(output), expected).message == message


def test_messages_count_past_the_shared_prefix_and_stay_short() -> None:
    shared = b"12 \n" * 100_000
    message = Tokens().check(memoryview(shared + b"x" * 10**6), shared + b"y" * 10**6).message
    assert message == f"token 100001: expected '{'y' * 60}'..., got '{'x' * 60}'..."
    message = Lines().check(memoryview(shared + b"z" * 10**6 + b"x"), shared + b"z" * 10**6).message
    assert message.startswith("line 100001: expected ...'") and len(message) < 300
    control = b"\x01" * 10**6
    assert len(Exact().check(memoryview(control), b"\x02" * 10**6).message) < 600
