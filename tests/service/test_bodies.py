from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import re
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard
from starlette.requests import Request
from starlette.types import Message

from service.bodies import _SMALL_BYTES, _SOME_PERMITS, LARGE_BYTES, Bodies
from service.contract import PROBLEMS
from service.errors import (
    BodyTooLarge,
    ClientGone,
    ClientSilent,
    ServiceError,
    Unavailable,
)

MIB = 2**20
TEXT = b'{"kind": "stdio"}' * 1000


def decode(encoding: str | None, *chunks: bytes, limit_bytes: int = MIB, length: int | None = None) -> bytes:
    """What is made of a body that arrives in these chunks."""
    headers = [] if encoding is None else [(b"content-encoding", encoding.encode())]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    last = len(chunks) - 1
    arriving: Iterator[Message] = iter(
        {"type": "http.request", "body": chunk, "more_body": number < last}
        for number, chunk in enumerate(chunks or (b"",))
    )

    async def receive() -> Message:
        return next(arriving)

    return asyncio.run(take_in(Bodies(limit_bytes), receive, headers))


async def take_in(
    bodies: Bodies, receive: Callable[[], Awaitable[Message]], headers: list[tuple[bytes, bytes]] | None = None
) -> bytes:
    request = Request({"type": "http", "method": "POST", "headers": headers or []}, receive)
    async with bodies.read(request) as body:
        return body.getvalue()


@pytest.mark.parametrize(
    ("encoding", "body"), [(None, TEXT), ("gzip", gzip.compress(TEXT)), ("zstd", zstandard.compress(TEXT))]
)
def test_the_limit_counts_decompressed_bytes_exactly(encoding: str | None, body: bytes) -> None:
    assert decode(encoding, body, limit_bytes=len(TEXT)) == TEXT
    with pytest.raises(BodyTooLarge):
        decode(encoding, body, limit_bytes=len(TEXT) - 1)


