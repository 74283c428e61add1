"""One canonical byte stream per text, so that comparing texts up to layout becomes comparing bytes.

Each rule says what layout means nothing; two texts are equal under a rule exactly when their canonical streams are.
A stream is read in blocks and holds no more than a few of them. Knows nothing of numbers, verdicts or messages.

Runs of whitespace are found by arithmetic on a whole block taken as one integer, a byte a lane. Splitting into
tokens or lines would cost more the shorter they are, and outputs of one-byte tokens are the ones a hostile or
broken program prints; this way a block costs the same 1 to 6 ns a byte whatever stands in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

#: What bytes.isspace and C's isspace call whitespace.
ASCII_SPACE = b" \t\n\r\x0b\x0c"

#: What str.isspace calls whitespace below 128.
STR_SPACE = ASCII_SPACE + b"\x1c\x1d\x1e\x1f"

#: Large enough to hide Python's cost per block, small enough for the processor's cache.
BLOCK_BYTES = 64 * 1024


def table(of: bytes, to: int, *, otherwise: int | None = None) -> bytes:
    """A bytes.translate table: the bytes of `of` become `to`, the rest `otherwise` or themselves."""
    return bytes(to if c in of else c if otherwise is None else otherwise for c in range(256))


_IS_SPACE = table(b" ", 0x01, otherwise=0x00)


def collapse_spaces(text: bytes) -> bytes:
    """Make one of each run of b" ". There must be no tab in `text`: the byte marks what goes."""
    if b"  " not in text:
        return text
    space = int.from_bytes(text.translate(_IS_SPACE), "big")
    redundant = space & (space >> 8)
    # 0x29 turns a space into a tab.
    marked = int.from_bytes(text, "big") ^ (redundant * 0x29)
    return marked.to_bytes(len(text), "big").translate(None, b"\t")


class Rule(Protocol):
    """How a text is cut into units, and which layout counts."""

    @property
    def separator(self) -> bytes:
        """The byte that ends every unit of the canonical stream, the last included."""

    @property
    def space(self) -> bytes:
        """The bytes that may mean nothing; the separator is one of them."""

    def body(self, body: bytes) -> bytes:
        """Canonical form of a stretch that neither begins nor ends with whitespace."""

    def gap(self, gap: Gap) -> Iterator[bytes]:
        """Canonical form of the whitespace before a body."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A maximal run of whitespace that something follows."""

    text: memoryview
    block_bytes: int
    opens: bool
    """Whether nothing of the stream came before it."""
    last_newline: int
    """Offset in `text`, or -1."""

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        return blocks(self.text[start:stop], self.block_bytes)


@dataclass(frozen=True, slots=True)
class TokenRule:
    """Tokens parted by any whitespace."""

    space: bytes = ASCII_SPACE
    separator: bytes = field(default=b" ", init=False)
    _to_space: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_to_space", table(self.space, 0x20))

    def body(self, body: bytes) -> bytes:
        return collapse_spaces(body.translate(self._to_space))

    def gap(self, gap: Gap) -> Iterator[bytes]:
        if not gap.opens:
            yield b" "


@dataclass(frozen=True, slots=True)
class LineRule:
    """Lines parted by newlines, without their trailing whitespace (and leading, where `left` is set)."""

    left: bool
    space: bytes = ASCII_SPACE
    separator: bytes = field(default=b"\n", init=False)
    _blank: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        blank = self.space.replace(b"\n", b"")
        object.__setattr__(self, "_blank", table(blank, 0xFF, otherwise=0x00))

    def body(self, body: bytes) -> bytes:
        if b"\n" not in body:
            return body
        if b"\xff" in body:
            # The byte that marks what goes is taken. It is never part of UTF-8, so this is binary noise.
            strip = bytes.strip if self.left else bytes.rstrip
            return b"\n".join([strip(line, self.space) for line in body.split(b"\n")])
        body = self._without_blanks_at_newlines(body, "big")
        return self._without_blanks_at_newlines(body, "little") if self.left else body

    def _without_blanks_at_newlines(self, body: bytes, order: Literal["big", "little"]) -> bytes:
        """Drop blanks before newlines (`big`: carries run towards the text's start) or after them."""
        blank = int.from_bytes(body.translate(self._blank), order)
        newline = int.from_bytes(body.translate(_IS_NEWLINE), order)
        # Adding 1 next to a newline carries through the run of 0xFF lanes that touches it, leaving them 0.
        kept = blank & (blank + (newline << 8))
        dropped = blank ^ kept
        if not dropped:
            return body
        marked = int.from_bytes(body, order) | dropped
        return marked.to_bytes(len(body), order).translate(None, b"\xff")

    def gap(self, gap: Gap) -> Iterator[bytes]:
        rest = gap.last_newline + 1
        for block in gap.blocks(0, rest):
            # A block may hold no newline, and an empty piece would read as the stream's end.
            if newlines := block.count(b"\n"):
                yield b"\n" * newlines
        if not self.left or (rest == 0 and not gap.opens):
            yield from gap.blocks(rest, len(gap.text))


