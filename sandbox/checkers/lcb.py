"""LiveCodeBench's rule for the output of stdin problems, on bytes and in bounded memory.

The rule, as its testing_util has it: both texts are stripped and split at newlines, each line is stripped; the line
counts must be equal, and each pair of lines must be equal, or else both split into tokens that are all Decimals, and
the two lists of Decimals equal. It is about str: whitespace and digits are Unicode's. Bytes that are no UTF-8 count
as characters of their own, equal only to themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import InvalidOperation

from sandbox.checkers.canonical import (
    BLOCK_BYTES,
    STR_SPACE,
    Canonical,
    LineRule,
    TokenRule,
    collapse_spaces,
    table,
)
from sandbox.checkers.numbers import MAX_NUMBER_BYTES, parse_decimal, same_decimal, strict_decimal
from sandbox.checkers.walk import Window, walk

LINES = LineRule(left=True, space=STR_SPACE)
_TOKENS = TokenRule(space=STR_SPACE)

#: What str.isspace calls whitespace from 128 on.
WIDE_SPACE = "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"

# Each wide space becomes \x1c and five more bytes of ASCII whitespace, and a real \x1c becomes \x1c\x1d. No two texts
# become the same, so after this the rule needs to know of bytes only. A sequence of UTF-8 begins with a byte that
# stands nowhere else in one, so replacing finds wide spaces among invalid bytes too, just as the decoder does.
_REWRITTEN = {b"\x1c": b"\x1c\x1d"} | {
    character.encode(): b"\x1c" + f"{number:05b}".encode().translate(bytes.maketrans(b"01", b"\x1e\x1f"))
    for number, character in enumerate(WIDE_SPACE)
}
_LONGEST_REWRITTEN = max(map(len, _REWRITTEN))


def with_ascii_space(text: memoryview, block_bytes: int = BLOCK_BYTES) -> memoryview:
    """The text with all its whitespace in ASCII: itself where it has no other, else a copy.

    The one place in the text checkers that copies a whole text (up to threefold, where it is all U+0085).
    """
    if not any(map(_has_wide_space, _characters(text, block_bytes))):
        return text
    rewritten = bytearray()
    for block in _characters(text, block_bytes):
        # \x1c comes first in the dictionary, so none that was put there is taken for a real one.
        for space, instead in _REWRITTEN.items():
            block = block.replace(space, instead)
        rewritten += block
    return memoryview(rewritten)


def _has_wide_space(block: bytes) -> bool:
    if block.isascii():
        return b"\x1c" in block
    return any(space in block for space in _REWRITTEN)


def _characters(text: memoryview, block_bytes: int) -> Iterator[bytes]:
    """The text in blocks that are never cut between the bytes of a wide space."""
    at = 0
    while at < len(text):
        stop = min(at + max(block_bytes, _LONGEST_REWRITTEN), len(text))
        for _ in range(_LONGEST_REWRITTEN - 1):
            if stop < len(text) and text[stop] & 0xC0 == 0x80:
                stop -= 1
        yield bytes(text[at:stop])
        at = stop


_BLANK_TO_SPACE = table(STR_SPACE.replace(b"\n", b""), 0x20)
_NOT_LAYOUT = bytes(c for c in range(256) if c not in b" \n")


def first_unlike_line(output: list[bytes], expected: list[bytes]) -> int:
    """Index of the first pair of stripped lines that the rule tells apart, or the lists' length."""
    if _all_decimals_alike(output, expected):
        return len(expected)
    for index, (got, want) in enumerate(zip(output, expected, strict=True)):
        if got != want and not _decimals_alike(got, want):
            return index
    return len(expected)


def _decimals_alike(got: bytes, want: bytes) -> bool:
    got_tokens, want_tokens = got.translate(_BLANK_TO_SPACE).split(), want.translate(_BLANK_TO_SPACE).split()
    return len(got_tokens) == len(want_tokens) and all(map(same_decimal, got_tokens, want_tokens))


def _all_decimals_alike(output: list[bytes], expected: list[bytes]) -> bool:
    """Whether all lines are alike by their Decimals, for many lines at once; False says nothing."""
    got = collapse_spaces(b"\n".join(output).translate(_BLANK_TO_SPACE))
    want = collapse_spaces(b"\n".join(expected).translate(_BLANK_TO_SPACE))
    # The same spaces and newlines in the same order: as many tokens on every line.
    if got.translate(None, _NOT_LAYOUT) != want.translate(None, _NOT_LAYOUT):
        return False
    got_tokens = got.decode("utf-8", "surrogateescape").split()
    want_tokens = want.decode("utf-8", "surrogateescape").split()
    if max(map(len, got_tokens + want_tokens), default=0) > MAX_NUMBER_BYTES:
        return False
    try:
        return list(map(strict_decimal, got_tokens)) == list(map(strict_decimal, want_tokens))
    except InvalidOperation:
        # A token that is no number, or a signalling NaN, which refuses to be compared.
        return False


def long_lines_alike(output: memoryview, expected: memoryview, block_bytes: int = BLOCK_BYTES) -> bool:
    """Whether two differing lines are alike by their Decimals, without holding either."""
    # Each token of one side must be a number even where the other side has the same one.
    tokens = Window(Canonical(expected, _TOKENS, block_bytes=block_bytes))
    while True:
        tokens.fill()
        if not tokens.data:
            break
        *whole, tokens.data = tokens.data.split(b" ")
        if not whole:
            return False
        digits_only = not b"".join(whole).translate(None, b"0123456789")
        if digits_only and max(map(len, whole)) <= MAX_NUMBER_BYTES:
            continue
        if None in map(parse_decimal, whole):
            return False

    def side(line: memoryview) -> Window:
        return Window(Canonical(line, _TOKENS, block_bytes=block_bytes))

    return walk(side(output), side(expected), _first_unlike_decimal) is None


def _first_unlike_decimal(output: list[bytes], expected: list[bytes]) -> int:
    for index, (got, want) in enumerate(zip(output, expected, strict=True)):
        if not same_decimal(got, want):
            return index
    return len(expected)
