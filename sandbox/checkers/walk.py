"""Two canonical streams walked side by side, unit by unit, to the first pair of units that differ.

Whole windows that are equal are passed over as bytes; only where they are not does anyone look at single units.
Memory stays at a few blocks even where one unit fills the whole text. Knows nothing of what makes units alike
beyond equal bytes: that is the caller's `first_unlike`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.checkers.canonical import Canonical

#: A unit of at least this many bytes may be walked in parts; whether its parts are numbers is not asked then.
LONG_UNIT_BYTES = 64 * 1024

#: How much of a text a message quotes.
QUOTED_BYTES = 60

#: How much of that stands before the difference.
_QUOTED_BEFORE = 20

FirstUnlike = Callable[[list[bytes], list[bytes]], int]
"""Index of the first pair (output, expected) that is not alike, or the lists' common length."""

LongAlike = Callable[[memoryview, memoryview], bool]
"""Whether two differing lines (output, expected), at least one of them long, are alike all the same."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first pair of units that differ; None stands for the end of the text."""

    unit: int
    """Counted from 1 where the walk began."""
    output: str | None
    expected: str | None


@dataclass(frozen=True, slots=True)
class _Mark:
    data: bytes
    line_start: int


class Window:
    """The part of a canonical stream that is being looked at; it begins at the start of a unit."""

    __slots__ = ("_long_unit_bytes", "data", "separator", "stream")

    def __init__(self, stream: Canonical, *, long_unit_bytes: int = LONG_UNIT_BYTES) -> None:
        self.stream = stream
        self._long_unit_bytes = long_unit_bytes
        self.separator = stream.rule.separator
        self.data = b""

    def fill(self) -> None:
        """Read on until a unit is whole, or known to be long. Empty afterwards: the text has ended."""
        while self.separator not in self.data and len(self.data) < self._long_unit_bytes:
            piece = self.stream.read()
            if not piece:
                return
            self.data += piece

    def drop(self, count: int) -> None:
        self.data = self.data[count:]

    def first(self) -> bytes:
        return self.data.partition(self.separator)[0]

    def mark(self) -> _Mark:
        return _Mark(self.data, self.stream.line_start)

    def marked_line(self, mark: _Mark) -> memoryview:
        """The line that began at the mark: canonical where the window held it all, else as in the text."""
        if self.separator in mark.data:
            return memoryview(mark.data)[: mark.data.find(self.separator)]
        return self.stream.text[mark.line_start : self._line_end(mark)]

    def pass_marked_line(self, mark: _Mark) -> None:
        if self.separator in mark.data:
            self.data = mark.data[mark.data.find(self.separator) + 1 :]
        else:
            self.data = b""
            self.stream.seek(min(self._line_end(mark) + 1, len(self.stream.text)))

    def _line_end(self, mark: _Mark) -> int:
        text = self.stream.text
        for at in range(mark.line_start, len(text), LONG_UNIT_BYTES):
            if (found := bytes(text[at : at + LONG_UNIT_BYTES]).find(b"\n")) >= 0:
                return at + found
        return len(text)


def walk(
    output: Window,
    expected: Window,
    first_unlike: FirstUnlike,
    *,
    fold_case: bool = False,
    long_alike: LongAlike | None = None,
) -> Difference | None:
    """The first difference, or None where the texts are alike."""
    separator = expected.separator
    units = 0
    while True:
        output.fill()
        expected.fill()
        got, want = output.data, expected.data
        if not got or not want:
            if not got and not want:
                return None
            return Difference(
                units + 1,
                quote(output.first()) if got else None,
                quote(expected.first()) if want else None,
            )
        common = min(len(got), len(want))
        if _same(got[:common], want[:common], fold_case):
            if cut := want.rfind(separator, 0, common) + 1:
                units += want.count(separator, 0, cut)
                output.drop(cut)
                expected.drop(cut)
                continue
        elif whole := min(got.count(separator), want.count(separator)):
            *got_units, output.data = got.split(separator, whole)
            *want_units, expected.data = want.split(separator, whole)
            unlike = first_unlike(got_units, want_units)
            if unlike < whole:
                return _difference(units + unlike + 1, got_units[unlike], want_units[unlike], fold_case)
            units += whole
            continue
        difference = _pass_long_unit(output, expected, units + 1, fold_case, long_alike)
        if difference is not None:
            return difference
        units += 1


def _pass_long_unit(
    output: Window, expected: Window, unit: int, fold_case: bool, long_alike: LongAlike | None
) -> Difference | None:
    """Pass over one unit of which at least one side is not whole in its window."""
    separator = expected.separator
    output_mark, expected_mark = output.mark(), expected.mark()
    inside = False
    while True:
        got, want = output.data, expected.data
        common = min(len(got), len(want))
        end = want.find(separator, 0, common) + 1
        part = end or common
        if not _same(got[:part], want[:part], fold_case):
            break
        output.drop(part)
        expected.drop(part)
        if end:
            return None
        inside = True
        # Both go on: had either unit ended here, its separator would have been in the part.
        output.fill()
        expected.fill()
    if long_alike is not None and long_alike(output.marked_line(output_mark), expected.marked_line(expected_mark)):
        output.pass_marked_line(output_mark)
        expected.pass_marked_line(expected_mark)
        return None
    return _difference(unit, output.first(), expected.first(), fold_case, inside=inside)


def _same(one: bytes, other: bytes, fold_case: bool) -> bool:
    return one == other or (fold_case and one.lower() == other.lower())


def _difference(unit: int, got: bytes, want: bytes, fold_case: bool, *, inside: bool = False) -> Difference:
    at = first_difference(got.lower(), want.lower()) if fold_case else first_difference(got, want)
    return Difference(unit, quote(got, at, inside=inside), quote(want, at, inside=inside))


def first_difference(one: bytes, other: bytes) -> int:
    """Offset of the first byte that differs; the shorter length where one begins with the other."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def quote(text: bytes, at: int = 0, *, inside: bool = False) -> str:
    """At most QUOTED_BYTES of `text` around offset `at`, printable; `inside` says that more came before."""
    start = 0 if len(text) <= QUOTED_BYTES else max(0, at - _QUOTED_BEFORE)
    shown = text[start : start + QUOTED_BYTES].decode("utf-8", "backslashreplace")
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    before = "..." if inside or start > 0 else ""
    after = "..." if start + QUOTED_BYTES < len(text) else ""
    return f"{before}'{shown}'{after}"
