"""native.c: against plain references on random and on all short texts, and under the sanitizers; how it is loaded."""

from __future__ import annotations

import itertools
import random
import struct
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

from sandbox import prebuilt
from sandbox.checkers import native
from sandbox.checkers.numbers import Tolerance
from sandbox.errors import HostError
from tests.sandbox import references

SANITIZED = Path(__file__).parent / "checkers" / "sanitized.c"
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=all -g -O1 -std=c17 -Wall -Wextra -Werror".split()

#: From here on, no number is a finite double.
INFINITE_FROM = 2**1024 - 2**970

TOLERANCES = [
    Tolerance(absolute, relative)
    for absolute, relative in [
        (0.0, 0.0),
        (1e-6, 0.0),
        (0.0, 1e-6),
        (1e-6, 1e-6),
        (1.0, 0.0),
        (0.0, 1.0),
        (0.1, 0.3),
        (0.0, 10.0),
        (1e-300, 0.0),
        (5e-324, 0.0),
        (1e308, 0.0),
        (0.0, 1e308),
        (0.30000000000000004, 1.1e-16),
    ]
]

WORDS = ["a", "bC", "Bc", "é", "\x00", "\udcff", "\udcc2", "\udce2\udc80", "\udced\udca0\udc80", "x" * 9]
ASCII_SPACES = [" ", " ", "\n", "\n", "\r\n", "\t", "\x0b", "\x0c", "  ", " \n", "\n ", "\n\n"]
SPACES = [*ASCII_SPACES, "\x1c", "\x1f", "\u3000", "\xa0", "\x85", "\u2003", "\u2028", "\u1680"]
SPECIAL = [
    *["inf", "-Infinity", "INF", "i_n_f", "infinit", "in", "i", "infinityx", "nan", "sNaN", "NaN1", "0x10"],
    *[
        "1_0",
        "_1",
        "1__0",
        "10",
        "1_",
        "_",
        "_._5",
        ".5",
        "1e_3",
        "1e3",
        "1000",
        "\u0663",
        "\uff13",
        "1\u0663",
        "\U0001d7ce",
    ],
    *["e\u0663", "1e\u0663", "\u00b2", "1.", ".", "-", "+", "--1", "1e", "1e+", "..1", "1.2.3"],
    *["1e999999999999999999", "10e999999999999999998", "1e1000000000000000000", "0e1000000000000000000", "0", "-0"],
    *["0e-1999999999999999997", "0e-1999999999999999998", "1e-1999999999999999997", "10e-1999999999999999998"],
    *["1e99999999999999999999", "1e-99999999999999999999", "0e99999999999999999999"],
    *["1e308", "1e309", "1e-308", "1e-400", "5e-324", "1.000001", "0.999999", "0.9999989999999999999999999"],
    *[
        str(INFINITE_FROM),
        str(INFINITE_FROM - 1),
        f"{INFINITE_FROM - 1}.999",
        f"{INFINITE_FROM}e-1",
        f"-{INFINITE_FROM}.0",
    ],
    *["1" + "0" * 40, "0." + "0" * 40 + "1", "1e20", "0.1e21", "100000000000000000000", "9" * 25, "9" * 25 + ".0"],
]


def a_number(rng: random.Random) -> str:
    kind = rng.randrange(7)
    if kind == 0:
        return str(rng.randrange(-3, 4))
    if kind == 1:
        return f"{rng.uniform(-2, 2):.{rng.randrange(6)}f}"
    if kind == 2:
        return f"{rng.uniform(-2, 2) * 10.0 ** rng.randrange(-30, 30):.{rng.randrange(25)}e}"
    if kind == 3:
        return "".join(rng.choices("0123456789+-.eE", k=rng.randrange(1, 7)))
    if kind == 4:
        return "".join(rng.choices("01.e-_", k=rng.randrange(1, 7)))
    if kind == 5:
        return str(rng.randrange(10 ** rng.randrange(1, 40)))
    return rng.choice(SPECIAL)


def written_otherwise(word: str, rng: random.Random) -> str:
    """Mostly the same number, or one that is just within or without a tolerance."""
    number = references.number(word.encode("utf-8", "surrogateescape"))
    if number is None or word in SPECIAL:
        return word.swapcase() if rng.random() < 0.4 else word
    value = Decimal(word)
    kind = rng.randrange(7)
    if kind == 0:
        return repr(float(word))
    if kind == 1:
        return word + "000" if "." in word and "e" not in word.lower() else word
    if kind == 2:
        return word if word[0] in "+-" else "+00" + word
    if kind == 3 and abs(value) < 10**20:
        return f"{value:f}"
    if kind == 4 and 1e-6 < abs(value) < 10**20:
        return str(value + rng.choice([1, -1]) * Decimal("0.000001"))
    if kind == 5 and 1e-6 < abs(value) < 10**20:
        return str(value * rng.choice([Decimal("1.000001"), Decimal("0.999999"), 2, Decimal("1.3")]))
    return word


