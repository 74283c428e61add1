"""The four checkers that compare texts, as values.

    Tokens   whitespace-separated tokens; case may be ignored, numbers may be compared within a tolerance
    Lines    line by line; whitespace at line ends and empty lines at the end mean nothing, CRLF is LF
    Exact    byte for byte
    Lcb      LiveCodeBench's rule (sandbox.checkers.lcb)

Whitespace is ASCII's (space, tab, newline, CR, VT, FF) except in `Lcb`. A UTF-8 byte order mark at the start of
either text is passed over by `Tokens` and `Lines`, as testlib does, and counts as text in `Exact` and in `Lcb`, where
Python's strip() keeps it. No input raises: NULs and invalid UTF-8 are bytes like others.

Each begins with the prefix that both texts share, which costs next to nothing, and walks canonical streams from the
unit where they part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sandbox.checkers import lcb
from sandbox.checkers.base import CheckerOutcome
from sandbox.checkers.canonical import (
    BLOCK_BYTES,
    STR_SPACE,
    Canonical,
    LineRule,
    Rule,
    TokenRule,
    blocks,
    common_prefix,
    rfind_any,
    skip_space,
)
from sandbox.checkers.numbers import Tolerance
from sandbox.checkers.walk import LONG_UNIT_BYTES, QUOTED_BYTES, Difference, Window, first_difference, quote, walk
from sandbox.verdicts import Verdict

_BOM = b"\xef\xbb\xbf"
_ACCEPTED = CheckerOutcome(Verdict.ACCEPTED)
_TOKENS = TokenRule()
_LINES = LineRule(left=False)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is looked at once. Verdicts do not depend on it; tests make it small."""

    block_bytes: int = BLOCK_BYTES
    long_unit_bytes: int = LONG_UNIT_BYTES


_SIZES = Sizes()


@dataclass(frozen=True, slots=True)
class Tokens:
    """Equal tokens in equal order.

    With either tolerance set, a token of the answer that is a finite decimal number is met by any token within
    the tolerance (see `Tolerance`; the other one then counts as 0), and every other token by its text alone.
    Raises CheckerRefused on a tolerance that is negative or not finite.
    """

    case_sensitive: bool = True
    float_absolute: float | None = None
    float_relative: float | None = None
    sizes: Sizes = _SIZES

    def __post_init__(self) -> None:
        self._tolerance()

    def _tolerance(self) -> Tolerance | None:
        if self.float_absolute is None and self.float_relative is None:
            return None
        return Tolerance(self.float_absolute or 0.0, self.float_relative or 0.0)

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        pair = _Pair(_without_bom(output), _without_bom(memoryview(expected)), self.sizes)
        if pair.equal:
            return _ACCEPTED
        start = pair.shared_units(_TOKENS.space)
        fold_case = not self.case_sensitive
        first_unlike = partial(_first_unlike_token, fold_case=fold_case, tolerance=self._tolerance())
        difference = walk(*pair.windows(_TOKENS, start), first_unlike, fold_case=fold_case)
        return _outcome(difference, "token", lambda: pair.tokens_before(start))


@dataclass(frozen=True, slots=True)
class Lines:
    """Equal lines, whitespace at their ends aside; leading whitespace and inner blank lines count."""

    sizes: Sizes = _SIZES

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        pair = _Pair(_without_bom(output), _without_bom(memoryview(expected)), self.sizes)
        if pair.equal:
            return _ACCEPTED
        start = pair.shared_units(b"\n")
        difference = walk(*pair.windows(_LINES, start), _first_unlike_token)
        return _outcome(difference, "line", lambda: pair.lines_before(start))


@dataclass(frozen=True, slots=True)
class Exact:
    """Equal bytes."""

    sizes: Sizes = _SIZES

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        pair = _Pair(output, memoryview(expected), self.sizes)
        if pair.equal:
            return _ACCEPTED
        # The shared prefix may be all of the shorter text: a little of it is shown before the difference.
        start = max(0, pair.shared - QUOTED_BYTES)
        stop = pair.shared + self.sizes.block_bytes
        got, want = (bytes(text[start:stop]) for text in (pair.output, pair.expected))
        at = first_difference(got, want)
        shown = (quote(text, at, inside=start > 0) if at < len(text) else None for text in (got, want))
        return _outcome(Difference(at + 1, *shown), "byte", lambda: start)


