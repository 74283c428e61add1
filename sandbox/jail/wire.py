"""What judge and warden say to each other: one JSON object a packet, with descriptors beside it.

The socket is a SOCK_SEQPACKET pair, so a message is never split or joined. This module runs on both sides, in the
jail as a plain script's neighbour: standard library only, and nothing here may depend on which side it is on.

Judge to warden:

    {"op": "hello", "program_uid": 1000}               fds: cgroup entries of the warden's own group
    {"op": "load", "files": [[name, mode], ...]}       fds: one a file; copied to /prog, read-only for the program
    {"op": "run", "argv": [...] | null, ...Run}        fds: stdin, stdout, stderr, collected..., cgroup entries...
    {"op": "kill"}                                     only while a run is on

Warden to judge:

    {"ready": true}                                    after hello, load
    {"status": int, "cpu_s": float, "wall_s": float, "collected": [name, ...], "sweeping": bool}   after run;
                                                       fds: one for each collected file
    {"swept": bool}                                    only where the run said "sweeping"
    {"fault": "why"}                                   the warden could not do as asked; the cell is of no more use
"""

from __future__ import annotations

import array
import json
import os
import socket
from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_FDS = 64
MAX_MESSAGE_BYTES = 64 * 1024

Message = dict[str, "Any"]


def send(sock: socket.socket, message: Message, fds: Sequence[int] = ()) -> None:
    """Send one message. Raises OSError where the other side is gone, ValueError where it is too long."""
    data = json.dumps(message, separators=(",", ":")).encode()
    if len(data) > MAX_MESSAGE_BYTES or len(fds) > MAX_FDS:
        raise ValueError(f"message of {len(data)} bytes and {len(fds)} descriptors is over the limit")
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([data], ancillary)


def receive(sock: socket.socket) -> tuple[Message, list[int]] | None:
    """Take the next message and its descriptors (close-on-exec); None where the other side is gone.

    Raises ValueError on anything that is not one whole JSON object.
    """
    data, ancillary, flags, _ = sock.recvmsg(
        MAX_MESSAGE_BYTES, socket.CMSG_SPACE(MAX_FDS * array.array("i").itemsize), socket.MSG_CMSG_CLOEXEC
    )
    received = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received.frombytes(payload[: len(payload) - len(payload) % received.itemsize])
    fds = list(received)
    if not data:
        return None
    try:
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            raise ValueError("truncated message")
        message = json.loads(data)
        if not isinstance(message, dict):
            raise ValueError("message is not an object")  # noqa: TRY004
    except ValueError:
        for fd in fds:
            os.close(fd)
        raise
    return message, fds
