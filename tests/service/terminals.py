"""A client at a terminal of a session: what it types, what it sees, and how that ends."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.slowness import SLOWNESS

WITHIN_S = 20 * SLOWNESS
PROMPT = re.compile(rb"bash-[0-9.]+\$ $")


class Screen:
    """What a client at a terminal sees and does."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.printed = b""
        self.last: dict[str, Any] | None = None

    def type(self, text: str) -> None:
        self.connection.send(text.encode())

    def resize(self, rows: Any, columns: Any) -> None:
        self.connection.send(json.dumps({"rows": rows, "columns": columns}))

    def until(self, seen: str | re.Pattern[bytes]) -> bytes:
        """What is printed up to there, and no longer to be seen the next time."""
        pattern = re.compile(re.escape(seen.encode())) if isinstance(seen, str) else seen
        until = time.monotonic() + WITHIN_S
        while (match := pattern.search(self.printed)) is None:
            try:
                message = self.connection.recv(timeout=max(0.0, until - time.monotonic()))
            except TimeoutError:
                raise AssertionError(f"no {seen!r} in {self.printed!r}") from None
            assert isinstance(message, bytes), message
            self.printed += message
        before, self.printed = self.printed[: match.end()], self.printed[match.end() :]
        return before

    def run(self, line: str) -> str:
        """What a line typed at the prompt prints."""
        self.type(line + "\r")
        self.until("\n")
        said = self.until(PROMPT).decode()
        return PROMPT.sub(b"", said.encode()).decode().replace("\x1b[?2004l", "").replace("\x1b[?2004h", "").strip()

    def end(self) -> tuple[dict[str, Any], int]:
        """The last message, and the code that the connection is closed with."""
        last: list[str] = []
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                message = self.connection.recv(timeout=WITHIN_S)
                if isinstance(message, str):
                    last.append(message)
                else:
                    self.printed += message
        (text,) = last
        assert closed.value.rcvd is not None
        return json.loads(text), closed.value.rcvd.code


def at(url: str, path: str, **query: Any) -> str:
    return f"{url.replace('http', 'ws', 1)}{path}/tty?{urlencode(query)}"


@contextlib.contextmanager
def terminal(url: str, path: str, headers: dict[str, str] | None = None, **query: Any) -> Iterator[Screen]:
    with connect(at(url, path, **query), additional_headers=headers, proxy=None) as connection:
        yield Screen(connection)
