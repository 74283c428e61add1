"""What judge and warden say to each other: one dict a packet, with descriptors beside it.

The socket is a SOCK_SEQPACKET pair, so a message is never split or joined. This module runs on both sides, in the
jail as a plain script's neighbour. There every import is paid by every cell: `socket` and `json` alone would double the
warden's start, so the C modules below the one serve, and the other is spoken but not imported: towards the jail, whose
warden has no reason to mistrust the judge, messages are marshalled; towards the judge, who has, they are JSON.

Judge to warden:

    {"op": "hello", "program_uid": 1000}               fds: cgroup entries of the warden's own group
    {"op": "load", "into": "/prog", "files": [[name, mode], ...]}
                                                       fds: one a file; copied there, to /box as the program's own
    {"op": "run", "argv": [...], ...Run}        fds: stdin, stdout, stderr, extras..., cgroup entries...
    {"op": "kill"}                                     only while a run is on
    {"op": "session"}                                  from here on the judge speaks to a session alone, as follows
    {"op": "exec", "number": int, "argv": [...], ...}  fds: stdin, stdout, stderr, cgroup entries...
    {"op": "kill", "number": int}                      of an exec
    {"op": "write", "number": int, "path": str}        fds: what the file is to hold
    {"op": "read", "number": int, "path": str}
    {"op": "list", "number": int, "path": str}         fds: where to write it; an empty path is the working directory

Warden to judge:

    {"ready": True}                                    after hello, load
    {"status": int, "cpu_s": float, "wall_s": float, "ended_at": float, "pid": int, "sweeping": bool, "compiled": bool,
     "collected": [name, ...]}                         after run; fds: one for each collected file
     ... "gathered": [name, ...], "left_out": int}     the same where the run said "gather"; fds after those
    {"swept": bool}                                    only where the run said "sweeping"
    {"ended": int, "status": int}                      an exec's first process has ended
    {"done": int} | {"refused": int, "why": "ENOENT"}  after write, read (fds: the file), list ("more": whether cut)
    {"fault": "why"}                                   the warden could not do as asked; the cell is of no more use
"""

from __future__ import annotations

import array
import marshal
import os
from _socket import CMSG_SPACE, MSG_CMSG_CLOEXEC, MSG_CTRUNC, MSG_TRUNC, SCM_RIGHTS, SOL_SOCKET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Sequence
    from typing import Any

MAX_FDS = 64

#: Files that travel at once: fewer than descriptors that fit into one message.
MOST_FILES = 48

#: Where the program works, and where it lies, in every cell.
BOX = "/box"
PROGRAM_DIR = "/prog"

MAX_MESSAGE_BYTES = 64 * 1024

#: Read by every Python 3; judge and warden may be of different ones.
MARSHAL_VERSION = 2

Message = dict[str, "Any"]


def for_warden(message: Message) -> bytes:
    return marshal.dumps(message, MARSHAL_VERSION)


def from_judge(data: bytes) -> object:
    return marshal.loads(data)


def for_judge(message: Message) -> bytes:
    return json_text(message).encode()


def from_warden(data: bytes) -> object:
    """Raises ValueError for what is no JSON."""
    import json

    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def json_text(value: object) -> str:
    """JSON of dicts, lists, strings, booleans and finite numbers, as the warden's messages are made of."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(key)}:{json_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    if isinstance(value, str):
        escaped = "".join(c if " " <= c <= "~" and c not in '"\\' else f"\\u{min(ord(c), 0xFFFF):04x}" for c in value)
        return f'"{escaped}"'
    return repr(value).lower()


def send(sock: socket, data: bytes, fds: Sequence[int] = ()) -> None:
    """Send one message. Raises OSError where the other side is gone, ValueError where it is too long."""
    if len(data) > MAX_MESSAGE_BYTES or len(fds) > MAX_FDS:
        raise ValueError(f"message of {len(data)} bytes and {len(fds)} descriptors is over the limit")
    ancillary = [(SOL_SOCKET, SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([data], ancillary)


def receive(sock: socket, decode: Callable[[bytes], object]) -> tuple[Message, list[int]] | None:
    """Take the next message and its descriptors (close-on-exec); None where the other side is gone.

    Raises ValueError on anything that is not one whole dict.
    """
    space = CMSG_SPACE(MAX_FDS * array.array("i").itemsize)
    data, ancillary, flags, _ = sock.recvmsg(MAX_MESSAGE_BYTES, space, MSG_CMSG_CLOEXEC)
    received = array.array("i")
    for level, kind, payload in ancillary:
        if level == SOL_SOCKET and kind == SCM_RIGHTS:
            received.frombytes(payload[: len(payload) - len(payload) % received.itemsize])
    fds = list(received)
    if not data:
        return None
    try:
        if flags & (MSG_TRUNC | MSG_CTRUNC):
            raise ValueError("truncated message")
        message = decode(data)
        if not isinstance(message, dict):
            raise ValueError("message is not a dict")  # noqa: TRY004
    except ValueError:
        for fd in fds:
            os.close(fd)
        raise
    return message, fds
