"""Limits in the units that the sets write them in, turned into the contract's.

Every function returns None for what gives no limit: null, blank text, zero or less, text of no known form.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

#: The least memory the contract takes. A smaller limit is raised to it: it is below what any interpreter needs.
_LEAST_MEMORY_MB: Final = 16

#: More of any unit than the contract takes.
_MOST: Final = 10**30

_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*")
_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3}
_MIB = {"": 1.0, "mb": 1.0, "mib": 1.0, "megabyte": 1.0, "megabytes": 1.0, "kb": 2**-10, "kilobytes": 2**-10}
_MIB |= {"gb": 1024.0, "gigabyte": 1024.0, "gigabytes": 1024.0, "bytes": 2**-20}


def seconds(value: Any) -> float | None:
    """Of a number of seconds, text such as `2.0 seconds`, or protobuf's Duration as a struct."""
    if isinstance(value, dict):
        whole, nanos = _positive(value.get("seconds")) or 0.0, _positive(value.get("nanos")) or 0.0
        return _positive(whole + nanos / 1e9)
    if isinstance(value, str):
        return _quantity(value, _SECONDS)
    return _positive(value)


def milliseconds(value: Any) -> float | None:
    """Seconds, of a number of milliseconds."""
    number = _positive(value)
    return None if number is None else number / 1e3


def memory_mb(value: Any) -> int | None:
    """MiB, of a number of MB or text such as `256.0 megabytes`; the sets' megabytes are taken for MiB, as judges do."""
    number = _quantity(value, _MIB) if isinstance(value, str) else _positive(value)
    return None if number is None else max(_LEAST_MEMORY_MB, math.ceil(number))


def memory_mb_of_bytes(value: Any) -> int | None:
    """MiB, of a number of bytes."""
    number = _positive(value)
    return None if number is None else memory_mb(number / 2**20)


def _quantity(text: str, units: dict[str, float]) -> float | None:
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2].lower() not in units:
        return None
    return _positive(float(match[1]) * units[match[2].lower()])


def _positive(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        return None
    # Integers may be beyond all floats; no limit of that size is taken either way.
    return float(min(value, _MOST))
