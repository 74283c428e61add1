"""How much structure a JSON body may hold, and what that weighs, looked at before it is parsed.

A parser makes far more of a value and of each mistake than the two bytes that can spell one: a body of the
allowed size could fill the memory many times over. Long strings are what bodies are large for, and are not counted.
Knows nothing of what the values mean.
"""

from __future__ import annotations

from typing import Final

from service.contract import MAX_TESTS
from service.errors import InvalidRequest

#: Names of fields in one body: 450 bytes each where it is unknown. 4096 items of 100 tests each have fewer.
MAX_KEYS: Final = 100 * MAX_TESTS

#: Values in one body.
MAX_VALUES: Final = 500 * MAX_TESTS

#: What each of them takes until it is stored: 100 to 160 bytes, as measured for lists in lists, objects of one field,
#: numbers and short strings.
_EACH_BYTES: Final = 128

#: What the structure of one body can come to.
MOST_WEIGHT_BYTES: Final = _EACH_BYTES * (MAX_KEYS + MAX_VALUES)

#: How much is looked at in one step.
_STEP_BYTES = 2**20


def weigh(body: bytes) -> int:
    """What the structure of the body will take in memory, at most. Raises InvalidRequest where the body holds more
    keys or more values than are parsed.
    """
    keys, values = body.count(b":"), sum(map(body.count, (b",", b"[", b"{")))
    if keys > MAX_KEYS or values > MAX_VALUES:
        # Some of it may stand in strings.
        keys, values = _count(body)
    return _EACH_BYTES * (keys + values)


def _count(body: bytes) -> tuple[int, int]:
    """Keys and values, what stands in strings aside. Raises InvalidRequest as soon as there are too many."""
    # Without escaped quotes, each quote begins or ends a string.
    body = body.replace(rb"\\", b"").replace(rb"\"", b"")
    keys = values = in_string = 0
    for start in range(0, len(body), _STEP_BYTES):
        pieces = body[start : start + _STEP_BYTES].split(b'"')
        outside = b"".join(pieces[in_string::2])
        in_string = (in_string + len(pieces) - 1) % 2
        keys += outside.count(b":")
        # What follows a comma, and the first of each list and object.
        values += sum(map(outside.count, (b",", b"[", b"{")))
        if keys > MAX_KEYS:
            raise InvalidRequest(
                f"the body holds more than {MAX_KEYS:,} names of fields; store problems first, and refer to them by id"
            )
        if values > MAX_VALUES:
            raise InvalidRequest(f"the body holds more than {MAX_VALUES:,} values")
    return keys, values