def test_a_declared_length_past_the_limit_is_refused_unread() -> None:
    with pytest.raises(BodyTooLarge):
        decode(None, b"x", length=MIB + 1)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_costs_little_more_than_the_limit(encoding: str) -> None:
    compressor = zlib.compressobj(9, wbits=31) if encoding == "gzip" else zstandard.ZstdCompressor().compressobj()
    zeros = bytes(MIB)
    bomb = b"".join(compressor.compress(zeros) for _ in range(512)) + compressor.flush()
    assert len(bomb) < MIB
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLarge):
            decode(encoding, bomb, limit_bytes=8 * MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * MIB


def test_no_body_may_take_for_ever() -> None:
    async def receive() -> Message:
        await asyncio.sleep(0.05)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def read() -> None:
        request = Request({"type": "http", "method": "POST", "headers": []}, receive)
        async with Bodies(MIB, whole_s=0.3).read(request):
            pass

    with pytest.raises(ClientSilent, match=r"had not arrived after 0\.3 s"):
        asyncio.run(asyncio.wait_for(read(), 10))


def test_a_refused_body_is_read_on_so_that_the_client_gets_to_read_the_answer() -> None:
    read: list[bytes] = []

    async def receive() -> Message:
        read.append(b"")
        return {"type": "http.request", "body": bytes(MIB), "more_body": len(read) < 5}

    with pytest.raises(ServiceError):
        asyncio.run(take_in(Bodies(MIB // 2), receive))
    assert len(read) == 5


def test_a_client_that_leaves_in_the_middle_is_told_apart() -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientGone):
        asyncio.run(take_in(Bodies(MIB), receive))


LARGE = bytes(LARGE_BYTES + 1)


class Sent:
    """A body that arrives as it is told to, and what was taken of it."""

    def __init__(self, *chunks: bytes) -> None:
        self.taken = 0
        self.end = asyncio.Event()
        self._chunks = chunks

    async def __call__(self) -> Message:
        if self.taken == len(self._chunks):
            await self.end.wait()
            return {"type": "http.request", "body": b"", "more_body": False}
        self.taken += 1
        return {"type": "http.request", "body": self._chunks[self.taken - 1], "more_body": True}


async def turn_until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


def test_a_third_large_body_is_left_unread_until_one_of_two_is_done_with() -> None:
    async def scenario() -> None:
        bodies = Bodies(16 * MIB, permits=2)
        holders = [Sent(LARGE), Sent(LARGE)]
        waiting, small = Sent(LARGE, LARGE), Sent(bytes(LARGE_BYTES))
        tasks = [asyncio.create_task(take_in(bodies, sent)) for sent in (*holders, waiting)]
        await turn_until(lambda: waiting.taken == 1)
        small.end.set()
        # Small ones pass; what waits is not read on.
        assert len(await take_in(bodies, small)) == LARGE_BYTES
        assert waiting.taken == 1
        holders[0].end.set()
        assert await tasks[0] == LARGE
        await turn_until(lambda: waiting.taken == 2)
        waiting.end.set()
        assert await tasks[2] == LARGE + LARGE
        holders[1].end.set()
        assert await tasks[1] == LARGE

    asyncio.run(scenario())


def test_bodies_that_are_neither_small_nor_large_are_bounded_in_number_too() -> None:
    async def scenario() -> None:
        bodies = Bodies(16 * MIB)
        some = bytes(_SMALL_BYTES + 1)
        holders = [Sent(some) for _ in range(_SOME_PERMITS)]
        waiting, small = Sent(some, some), Sent(bytes(_SMALL_BYTES))
        tasks = [asyncio.create_task(take_in(bodies, sent)) for sent in (*holders, waiting)]
        await turn_until(lambda: waiting.taken == 1)
        small.end.set()
        assert len(await take_in(bodies, small)) == _SMALL_BYTES
        assert waiting.taken == 1
        holders[0].end.set()
        await turn_until(lambda: waiting.taken == 2)
        for sent in (*holders, waiting):
            sent.end.set()
        assert [len(body) for body in await asyncio.gather(*tasks)] == [*[len(some)] * _SOME_PERMITS, 2 * len(some)]

    asyncio.run(scenario())


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_that_waits_for_a_permit_holds_little(encoding: str) -> None:
    content = bytes(200 * MIB)
    bomb = gzip.compress(content, 1) if encoding == "gzip" else zstandard.compress(content)
    headers = [(b"content-encoding", encoding.encode())]

    async def scenario() -> int:
        bodies = Bodies(256 * MIB, permits=1)
        holder, waiting = Sent(LARGE), Sent(bomb)
        held = asyncio.create_task(take_in(bodies, holder))
        await turn_until(lambda: holder.taken == 1)
        tracemalloc.start()
        waits = asyncio.create_task(take_in(bodies, waiting, headers))
        for _ in range(1000):
            await asyncio.sleep(0)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert waiting.taken == 1
        assert not waits.done()
        for task in (held, waits):
            task.cancel()
        await asyncio.gather(held, waits, return_exceptions=True)
        return peak

    assert asyncio.run(scenario()) < 4 * LARGE_BYTES


def test_a_large_body_that_gets_no_permit_is_told_to_come_back() -> None:
    async def scenario() -> None:
        bodies = Bodies(16 * MIB, permits=1, wait_s=0.05)
        holder, waiting = Sent(LARGE), Sent(LARGE)
        held = asyncio.create_task(take_in(bodies, holder))
        await turn_until(lambda: holder.taken == 1)
        waiting.end.set()
        with pytest.raises(Unavailable) as refused:
            await take_in(bodies, waiting)
        assert refused.value.headers == {"Retry-After": "1"}
        holder.end.set()
        assert await held == LARGE

    asyncio.run(scenario())


def test_a_client_that_falls_silent_with_a_permit_loses_it() -> None:
    async def scenario() -> None:
        bodies = Bodies(16 * MIB, permits=1, silence_s=0.05)
        with pytest.raises(ClientSilent) as refused:
            await take_in(bodies, Sent(LARGE))
        assert (refused.value.status, refused.value.headers) == (408, {"Connection": "close"})
        after = Sent(LARGE)
        after.end.set()
        assert await take_in(bodies, after) == LARGE

    asyncio.run(scenario())


def test_a_client_that_sends_a_byte_now_and_then_with_a_permit_loses_it() -> None:
    async def scenario() -> None:
        bodies = Bodies(16 * MIB, permits=1, grace_s=0.2)
        parts = itertools.chain([LARGE], itertools.repeat(b" "))

        async def receive() -> Message:
            await asyncio.sleep(0.01)
            return {"type": "http.request", "body": next(parts), "more_body": True}

        with pytest.raises(ClientSilent, match="less than 16 KiB/s") as refused:
            await asyncio.wait_for(take_in(bodies, receive), 10)
        assert refused.value.status == 408
        after = Sent(LARGE)
        after.end.set()
        assert await take_in(bodies, after) == LARGE

    asyncio.run(scenario())


def test_a_client_that_keeps_its_pace_may_take_longer_than_the_grace() -> None:
    async def scenario() -> None:
        bodies = Bodies(16 * MIB, grace_s=0.2)
        parts = iter([bytes(_SMALL_BYTES + 1), *[bytes(4096)] * 40])

        async def receive() -> Message:
            # 80 KiB a second: five times what is asked for.
            await asyncio.sleep(0.05)
            part = next(parts, None)
            return {"type": "http.request", "body": part or b"", "more_body": part is not None}

        assert len(await take_in(bodies, receive)) == _SMALL_BYTES + 1 + 40 * 4096

    asyncio.run(scenario())


def test_time_that_a_client_is_made_to_wait_does_not_count() -> None:
    async def scenario() -> None:
        bodies = Bodies(16 * MIB, permits=1, grace_s=0.2)
        holder, waiting = Sent(LARGE), Sent(LARGE)
        waiting.end.set()

        async def hold() -> None:
            request = Request({"type": "http", "method": "POST", "headers": []}, holder)
            holder.end.set()
            async with bodies.read(request):
                await asyncio.sleep(1.0)

        held = asyncio.create_task(hold())
        await turn_until(lambda: holder.taken == 1)
        assert await take_in(bodies, waiting) == LARGE
        await held

    asyncio.run(scenario())


def test_a_permit_is_held_until_what_was_parsed_is_done_with() -> None:
    async def scenario() -> None:
        bodies = Bodies(16 * MIB, permits=1, wait_s=0.05)
        text = json.dumps({"kind": "stdio", "tests": [{"input": "x" * LARGE_BYTES, "output": ""}]}).encode()
        first, second, third = Sent(text), Sent(LARGE), Sent(LARGE)
        for sent in (first, second, third):
            sent.end.set()
        request = Request({"type": "http", "method": "PUT", "headers": []}, first)
        async with bodies.parsed(request, PROBLEMS) as problem:
            assert len(problem.tests[0].given) == LARGE_BYTES
            with pytest.raises(Unavailable):
                await take_in(bodies, second)
        assert await take_in(bodies, third) == LARGE

    asyncio.run(scenario())


def test_bodies_of_much_structure_wait_for_room_and_light_ones_do_not() -> None:
    """The first two come to two thirds of the room each, though neither is large."""

    def body(values: int) -> Sent:
        args = [[[] for _ in range(values)]]
        sent = Sent(json.dumps({"kind": "call", "function": "f", "tests": [{"args": args, "expected": 1}]}).encode())
        sent.end.set()
        return sent

    async def scenario() -> None:
        bodies = Bodies(16 * MIB, room_bytes=36 * MIB, wait_s=0.2)

        def parsed(sent: Sent) -> AbstractAsyncContextManager[Any]:
            return bodies.parsed(Request({"type": "http", "method": "PUT", "headers": []}, sent), PROBLEMS)

        async with parsed(body(100_000)):
            with pytest.raises(Unavailable, match="send this one later"):
                async with parsed(body(100_000)):
                    raise AssertionError("there is no room")
            async with parsed(body(100)) as light:
                assert len(light.tests[0].args[0]) == 100
        async with parsed(body(100_000)) as heavy:
            assert len(heavy.tests[0].args[0]) == 100_000

    asyncio.run(scenario())


@pytest.mark.jail
def test_large_bodies_at_once_are_taken_in_two_at_a_time(grader_url: str, grader: Any) -> None:
    """Eight bodies of a few hundred kilobytes, each 100 MB when decompressed: memory must not hold them all."""
    status = Path(f"/proc/{grader.process.pid}/status")
    Path(f"/proc/{grader.process.pid}/clear_refs").write_text("5")
    body = gzip.compress(json.dumps({"kind": "stdio", "tests": [{"input": "x" * 100 * MIB}]}).encode(), 1)

    async def scenario() -> list[int]:
        async with httpx.AsyncClient(timeout=120) as client:
            sent = (
                client.put(f"{grader_url}/problems", content=body, headers={"Content-Encoding": "gzip"})
                for _ in range(8)
            )
            return [answer.status_code for answer in await asyncio.gather(*sent)]

    assert asyncio.run(scenario()) == [422] * 8
    peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
    assert peak is not None
    assert int(peak[1]) < 8 * 100 * 1024
