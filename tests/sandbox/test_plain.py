"""Comparing plain data: what is equal, what a message says, and results that are made to cost their reader."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

import pytest

from sandbox.checkers.base import CheckerOutcome
from sandbox.checkers.plain import LONG, Plain
from sandbox.errors import CheckerRefused
from sandbox.verdicts import Verdict
from tests.sandbox.calling import json_text

ACCEPTED = CheckerOutcome(Verdict.ACCEPTED)


def check(got: str | bytes, want: str | bytes, checker: Plain | None = None) -> CheckerOutcome:
    texts = [text.encode() if isinstance(text, str) else text for text in (got, want)]
    return (checker or Plain()).check(memoryview(texts[0]), texts[1])


def accepts(got: str, want: str, checker: Plain | None = None) -> bool:
    return check(got, want, checker).verdict is Verdict.ACCEPTED


#: (result, expected, equal, equal if loose)
PAIRS = [
    ("1", "1", True, True),
    ("1", "2", False, False),
    ("true", "1", False, True),
    ("1", "true", False, True),
    ("false", "0", False, True),
    ("false", "0.0", False, True),
    ("1", "1.0", False, True),
    ("1.0", "1", False, True),
    ("1.0", "1.5", False, False),
    ("-0.0", "0.0", True, True),
    ("0", "-0.0", False, True),
    ("0.30000000000000004", "0.3", False, False),
    ("9007199254740993", "9007199254740992.0", False, False),
    ("null", "0", False, False),
    ("null", "false", False, False),
    ("null", '""', False, False),
    ('"1"', "1", False, False),
    ('"a"', '"A"', False, False),
    ('"\u00e9"', '"e\u0301"', False, False),
    ("[]", "{}", False, False),
    ("[]", "null", False, False),
    ("[1,2]", "[2,1]", False, False),
    ("[1,2]", "[1,2,3]", False, False),
    ("[1,[2]]", "[1,[2]]", True, True),
    ("[[1],2]", "[1,[2]]", False, False),
    ("[true,[1.0]]", "[1,[1]]", False, True),
    ('{"a":1,"b":2}', '{"b":2,"a":1}', True, True),
    ('{"a":1,"b":2}', '{"b":1,"a":2}', False, False),
    ('{"a":1}', '{"b":1}', False, False),
    ('{"a":true}', '{"a":1}', False, True),
    ('{"a":1,"a":1}', '{"a":1,"b":1}', False, False),
    ('{"a":1,"b":1}', '{"a":1}', False, False),
    ("7" * 5000, "7" * 5000, True, True),
    ("7" * 5000, "7" * 4999 + "8", False, False),
    ("[" + "7" * 5000 + ",1]", "[" + "7" * 5000 + ",true]", False, True),
    ("1" + "0" * 22, "1e22", False, True),
    ("1" + "0" * 700, "1e300", False, False),
]


@pytest.mark.parametrize(("got", "want", "equal", "loosely"), PAIRS)
def test_equality(got: str, want: str, equal: bool, loosely: bool) -> None:
    assert (accepts(got, want), accepts(got, want, Plain(loose=True))) == (equal, loosely)


TOLERANCES = [
    ("1.000001", "1.0", Plain(float_absolute=1e-6), True),
    ("1.0000011", "1.0", Plain(float_absolute=1e-6), False),
    ("1000.9", "1000.0", Plain(float_relative=1e-3), True),
    ("1001.1", "1000.0", Plain(float_relative=1e-3), False),
    ("[[0.1,2.0]]", "[[0.1000001,2.0]]", Plain(float_absolute=1e-6), True),
    ("1000001", "1000000", Plain(float_absolute=5.0), False),
    ("1", "1.0", Plain(float_absolute=1.0), False),
    ("1", "1.5", Plain(loose=True, float_absolute=1.0), True),
    ("1.5", "1", Plain(loose=True, float_absolute=1.0), True),
    ("true", "1.5", Plain(loose=True, float_absolute=1.0), True),
    ("1000001", "1000000", Plain(loose=True, float_absolute=5.0), False),
    ("NaN", "0.0", Plain(loose=True, float_absolute=1e308), False),
    ("Infinity", "1e308", Plain(loose=True, float_relative=1e308), False),
    ('"1.0"', '"1.1"', Plain(float_absolute=1.0), False),
]


@pytest.mark.parametrize(("got", "want", "checker", "alike"), TOLERANCES)
def test_tolerances_are_for_floats(got: str, want: str, checker: Plain, alike: bool) -> None:
    assert accepts(got, want, checker) is alike


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_a_tolerance_must_be_finite_and_not_negative(tolerance: float) -> None:
    with pytest.raises(CheckerRefused):
        Plain(float_absolute=tolerance)
    with pytest.raises(CheckerRefused):
        Plain(float_relative=tolerance)


@pytest.mark.parametrize(
    ("got", "want", "message"),
    [
        ("3", "4", "3 in place of 4"),
        ("[1,[2,3]]", "[1,[2,4]]", "at [1][1]: 3 in place of 4"),
        ('{"a b":[true]}', '{"a b":[1]}', 'at ["a b"][0]: true in place of 1'),
        ('{"a":1}', '{"b":1}', 'at ["b"]: missing'),
        ("[[1,2],[3]]", "[[1],[2,3]]", "at [0]: 2 items in place of 1"),
        ("[1,2]", "[1]", "'[1,2]' in place of '[1]'"),
        ('"x\ty"', '"z\\ty"', "the result is not one value in JSON"),
        ("null", '"text"', "'null' in place of '\"text\"'"),
    ],
)
def test_a_message_shows_the_first_difference(got: str, want: str, message: str) -> None:
    assert check(got, want) == CheckerOutcome(Verdict.WRONG_ANSWER, message)


def test_a_message_quotes_little_of_long_data() -> None:
    outcome = check(json_text(["x" * 50_000, "y"]), json_text(["x" * 50_000, "z"]))
    assert outcome.message == 'at [1]: "y" in place of "z"'
    assert len(check(json_text(["x" * 100_000]), json_text(["z" * 100_000])).message) < 300


GARBAGE = ["", " ", "}", "[", "1 2", "1}{", "nul", "'a'", "01", "+1", "0x1", "[1,]", '{"a"}', '"\ud83d', "\ufeff1"]


@pytest.mark.parametrize("got", GARBAGE)
def test_what_is_no_json_is_wrong_whatever_was_expected(got: str) -> None:
    text = got.encode("utf-8", "surrogatepass")
    for want in ("1", "null", "[1]", '{"a":1}', '"a"'):
        assert check(text, want).verdict is Verdict.WRONG_ANSWER


def test_bytes_that_are_no_utf8_are_wrong() -> None:
    assert check(b'"\xff"', '"a"').verdict is Verdict.WRONG_ANSWER


def test_half_a_surrogate_pair_is_a_character_that_nothing_equals() -> None:
    assert check('"\ud800"'.encode("utf-8", "surrogatepass"), '"a"').verdict is Verdict.WRONG_ANSWER


BOMBS: dict[str, Callable[[], bytes]] = {
    "lists in lists": lambda: b"[" * 30_000_000,
    "many lists": lambda: b"[" + b"[]," * 10_000_000 + b"[]]",
    "many numbers": lambda: b"[" + b"1," * 15_000_000 + b"1]",
    "many digits": lambda: b"[" + b"7" * 30_000_000 + b"]",
    "a float of many digits": lambda: b"[0." + b"7" * 30_000_000 + b"]",
    "a long string": lambda: b'["' + b"x" * 30_000_000 + b'"]',
    "white space": lambda: b"[1" + b" " * 30_000_000 + b"]",
}


@pytest.mark.parametrize("what", BOMBS)
@pytest.mark.parametrize("want", [b"[1]", b"[" + b"1" * 200_000 + b"]"], ids=["short", "long"])
def test_a_result_that_is_made_to_cost_its_reader_costs_little(what: str, want: bytes) -> None:
    text = BOMBS[what]()
    started = time.process_time()
    assert check(text, want).verdict is Verdict.WRONG_ANSWER or what == "white space"
    # Python would need seconds, and gigabytes, to read any but the last two; a loaded host is no faster.
    assert time.process_time() - started < 2.0


SCALARS: list[object] = [
    *(0, 1, 2, -1, 10**15, 10**22, 2**53 + 1, 10**700, True, False, None, "", "a", "\\", 'b"],[1', "é"),
    *(0.0, -0.0, 1.0, 1.5, 1e22, 1e-7, 0.1, 0.1 + 0.2, 1e15, 2.0**53, -1.0, 1e300, float("nan"), float("inf")),
]


def written(data: object) -> str:
    """As the encoder in the jail writes it, NaN included."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def some_data(rng: random.Random, depth: int) -> object:
    kind = rng.random()
    if depth == 0 or kind < 0.5:
        return rng.choice(SCALARS)
    if kind < 0.8:
        return [some_data(rng, depth - 1) for _ in range(rng.randrange(5))]
    return {str(key): some_data(rng, depth - 1) for key in rng.sample(range(5), rng.randrange(4))}


