"""More connections than the service may hold, and such as never say what they want."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
import uvicorn

from service.connections import TellsSeldom, bounded
from tests.conftest import Serve
from tests.serving import RKGRADE, assert_nothing_left, poll, serving

pytestmark = pytest.mark.jail

#: Of a body that never comes.
HEAD = b"POST /grade HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"


@contextlib.contextmanager
def connected(url: str, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    host, _, port = url.removeprefix("http://").partition(":")
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(_connection((host, int(port)), sent)) for _ in range(count)]


def _connection(address: tuple[str, int], sent: bytes) -> socket.socket:
    connection = socket.create_connection(address, 10)
    # It may have been turned away by now.
    with contextlib.suppress(ConnectionError):
        connection.sendall(sent)
    return connection


@pytest.mark.parametrize("sent", [b"", b"POST /grade HT", HEAD], ids=["nothing", "half a head", "half a body"])
def test_more_connections_than_descriptors_are_turned_away_and_forgotten(
    grader_data_dir: Path, tmp_path: Path, a_plus_b: dict[str, Any], sent: bytes
) -> None:
    flags = ("--workers", "1", "--languages", "python")
    with serving(grader_data_dir, tmp_path / "log", *flags, descriptors=512) as server:
        before = len(server.log.read_bytes())
        family = server.family()
        with connected(server.url, 700, sent) as connections:
            refused = connections[-1].recv(4096)
            assert refused.startswith(b"HTTP/1.1 503 ")
            assert b"urn:rkgrade:error:unavailable" in refused
        poll(lambda: _answers(server.url), 20, "the service answers again")
        assert httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=60).json()["verdict"] == "accepted"
        with connected(server.url, 700, sent):
            assert server.end() == 0
        assert_nothing_left(family)
        assert len(server.log.read_bytes()) - before < 20_000


def test_a_burst_of_connections_finds_the_service_busy_and_is_kept(serve: Serve) -> None:
    most = int(Path("/proc/sys/net/core/somaxconn").read_text())
    if most < 1024:
        pytest.skip(f"this host keeps no more than {most} connections that are not accepted yet (net.core.somaxconn)")
    asked = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serve("--workers", "1", "--languages", "python") as server:
        server.process.send_signal(signal.SIGSTOP)
        try:
            begun = time.monotonic()
            with connected(server.url, 700, asked) as connections:
                took_s = time.monotonic() - begun
                server.process.send_signal(signal.SIGCONT)
                answers = [connection.recv(4096)[:15] for connection in connections]
        finally:
            server.process.send_signal(signal.SIGCONT)
    # One that finds no place is asked for again after a second.
    assert took_s < 1
    assert set(answers) == {b"HTTP/1.1 200 OK"}


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/live").status_code == 200
    except httpx.TransportError:
        return False


def test_too_few_descriptors_end_with_a_sentence(grader_data_dir: Path) -> None:
    command = ["prlimit", "--nofile=256:256", str(RKGRADE), "serve", "--port", "0", "--data-dir", str(grader_data_dir)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "may open 256 files, and needs 512" in done.stderr


def test_the_limit_on_descriptors_is_raised_as_far_as_it_goes(serve: Serve) -> None:
    with serve("--workers", "1", "--languages", "python") as server:
        soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        assert soft == min(hard, 65_536)


def test_a_connection_without_a_request_is_closed_and_one_at_work_is_not() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(2.5)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def run() -> list[bytes]:
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(application, http=bounded(1024, head_s=1.0), lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listener]))
        try:
            return await asyncio.gather(
                *(
                    _all_of(listener.getsockname(), sent)
                    for sent in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                )
            )
        finally:
            server.should_exit = True
            await serving

    nothing, half, whole = asyncio.run(run())
    assert (nothing, half) == (b"", b"")
    assert whole.startswith(b"HTTP/1.1 204 ")


async def _long_answers(scope: Any, receive: Any, send: Any) -> None:
    """33 MiB: in pieces, or in one that is handed over as a whole and is no longer waited for."""
    piece = bytes(2**20)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/pieces":
        for _ in range(32):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": piece * (1 if scope["path"] == "/pieces" else 33)})


@contextlib.asynccontextmanager
async def _serving_long_answers(**bounds: float) -> AsyncIterator[tuple[uvicorn.Server, Any]]:
    """The server, and its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    protocol = bounded(1024, **bounds)
    server = uvicorn.Server(uvicorn.Config(_long_answers, http=protocol, lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield server, listener.getsockname()
    finally:
        server.should_exit = True
        await serving


async def _read_slowly(address: Any, path: bytes) -> int:
    reader, writer = await _asked(address, path)
    total = 0
    while data := await reader.read(2**17):
        total += len(data)
        await asyncio.sleep(0.01)
    writer.close()
    return total


def test_an_answer_that_nobody_reads_is_given_up_and_one_that_is_read_slowly_is_not() -> None:
    given_up = asyncio.Event()

    async def unread(address: Any, path: bytes) -> int:
        reader, writer = await _asked(address, path)
        transport = writer.transport
        transport.pause_reading()
        try:
            async with asyncio.timeout(20):
                await given_up.wait()
            transport.resume_reading()
            return len(await reader.read())
        except ConnectionError:
            return 0
        finally:
            transport.abort()

    async def run() -> tuple[list[int], list[int]]:
        async with _serving_long_answers(head_s=0.5, read_s=0.5) as (server, address):
            slow = [await _read_slowly(address, path) for path in (b"/pieces", b"/whole")]
            held = [asyncio.create_task(unread(address, path)) for path in (b"/pieces", b"/whole")]
            async with asyncio.timeout(20):
                while len(server.server_state.connections) < 2:
                    await asyncio.sleep(0.01)
                while server.server_state.connections:
                    await asyncio.sleep(0.01)
            given_up.set()
            return slow, await asyncio.gather(*held)

    slow, held = asyncio.run(run())
    assert all(got > 33 * 2**20 for got in slow)
    assert all(got < 33 * 2**20 for got in held)


def test_a_client_that_reads_is_not_given_up_because_the_service_was_held_up() -> None:
    async def hold_up() -> None:
        for _ in range(8):
            time.sleep(0.4)
            await asyncio.sleep(0.03)

    async def run() -> int:
        async with _serving_long_answers(read_s=0.3) as (_, address):
            reading = asyncio.create_task(_read_slowly(address, b"/whole"))
            await asyncio.sleep(0.1)
            await hold_up()
            return await reading

    assert asyncio.run(run()) > 33 * 2**20


async def _asked(address: Any, path: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    connection = socket.socket()
    # Small, so that it is the service that has to hold the answer.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, address)
    reader, writer = await asyncio.open_connection(sock=connection, limit=2**17)
    writer.write(b"GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % path)
    return reader, writer


async def _all_of(address: tuple[str, int], sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(sent)
    async with asyncio.timeout(15):
        data = await reader.read()
    writer.close()
    return data


def test_a_lack_of_descriptors_is_told_in_one_line() -> None:
    handler = TellsSeldom()
    context = {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many open files")}
    with structlog.testing.capture_logs() as lines, contextlib.closing(asyncio.new_event_loop()) as loop:
        for _ in range(2000):
            handler(loop, context)
    assert [(line["event"], line["log_level"]) for line in lines] == [("no connection can be accepted", "error")]
