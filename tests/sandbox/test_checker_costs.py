"""What the text checkers cost: 64 MB of whatever a program prints, in time and in memory."""

from __future__ import annotations

import gc
import mmap
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sandbox.checkers import Checker, Exact, Lcb, Lines, Tokens
from sandbox.verdicts import Verdict
from tests.sandbox.test_checkers import accepts

MB_64 = 64 * 2**20


def repeated(pattern: bytes, *, end: bytes = b"") -> bytes:
    return pattern * ((MB_64 - len(end)) // len(pattern)) + end


def tokens(token: bytes, room_bytes: int) -> bytes:
    """As many tokens as 64 MB hold of such with so much room."""
    return token * (MB_64 // room_bytes)


NEAR = Tokens(float_absolute=1e-6, float_relative=1e-6)


@contextmanager
def mapped(data: bytes) -> Iterator[memoryview]:
    with mmap.mmap(-1, len(data)) as mapping:
        mapping.write(data)
        with memoryview(mapping) as view:
            yield view


@pytest.mark.parametrize(
    ("checker", "output", "expected", "equal"),
    [
        pytest.param(Exact(), lambda: repeated(b"1 2\n"), lambda: repeated(b"1 2\n"), True, id="exact"),
        pytest.param(Tokens(), lambda: repeated(b"1\n2\r\n"), lambda: repeated(b"1 2\n"), False, id="tokens-layout"),
        pytest.param(
            Tokens(case_sensitive=False),
            lambda: repeated(b"ab\n"),
            lambda: repeated(b"AB "),
            True,
            id="tokens-case",
        ),
        pytest.param(Tokens(), lambda: repeated(b"x", end=b"y"), lambda: repeated(b"x"), False, id="tokens-one-token"),
        pytest.param(Lines(), lambda: repeated(b"1 \n"), lambda: repeated(b"1\r\n"), True, id="lines-ends"),
        pytest.param(Lcb(), lambda: repeated(b" 1\n"), lambda: repeated(b"1\r\n"), True, id="lcb-ends"),
        pytest.param(Lcb(), lambda: repeated(b" "), lambda: b"1", False, id="lcb-spaces"),
        pytest.param(Lines(), lambda: repeated(b"\xff \n"), lambda: repeated(b"\xff\t\n"), True, id="lines-no-utf8"),
        pytest.param(NEAR, lambda: repeated(b"1.0 "), lambda: repeated(b"1.0\n"), True, id="near-layout"),
        pytest.param(NEAR, lambda: tokens(b"1.0 ", 5), lambda: tokens(b"1.00 ", 5), True, id="near-equal"),
        pytest.param(NEAR, lambda: tokens(b"1.000001 ", 9), lambda: tokens(b"1 ", 9), True, id="near-edge"),
        pytest.param(
            NEAR, lambda: tokens(b"1.000001%030d " % 0, 39), lambda: tokens(b"1 ", 39), True, id="near-digits"
        ),
        pytest.param(NEAR, lambda: tokens(b"1e300 ", 7), lambda: tokens(b"+1e300 ", 7), True, id="near-exponents"),
        pytest.param(Lcb(), lambda: tokens(b"1 ", 3), lambda: tokens(b"+1 ", 3), True, id="lcb-signs"),
        pytest.param(Lcb(), lambda: tokens(b"1\n", 3), lambda: tokens(b"1.\n", 3), True, id="lcb-points"),
        pytest.param(Lcb(), lambda: tokens("\u0663\n".encode(), 3), lambda: tokens(b"3\n", 3), True, id="lcb-digits"),
        pytest.param(Lcb(), lambda: tokens(b"1_0 ", 4), lambda: tokens(b"10 ", 4), True, id="lcb-underscores"),
    ],
)
def test_64_mb_take_little_time_and_memory(
    checker: Checker, output: Callable[[], bytes], expected: Callable[[], bytes], equal: bool
) -> None:
    answer = expected()
    with mapped(output()) as view:
        begun = time.process_time()
        verdict = checker.check(view, answer).verdict
        cpu_s = time.process_time() - begun
        # Twice the most that bench/compare.py shows, for slower and busier machines.
        assert cpu_s < 2.0
        assert (verdict is Verdict.ACCEPTED) is equal
    with mapped(output()[: MB_64 // 8]) as view:
        tracemalloc.start()
        try:
            checker.check(view, answer[: MB_64 // 8])
            assert tracemalloc.get_traced_memory()[1] < 12 * 2**20
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("checker", [Tokens(), Tokens(float_absolute=0.1), Lines(), Exact(), Lcb()])
def test_nothing_holds_the_output_after_the_check(checker: Checker) -> None:
    gc.disable()
    try:
        # Closing a mapping of which a view is still alive raises BufferError.
        with mapped(b"1 2\n3 \n" * 50_000) as view:
            assert checker.check(view, b"1 2\n4 \n" * 50_000).verdict is Verdict.WRONG_ANSWER
    finally:
        gc.enable()


def test_long_lines_of_decimals_are_not_held_in_memory() -> None:
    output, expected = b"1.0  " * 200_000 + b"\n7", b"1.0 " * 200_000 + b"\n7.0"
    tracemalloc.start()
    try:
        assert accepts(Lcb(), output, expected)
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "token",
    [b"9" * 10**6, b"1e" + b"9" * 10**6, b"0." + b"0" * 10**6 + b"1", b"1_" * 30_000 + b"1", b"-" * 10**6],
)
def test_hostile_tokens_are_bounded(token: bytes) -> None:
    begun = time.process_time()
    for checker in (Tokens(float_absolute=1e-6, float_relative=1e-6), Lcb()):
        assert not accepts(checker, token + b" 1.5", b"1.25 1.5")
        assert not accepts(checker, b"1.25 1.5", token + b" 1.5")
    assert time.process_time() - begun < 1.0