def written_otherwise(data: object, rng: random.Random) -> object:
    """Nearly the same: now and then another scalar, one that may be its equal, or another order of keys."""
    if isinstance(data, list):
        return [written_otherwise(one, rng) for one in data]
    if isinstance(data, dict):
        items = [(key, written_otherwise(one, rng)) for key, one in data.items()]
        return dict(items[::-1] if rng.random() < 0.1 else items)
    if rng.random() < 0.7:
        return data
    if isinstance(data, (int, float)) and abs(data) < 1e16 and rng.random() < 0.8:
        return rng.choice([float(data), int(data), data + 1e-9, data * 1.001, bool(data), -data])
    return rng.choice(SCALARS)


@pytest.mark.parametrize("checker", [Plain(), Plain(loose=True), Plain(float_absolute=1e-6), Plain(True, 1e-6, 1e-2)])
def test_long_texts_are_compared_as_short_ones(checker: Plain) -> None:
    rng, filling = random.Random(6), written("x" * LONG)
    seen = {True: 0, False: 0}
    for _ in range(3000):
        data = some_data(rng, 4)
        while "NaN" in (want := written(data)) or "Infinity" in want:
            data = some_data(rng, 4)
        got = written(written_otherwise(data, rng))
        alike = accepts(got, want, checker)
        assert accepts(f"[{got},{filling}]", f"[{want},{filling}]", checker) is alike, (got, want)
        seen[alike] += 1
    assert min(seen.values()) > 300, seen