@dataclass(frozen=True)
class Case:
    output: bytes
    expected: bytes
    tolerance: Tolerance
    fold_case: bool


def cases(seed: int, count: int) -> Iterator[Case]:
    rng = random.Random(seed)
    for _ in range(count):
        spaces = rng.choice([SPACES, ASCII_SPACES, [" ", "\n"]])
        words = [rng.choice(WORDS) if rng.random() < 0.3 else a_number(rng) for _ in range(rng.randrange(9))]
        text = [part for word in words for part in (word, rng.choice(spaces))]
        text = [rng.choice(["", "", "", *spaces, "\ufeff"]), *text]
        other = [
            rng.choice(spaces) if part in spaces and rng.random() < 0.3
            else written_otherwise(part, rng) if part not in spaces and rng.random() < 0.5
            else part
            for part in text
        ]  # fmt: skip
        if rng.random() < 0.2:
            other[rng.randrange(len(other))] = rng.choice([*WORDS, a_number(rng), ""])
        if rng.random() < 0.1:
            other = other[: rng.randrange(len(other) + 1)]
        output, expected = (bytearray("".join(parts).encode("utf-8", "surrogateescape")) for parts in (other, text))
        if output and rng.random() < 0.1:
            output[rng.randrange(len(output))] = rng.randrange(256)
        if rng.random() < 0.5:
            output, expected = expected, output
        yield Case(bytes(output), bytes(expected), rng.choice(TOLERANCES), rng.random() < 0.5)


def parts(case: Case) -> tuple[native.Parting | None, ...]:
    """By every walk."""
    got, want = memoryview(case.output), memoryview(case.expected)
    return (
        native.tokens_part(got, want, fold_case=case.fold_case, tolerance=case.tolerance),
        native.tokens_part(got, want, fold_case=case.fold_case, tolerance=None),
        native.lines_part(got, want),
        native.lcb_parts(got, want),
    )


def without_bom(text: bytes) -> bytes:
    return text.removeprefix(references.BOM)


def test_walks_agree_with_plain_references() -> None:
    seen = [{True: 0, False: 0} for _ in range(4)]
    for case in cases(seed=1, count=15_000):
        output, expected, tolerance = without_bom(case.output), without_bom(case.expected), case.tolerance
        case = Case(output, expected, tolerance, case.fold_case)
        plain_tokens = references.folded_tokens if case.fold_case else references.tokens
        equal = (
            references.near_tokens(output, expected, tolerance.absolute, tolerance.relative, fold_case=case.fold_case),
            plain_tokens(output, expected),
            references.lines(output, expected),
            references.lcb(output, expected),
        )
        assert tuple(parting is None for parting in parts(case)) == equal, case
        for count, one in zip(seen, equal, strict=True):
            count[one] += 1
    assert all(min(count.values()) > 1000 for count in seen), seen


def test_every_short_word_is_a_number_just_where_it_should_be() -> None:
    tolerance = Tolerance(0.0, 0.0)
    for length in range(6):
        for letters in itertools.product("10.e-_", repeat=length):
            word = "".join(letters)
            text = word.encode()
            assert native.within(text, text, tolerance) is (references.number(text) is not None), word
            # Lines that differ in layout are alike only by their Decimals.
            alike = native.lcb_parts(memoryview(text + b"7 7"), memoryview(text + b"7  7")) is None
            assert alike is (references.decimals(word + "7") is not None), word


def test_numbers_of_any_length_are_compared_exactly() -> None:
    long = b"1." + b"0" * 60_000
    for got, want, absolute, relative, alike in [
        (long + b"1", b"1", 0.0, 0.0, False),
        (long + b"0", b"1", 0.0, 0.0, True),
        (long[:-1] + b"1", b"1", 1e-9, 0.0, True),
        (b"1.000001" + b"0" * 50_000, b"1", 1e-6, 0.0, True),
        (b"1.000001" + b"0" * 50_000 + b"1", b"1", 1e-6, 0.0, False),
        (b"0.999999" + b"0" * 50_000, b"1", 0.0, 1e-6, True),
        (b"0.999998" + b"9" * 50_000, b"1", 0.0, 1e-6, False),
        (b"3" * 300 + b"." + b"3" * 50_000, b"3" * 300, 1.0, 0.0, True),
        (b"1e-6", b"-1e-900", 1e-6, 0.0, False),
        (b"1e-6", b"1e-900", 1e-6, 0.0, True),
        (b"1" + b"0" * 70_000, b"1" + b"0" * 70_000, 1.0, 1.0, False),
    ]:
        assert native.within(got, want, Tolerance(absolute, relative)) is alike, (got[:20], len(got), want[:20])