_IS_NEWLINE = table(b"\n", 0x01, otherwise=0x00)


class Canonical:
    """The canonical stream of `text` from `start` on, which must be the start of a unit.

    Whitespace at the end of the text is dropped under every rule.
    """

    __slots__ = ("_block_bytes", "_pieces", "line_start", "rule", "text")

    def __init__(self, text: memoryview, rule: Rule, *, start: int = 0, block_bytes: int = BLOCK_BYTES) -> None:
        self.text = text
        self.rule = rule
        self._block_bytes = block_bytes
        self.seek(start)

    def seek(self, start: int) -> None:
        self.line_start = start
        """Offset in `text` just after the last newline that was read."""
        self._pieces = _read(self.text, start, self.rule, self._block_bytes)

    def read(self) -> bytes:
        """The next piece, of any length; empty at the end."""
        piece, self.line_start = next(self._pieces, (b"", self.line_start))
        return piece


def _read(text: memoryview, start: int, rule: Rule, block_bytes: int) -> Iterator[tuple[bytes, int]]:
    """Pieces, each with the offset of the line that its end stands in.

    No method of Canonical: the two would hold each other, and with them the caller's mapping of the output, until
    the garbage collector came by.
    """
    line_start = position = start
    while (body_start := skip_space(text, position, rule.space, block_bytes)) < len(text):
        if body_start > position:
            run = text[position:body_start]
            last_newline = rfind_any(run, b"\n", block_bytes)
            if last_newline >= 0:
                line_start = position + last_newline + 1
            for piece in rule.gap(Gap(run, block_bytes, position == start, last_newline)):
                yield piece, line_start
        body = bytes(text[body_start : body_start + block_bytes]).rstrip(rule.space)
        if (newline := body.rfind(b"\n")) >= 0:
            line_start = body_start + newline + 1
        yield rule.body(body), line_start
        position = body_start + len(body)
    if position > start:
        yield rule.separator, line_start


def blocks(text: memoryview, block_bytes: int) -> Iterator[bytes]:
    return (bytes(text[at : at + block_bytes]) for at in range(0, len(text), block_bytes))


def skip_space(text: memoryview, start: int, space: bytes, block_bytes: int) -> int:
    """Offset of the first byte at or after `start` that is no whitespace, or the text's length."""
    if start < len(text) and text[start] not in space:
        return start
    for at in range(start, len(text), block_bytes):
        block = bytes(text[at : at + block_bytes])
        # isspace is twenty times as fast as lstrip on a block of nothing else.
        if not block.isspace() and (rest := block.lstrip(space)):
            return at + len(block) - len(rest)
    return len(text)


def rfind_any(text: memoryview, wanted: bytes, block_bytes: int) -> int:
    """Offset of the last byte of `text` that is one of `wanted`, or -1."""
    stop = len(text)
    while stop > 0:
        start = max(0, stop - block_bytes)
        block = bytes(text[start:stop])
        if (found := max(block.rfind(c) for c in wanted)) >= 0:
            return start + found
        stop = start
    return -1


def common_prefix(one: memoryview, other: memoryview, block_bytes: int) -> int:
    """Length of an equal prefix: the whole of the shorter text, or else up to the block that differs."""
    length = min(len(one), len(other))
    for at in range(0, length, block_bytes):
        stop = min(at + block_bytes, length)
        # memoryview's own == goes byte by byte.
        if not bytes(one[at:stop]).startswith(other[at:stop]):
            return at
    return length