@pytest.mark.parametrize(
    ("got", "want", "message"),
    [
        ("3", "4", "3 in place of 4"),
        ('"a\tb"', '"a\tc"', '"a\\tb" in place of "a\\tc"'),
        ("true", "1", "true in place of 1"),
        ("[],[7]", "[7],[]", "] in place of 7"),
    ],
)
def test_of_long_texts_a_message_tells_where_they_part(got: str, want: str, message: str) -> None:
    before = f"[{written('x' * LONG)},"
    outcome = check(f"{before}{got}]", f"{before}{want}]")
    at = len(before) + 1 + (message[0] == "]")
    assert outcome == CheckerOutcome(Verdict.WRONG_ANSWER, f"at byte {at}: {message}")


ITEMS = 1_000_000

LARGE: dict[str, tuple[bytes, bytes, Plain]] = {
    "empty lists": (b"[],[]", b"[],[]", Plain()),
    "floats that are near": (b"0.3", b"0.30000000000000004", Plain(float_absolute=1e-9)),
    "integers for floats": (b"7", b"7.0", Plain(loose=True)),
    "truths for integers": (b"true", b"1", Plain(loose=True)),
    "zeros": (b"-0.0", b"0.0", Plain()),
    "dicts": (b'{"a":1,"b":2.0}', b'{"a":1,"b":2}', Plain(loose=True)),
}


@pytest.mark.parametrize("what", LARGE)
def test_large_data_cost_little(what: str) -> None:
    one, other, checker = LARGE[what]
    got, want = (b"[" + (text + b",") * ITEMS for text in (one, other))
    started = time.process_time()
    assert check(got + b"3]", want + b"3]", checker).verdict is Verdict.ACCEPTED
    if b"{" not in one:
        assert check(got + b"3]", want + b"4]", checker).verdict is Verdict.WRONG_ANSWER
    taken = time.process_time() - started
    # The measure of this machine's speed: Python's reading of the same, whose 2 million objects then wait to be freed.
    started = time.process_time()
    for text in (got + b"3]", want + b"3]"):
        json.loads(text)
    assert taken < 10 * (time.process_time() - started)


def test_depth_is_no_danger() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert accepts(deep, deep)
    other = "[" * 99_999 + "]" * 99_999
    assert not accepts(other, deep)
