"""What an engine and its workers say to each other over a socket: a JSON header and a body of bytes, both
prefixed by length.

The body is what would be costly to quote again: a request on the way in, a finished GradeResult on the way
out. Knows nothing of what either means.

    engine -> worker   setup                  once
                       grade + request        one at a time
                       vet + problem          likewise
                       run + request          likewise
                       cancel                 of a job that may be over by now; makes the socket readable, which
                                              is what the judge looks for while it runs
    worker -> engine   ready
                       alive                  every second of a job
                       result + GradeResult | ran + RunResult | vetted | cancelled | refused | fault
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from dataclasses import dataclass
from typing import Any

_LENGTHS = struct.Struct("!II")


@dataclass(frozen=True, slots=True)
class Frame:
    kind: str
    fields: dict[str, Any]
    body: bytes = b""

    def encode(self) -> bytes:
        header = json.dumps({"kind": self.kind, **self.fields}).encode()
        return _LENGTHS.pack(len(header), len(self.body)) + header + self.body

    @classmethod
    def decode(cls, encoded: bytes) -> Frame:
        """A whole frame, as `encode` made it. Raises ValueError for what is none."""
        try:
            header_length, _ = _LENGTHS.unpack_from(encoded)
            start = _LENGTHS.size + header_length
            return _decode(encoded[_LENGTHS.size : start], encoded[start:])
        except (struct.error, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"no frame: {type(error).__name__}") from error


def _decode(header: bytes, body: bytes) -> Frame:
    fields = json.loads(header)
    return Frame(fields.pop("kind"), fields, body)


async def read_frame(reader: asyncio.StreamReader) -> Frame | None:
    """The next frame, or None where the other side is gone, in the middle of a frame or between two."""
    try:
        header_length, body_length = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
        header = await reader.readexactly(header_length)
        return _decode(header, await reader.readexactly(body_length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def receive_frame(connection: socket.socket) -> Frame | None:
    """The same for the blocking side."""
    lengths = _receive(connection, _LENGTHS.size)
    if lengths is None:
        return None
    header_length, body_length = _LENGTHS.unpack(lengths)
    header, body = _receive(connection, header_length), _receive(connection, body_length)
    if header is None or body is None:
        return None
    return _decode(header, body)


def _receive(connection: socket.socket, length: int) -> bytes | None:
    data = bytearray(length)
    view = memoryview(data)
    try:
        while view:
            count = connection.recv_into(view)
            if count == 0:
                return None
            view = view[count:]
    except ConnectionError:
        return None
    return bytes(data)
