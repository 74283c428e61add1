"""How much structure a JSON body may hold, looked at before it is parsed.

A parser makes some 60 to 450 bytes of each value and each mistake, where two bytes can spell one: a body of the
allowed size could fill the memory many times over. Long strings are what bodies are large for, and are not counted.
Knows nothing of what the values mean.
"""

from __future__ import annotations

from typing import Final

from service.contract import MAX_TESTS
from service.errors import InvalidRequest

#: Names of fields in one body: 450 bytes each where it is unknown. 4096 items of 100 tests each have fewer.
MAX_KEYS: Final = 100 * MAX_TESTS

#: Values in one body. 60 bytes each while they are parsed, 100 for empty lists.
MAX_VALUES: Final = 500 * MAX_TESTS

#: How much is looked at in one step.
_STEP_BYTES = 2**20


def check_structure(body: bytes) -> None:
    """Raises InvalidRequest where the body holds more keys or more values than are parsed."""
    if body.count(b":") <= MAX_KEYS and sum(map(body.count, (b",", b"[", b"{"))) <= MAX_VALUES:
        return
    # Some of it may stand in strings. Without escaped quotes, each quote begins or ends one.
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
