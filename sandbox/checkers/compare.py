"""The four checkers that compare texts, as values.

    Tokens   whitespace-separated tokens; case may be ignored, numbers may be compared within a tolerance
    Lines    line by line; whitespace at line ends and empty lines at the end mean nothing, CRLF is LF
    Exact    byte for byte
    Lcb      LiveCodeBench's rule

Whitespace is ASCII's (space, tab, newline, CR, VT, FF) except in `Lcb`. A UTF-8 byte order mark at the start of
either text is passed over by `Tokens` and `Lines`, as testlib does, and counts as text in `Exact` and in `Lcb`, where
Python's strip() keeps it. No input raises: NULs and invalid UTF-8 are bytes like others.

The texts are walked where they lie (`sandbox.checkers.native`), in time linear in them and without copying. The walk
does not look whether the client is still there: 64 MB, as much as a program may print unless its problem says
otherwise, take a fraction of a second whatever they hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.checkers import native
from sandbox.checkers.base import CheckerOutcome
from sandbox.checkers.native import Parting
from sandbox.checkers.numbers import tolerance
from sandbox.checkers.quoting import quote
from sandbox.verdicts import Verdict

_BOM = b"\xef\xbb\xbf"
_ACCEPTED = CheckerOutcome(Verdict.ACCEPTED)


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

    def __post_init__(self) -> None:
        tolerance(self.float_absolute, self.float_relative)

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        got, want = _without_bom(output), _without_bom(memoryview(expected))
        fold_case = not self.case_sensitive
        near = tolerance(self.float_absolute, self.float_relative)
        parting = native.tokens_part(got, want, fold_case=fold_case, tolerance=near)
        return _outcome(got, want, parting, "token", native.count_tokens, fold_case=fold_case)


@dataclass(frozen=True, slots=True)
class Lines:
    """Equal lines, whitespace at their ends aside; leading whitespace and inner blank lines count."""

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        got, want = _without_bom(output), _without_bom(memoryview(expected))
        return _outcome(got, want, native.lines_part(got, want), "line", native.count_newlines)


@dataclass(frozen=True, slots=True)
class Exact:
    """Equal bytes."""

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        want = memoryview(expected)
        at = native.common_prefix(output, want)
        if at == len(output) == len(want):
            return _ACCEPTED
        shown = [quote(text, at) if at < len(text) else "end of output" for text in (output, want)]
        return CheckerOutcome(Verdict.WRONG_ANSWER, f"byte {at + 1}: expected {shown[1]}, got {shown[0]}")


@dataclass(frozen=True, slots=True)
class Lcb:
    """LiveCodeBench's comparison of stdout, as its testing_util has it: no tolerance, no case folding.

    Both texts are stripped and split at newlines, each line is stripped; the line counts must be equal, and each pair
    of lines must be equal, or else both split into tokens that are all Decimals, and the two lists of Decimals equal.
    It is about str: whitespace and digits are Unicode's. Bytes that are no UTF-8 count as characters of their own,
    equal only to themselves.
    """

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        want = memoryview(expected)
        return _outcome(output, want, native.lcb_parts(output, want), "line", native.count_newlines)


def _without_bom(text: memoryview) -> memoryview:
    return text[len(_BOM) :] if text[: len(_BOM)] == _BOM else text


def _outcome(
    got: memoryview,
    want: memoryview,
    parting: Parting | None,
    unit: str,
    units_in: Callable[[memoryview], int],
    *,
    fold_case: bool = False,
) -> CheckerOutcome:
    """The outcome, in words. `units_in` is asked only where there is a difference: it takes a pass."""
    if parting is None:
        return _ACCEPTED
    one, other = parting.got, parting.want
    # As many units came before it in both.
    before = want[: other.start] if other is not None else got[: one.start if one is not None else None]
    at = 0
    if one is not None and other is not None:
        at = native.common_prefix(got[one], want[other], fold_case=fold_case)
    expected = "end of output" if other is None else quote(want[other], at)
    shown = "end of output" if one is None else quote(got[one], at)
    return CheckerOutcome(Verdict.WRONG_ANSWER, f"{unit} {units_in(before) + 1}: expected {expected}, got {shown}")