def test_numbers_end_where_doubles_do() -> None:
    tolerance = Tolerance(0.0, 0.0)
    for text, finite in [
        (str(INFINITE_FROM - 1), True),
        (f"-{INFINITE_FROM - 1}.{'9' * 1000}", True),
        (str(INFINITE_FROM), False),
        (f"-{INFINITE_FROM}.0", False),
        (f"{INFINITE_FROM}e-1", True),
        (f"0.{INFINITE_FROM}e309", False),
        ("1e309", False),
        ("0e309", True),
    ]:
        assert native.within(text.encode(), text.encode(), tolerance) is finite, text


def test_every_digit_of_every_script_is_read_as_python_reads_it() -> None:
    digits = [c for c in range(sys.maxunicode + 1) if unicodedata.decimal(chr(c), None) is not None]
    assert max(digits) < native.DIGITS_END
    for c in range(0x80, native.DIGITS_END):
        if unicodedata.numeric(chr(c), None) is None:
            continue
        text = f"1{chr(c)}".encode()
        equal = [native.lcb_parts(memoryview(text), memoryview(b"1%d" % digit)) is None for digit in range(10)]
        assert equal == [unicodedata.decimal(chr(c), None) == digit for digit in range(10)], hex(c)
    # Longer than it must be, so not UTF-8.
    assert native.lcb_parts(memoryview(b"\xe0\x99\xa3"), memoryview(b"3")) is not None


def test_under_the_sanitizers_nothing_is_found_and_everything_is_the_same(tmp_path: Path) -> None:
    program = tmp_path / "sanitized"
    command = ["gcc", *SANITIZE, f"-I{prebuilt.CHECKERS_SOURCE.parent}", "-o", str(program), str(SANITIZED)]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stderr
    given, expected = [native.decimal_digits()], []
    rng = random.Random(5)
    marks = b'[[]]{},:""\\0011.e-+truefalsNI\xff'
    noise = b"\n\n \x00\xc2\x85\xa0\xe1\x9a\x80\xe2\x81\x9f\xe3_1.e-i\xf0\x9d\x9f\x8e\xff"
    for case in cases(seed=4, count=4000):
        output, want = case.output, case.expected
        if rng.random() < 0.3:
            output, want = (bytes(rng.choices(noise, k=rng.randrange(20))) for _ in range(2))
        elif rng.random() < 0.5:
            want = bytes(rng.choices(marks, k=rng.randrange(40)))
            output = bytes(one if rng.random() < 0.9 else rng.choice(marks) for one in want)
        case = Case(output, want, case.tolerance, case.fold_case)
        near, plain, lines, lcb = parts(case)
        data, near_data = (
            native.plain_part(output, want, 0, 0, loose=case.fold_case, tolerance=tolerance)
            for tolerance in (None, case.tolerance)
        )
        partings = [(0, 1, near), (0, 0, plain), (1, 0, lines), (2, 0, lcb), (5, 0, data), (5, 1, near_data)]
        for walk, tolerant, parting in partings:
            given.append(packed(walk, case, tolerant))
            expected.append(answer(parting))
        one = native.within(output, want, case.tolerance)
        shared = native.common_prefix(output, want, fold_case=case.fold_case)
        count = native.count_tokens(memoryview(output)) + native.count_newlines(memoryview(want))
        for walk, number in [(3, one), (4, shared), (6, count)]:
            given.append(packed(walk, case, 1))
            expected.append(struct.pack("5q", number, 0, 0, 0, 0))
    done = subprocess.run([program], input=b"".join(given), capture_output=True, check=False, timeout=200)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    answers = [done.stdout[at : at + 40] for at in range(0, len(done.stdout), 40)]
    assert answers == expected


def packed(walk: int, case: Case, tolerant: int) -> bytes:
    tolerance = bytes(native.passed(case.tolerance))
    head = struct.pack("5q", walk, len(case.output), len(case.expected), case.fold_case, tolerant)
    return head + tolerance + case.output + case.expected


def answer(parting: native.Parting | None) -> bytes:
    if parting is None:
        return struct.pack("5q", 0, 0, 0, 0, 0)
    ends = [(-1, -1) if at is None else (at.start, at.stop) for at in (parting.got, parting.want)]
    return struct.pack("5q", 1, *ends[0], *ends[1])


def test_a_library_that_cannot_be_loaded_is_the_hosts_fault(tmp_path: Path) -> None:
    broken = tmp_path / "native.so"
    broken.write_bytes(b"\x7fELF, or so")
    for library in (broken, tmp_path / "missing.so"):
        with pytest.raises(HostError, match=r"what compares outputs cannot be loaded: .*\.so"):
            native.load(library)
    # What was loaded before goes on.
    assert native.common_prefix(b"ab", b"ac") == 1
