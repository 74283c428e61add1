"""The head of a safetensors file: which tensors lie where in it. Reads and writes no tensor.

Format: https://huggingface.co/docs/safetensors: the length of the head (8 bytes, little endian), the head (JSON, padded
with spaces), the tensors one after the other. The library of that name maps files into memory, and what was read of a
mapped file counts as the process's own; here tensors are read in pieces, so that memory does not grow with them.
"""

from __future__ import annotations

import json
import stat
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from rl_client.merge.errors import BadCheckpoint

#: Bytes of an element of each type whose elements are whole bytes.
ITEM_BYTES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "F8_E8M0": 1,
    "I16": 2,
    "U16": 2,
    "F16": 2,
    "BF16": 2,
    "I32": 4,
    "U32": 4,
    "F32": 4,
    "I64": 8,
    "U64": 8,
    "F64": 8,
    "C64": 8,
}
METADATA = "__metadata__"
#: The format's own bound.
_HEAD_BYTES = 100_000_000


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in a file."""

    name: str
    dtype: str
    """As safetensors calls it, such as BF16."""
    shape: tuple[int, ...]
    path: Path
    offset: int
    """From the file's beginning, in bytes."""
    bytes: int

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def item_bytes(self) -> int:
        return ITEM_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Head:
    """A file's head."""

    tensors: tuple[Tensor, ...]
    """In the order in which they lie in the file."""
    metadata: dict[str, str]


def read_head(path: Path) -> Head:
    """The head of a file, held against the file's size. Raises BadCheckpoint."""
    try:
        there = path.stat()
        # A pipe would be waited for.
        if not stat.S_ISREG(there.st_mode):
            raise BadCheckpoint(path, "is no file that can be read from its beginning to its end")
        size = there.st_size
        with path.open("rb") as file:
            first = file.read(8)
            if len(first) < 8:
                raise BadCheckpoint(path, f"is no safetensors file: it has {size} bytes, and the first 8 are a length")
            (length,) = struct.unpack("<Q", first)
            if length > min(size - 8, _HEAD_BYTES):
                raise BadCheckpoint(
                    path, f"is cut short, or no safetensors file: a head of {length:,} bytes in {size:,}"
                )
            text = file.read(length)
    except OSError as error:
        raise BadCheckpoint(path, error.strerror or str(error)) from error
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadCheckpoint(path, f"is no safetensors file: its head is no JSON: {error}") from error
    if not isinstance(head, dict):
        raise BadCheckpoint(path, "is no safetensors file: its head is no JSON object")
    metadata = head.pop(METADATA, None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise BadCheckpoint(path, f"{METADATA} is no object of strings")
    begin = 8 + length
    tensors = sorted((_tensor(path, name, entry, begin) for name, entry in head.items()), key=lambda one: one.offset)
    end = begin
    for tensor in tensors:
        if tensor.offset != end and tensor.bytes:
            raise BadCheckpoint(path, f"tensor {tensor.name} does not begin where the one before it ends")
        end += tensor.bytes
    if end != size:
        what = "is cut short" if size < end else "has bytes behind its last tensor"
        raise BadCheckpoint(path, f"{what}: {size:,} bytes, where its head tells of {end:,}")
    return Head(tuple(tensors), metadata)


def _tensor(path: Path, name: str, entry: Any, begin: int) -> Tensor:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise BadCheckpoint(path, f"tensor {name!a}: has a name with half of a surrogate pair") from None
    match entry:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(first), int(last)]}:
            pass
        case _:
            raise BadCheckpoint(path, f"tensor {name}: needs dtype, shape and data_offsets")
    if not all(type(side) is int and side >= 0 for side in shape):
        raise BadCheckpoint(path, f"tensor {name}: shape {shape} is none")
    if dtype not in ITEM_BYTES:
        raise BadCheckpoint(path, f"tensor {name}: dtype {dtype} is not known")
    if not 0 <= first <= last or last - first != prod(shape) * ITEM_BYTES[dtype]:
        raise BadCheckpoint(path, f"tensor {name}: {dtype} {shape} does not fit data_offsets {[first, last]}")
    return Tensor(name, dtype, tuple(shape), path, begin + first, last - first)


def head_bytes(tensors: Iterable[Tensor], metadata: Mapping[str, str]) -> bytes:
    """The head of a file that holds these tensors in this order."""
    head: dict[str, Any] = {METADATA: dict(metadata)}
    end = 0
    for tensor in tensors:
        head[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [end, end + tensor.bytes],
        }
        end += tensor.bytes
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text