@dataclass(frozen=True, slots=True)
class Lcb:
    """LiveCodeBench's comparison of stdout: no tolerance, no case folding, Decimals where lines differ."""

    sizes: Sizes = _SIZES

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        if _Pair(output, memoryview(expected), self.sizes).equal:
            return _ACCEPTED
        block_bytes = self.sizes.block_bytes
        got, want = (lcb.with_ascii_space(text, block_bytes) for text in (output, memoryview(expected)))
        got_start, want_start = (skip_space(text, 0, STR_SPACE, block_bytes) for text in (got, want))
        pair = _Pair(got[got_start:], want[want_start:], self.sizes)
        start = pair.shared_units(b"\n")
        difference = walk(
            *pair.windows(lcb.LINES, start),
            lcb.first_unlike_line,
            long_alike=partial(lcb.long_lines_alike, block_bytes=block_bytes),
        )
        return _outcome(
            difference,
            "line",
            lambda: _count(want[:want_start], b"\n", block_bytes) + pair.lines_before(start),
        )


class _Pair:
    """Two texts and the length of the prefix they share: whole blocks, or all of the shorter text."""

    def __init__(self, output: memoryview, expected: memoryview, sizes: Sizes) -> None:
        self.output = output
        self.expected = expected
        self._sizes = sizes
        self.shared = common_prefix(output, expected, sizes.block_bytes)

    @property
    def equal(self) -> bool:
        return self.shared == len(self.output) == len(self.expected)

    def shared_units(self, separators: bytes) -> int:
        """Length of the shared prefix up to its last separator: all of it is whole units."""
        return rfind_any(self.expected[: self.shared], separators, self._sizes.block_bytes) + 1

    def windows(self, rule: Rule, start: int) -> tuple[Window, Window]:
        """The output's and the answer's window from `start` on."""
        return self._window(self.output, rule, start), self._window(self.expected, rule, start)

    def _window(self, text: memoryview, rule: Rule, start: int) -> Window:
        stream = Canonical(text, rule, start=start, block_bytes=self._sizes.block_bytes)
        return Window(stream, long_unit_bytes=self._sizes.long_unit_bytes)

    def tokens_before(self, start: int) -> int:
        stream = Canonical(self.expected[:start], _TOKENS, block_bytes=self._sizes.block_bytes)
        return sum(piece.count(b" ") for piece in iter(stream.read, b""))

    def lines_before(self, start: int) -> int:
        return _count(self.expected[:start], b"\n", self._sizes.block_bytes)


def _count(text: memoryview, wanted: bytes, block_bytes: int) -> int:
    return sum(block.count(wanted) for block in blocks(text, block_bytes))


def _without_bom(text: memoryview) -> memoryview:
    return text[len(_BOM) :] if text[: len(_BOM)] == _BOM else text


def _first_unlike_token(
    output: list[bytes],
    expected: list[bytes],
    *,
    fold_case: bool = False,
    tolerance: Tolerance | None = None,
) -> int:
    if tolerance is not None and tolerance.all_alike(output, expected):
        return len(expected)
    for index, (got, want) in enumerate(zip(output, expected, strict=True)):
        if got == want or (fold_case and got.lower() == want.lower()):
            continue
        if tolerance is None or not tolerance.alike(got, want):
            return index
    return len(expected)


def _outcome(difference: Difference | None, unit: str, units_before: Callable[[], int]) -> CheckerOutcome:
    """The outcome, in words. `units_before` is asked only where there is a difference: it takes a pass."""
    if difference is None:
        return _ACCEPTED
    got, want = ("end of output" if shown is None else shown for shown in (difference.output, difference.expected))
    return CheckerOutcome(
        Verdict.WRONG_ANSWER, f"{unit} {units_before() + difference.unit}: expected {want}, got {got}"
    )
