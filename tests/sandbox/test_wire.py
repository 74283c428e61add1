"""What judge and warden say to each other: whole messages, descriptors beside them, nothing else."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator

import pytest

from sandbox.jail import wire
from tests.sandbox.cells import open_fds


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        yield one, other


Direction = tuple[Callable[[wire.Message], bytes], Callable[[bytes], object]]
TO_WARDEN: Direction = (wire.for_warden, wire.from_judge)
TO_JUDGE: Direction = (wire.for_judge, wire.from_warden)


@pytest.mark.parametrize("direction", [TO_WARDEN, TO_JUDGE], ids=["to warden", "to judge"])
def test_messages_arrive_whole_and_in_order(pair: tuple[socket.socket, socket.socket], direction: Direction) -> None:
    encode, decode = direction
    messages: list[wire.Message] = [
        {"op": "run", "argv": ["a", ""], "limits": [[1, 2**40]], "on": True, "off": False},
        {"text": 'ü\n\0"\\\x7f', "cpu_s": 0.25, "tiny": 1e-9, "status": -1},
        {},
    ]
    for message in messages:
        wire.send(pair[0], encode(message))
    assert [wire.receive(pair[1], decode) for _ in messages] == [(message, []) for message in messages]


@pytest.mark.parametrize("count", [1, 3, wire.MAX_FDS])
def test_descriptors_travel_in_order_and_close_on_exec(pair: tuple[socket.socket, socket.socket], count: int) -> None:
    pipes = [os.pipe() for _ in range(count)]
    wire.send(pair[0], wire.for_warden({"op": "x"}), [reader for reader, _ in pipes])
    received = wire.receive(pair[1], wire.from_judge)
    assert received is not None
    message, fds = received
    for number, (_, writer) in enumerate(pipes):
        os.write(writer, str(number).encode())
    assert message == {"op": "x"}
    assert [os.read(fd, 10) for fd in fds] == [str(number).encode() for number in range(count)]
    assert not any(os.get_inheritable(fd) for fd in fds)
    for fd in (*fds, *(end for ends in pipes for end in ends)):
        os.close(fd)


def test_too_many_descriptors_are_refused_before_they_are_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(ValueError, match="over the limit"):
        wire.send(pair[0], wire.for_warden({}), [0] * (wire.MAX_FDS + 1))


def test_the_longest_message_arrives_and_a_longer_one_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    overhead = len(wire.for_warden({"t": ""}))
    longest = {"t": "x" * (wire.MAX_MESSAGE_BYTES - overhead)}
    wire.send(pair[0], wire.for_warden(longest))
    assert wire.receive(pair[1], wire.from_judge) == (longest, [])
    with pytest.raises(ValueError, match="over the limit"):
        wire.send(pair[0], wire.for_warden({"t": longest["t"] + "x"}))


def test_a_peer_that_is_gone_is_no_message(pair: tuple[socket.socket, socket.socket]) -> None:
    wire.send(pair[0], wire.for_warden({"last": 1}))
    pair[0].close()
    assert wire.receive(pair[1], wire.from_judge) == ({"last": 1}, [])
    assert wire.receive(pair[1], wire.from_judge) is None
    with pytest.raises(BrokenPipeError):
        wire.send(pair[1], wire.for_warden({}))


@pytest.mark.parametrize(
    "packet",
    [
        b"{",
        b"[1]",
        b"None",
        b'"op"',
        b"{}[0]",
        b"{'op': 1}",
        b"(" * 9000,
        b"\xff\xfe\xfd",
        b"x" * (wire.MAX_MESSAGE_BYTES + 1),
    ],
)
def test_anything_but_one_dict_is_refused(pair: tuple[socket.socket, socket.socket], packet: bytes) -> None:
    pair[0].send(packet)
    with pytest.raises(ValueError):  # Of several makers; the callers treat them alike.
        wire.receive(pair[1], wire.from_warden)


def test_a_refused_message_leaves_no_descriptor_open(pair: tuple[socket.socket, socket.socket]) -> None:
    before = open_fds()
    reader, writer = os.pipe()
    socket.send_fds(pair[0], [b"[]"], [reader])
    os.close(reader)
    os.close(writer)
    with pytest.raises(ValueError, match="not a dict"):
        wire.receive(pair[1], wire.from_warden)
    assert open_fds() == before
