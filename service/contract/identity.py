"""What a problem is known by: the hash of its canonical JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring
from typing import Annotated, Final

from pydantic import Field

from service.contract.problems import Problem

ProblemId = Annotated[
    str,
    Field(
        pattern=r"^sha256:[0-9a-f]{64}$",
        description="Id of a stored problem, as `PUT /problems` returned it.",
        examples=["sha256:" + "0123456789abcdef" * 4],
    ),
]

#: How much of a long string of a problem is written out as JSON at once.
_PIECE_CHARS: Final = 2**20

#: How many items of a list are.
_PIECE_ITEMS: Final = 2**12


def canonical_chunks(problem: Problem) -> Iterator[bytes]:
    """The problem's canonical JSON, piece by piece, so that hundreds of megabytes need no second copy.

    Keys sorted, no white space, UTF-8, nothing escaped that JSON lets stand; fields that equal their defaults
    are left out, so that a field with a default can be added to the contract without changing any id.
    """
    for text in _canonical(problem.model_dump(exclude_defaults=True)):
        yield text.encode()


def _canonical(value: object) -> Iterator[str]:
    # The json module can do the same, but has a long string escaped as a whole, and then joined to what stands beside.
    if isinstance(value, str):
        if len(value) <= _PIECE_CHARS:
            yield encode_basestring(value)
            return
        yield '"'
        for start in range(0, len(value), _PIECE_CHARS):
            yield encode_basestring(value[start : start + _PIECE_CHARS])[1:-1]
        yield '"'
    elif isinstance(value, dict):
        yield "{"
        for number, key in enumerate(sorted(value)):
            yield f"{',' if number else ''}{encode_basestring(key)}:"
            yield from _canonical(value[key])
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for start in range(0, len(value), _PIECE_ITEMS):
            if start:
                yield ","
            yield from _canonical_items(value[start : start + _PIECE_ITEMS])
        yield "]"
    else:
        yield json.dumps(value, allow_nan=False)


def _canonical_items(items: Sequence[object]) -> Iterator[str]:
    # Millions of numbers one by one would take ten times as long.
    if all(isinstance(item, int | float | None) for item in items):
        yield json.dumps(items, allow_nan=False, separators=(",", ":"))[1:-1]
        return
    for number, item in enumerate(items):
        if number:
            yield ","
        yield from _canonical(item)


def problem_id(problem: Problem) -> str:
    """`sha256:` and the hex digest of the problem's canonical JSON."""
    digest = hashlib.sha256()
    for chunk in canonical_chunks(problem):
        digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"
