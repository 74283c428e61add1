"""An HTTP server that answers as graders in trouble do, which no real one can be made to do at will."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    path: str
    body: bytes
    connection: int
    """The client's port."""
    headers: Message

    @property
    def authorization(self) -> str | None:
        return self.headers.get("Authorization")


Reply = Callable[[Asked], tuple[int, dict[str, str], object]]
"""Status, headers, and what the body holds: bytes as they are, or what is to be JSON. Several threads call it at once.

A Content-Length among the headers is sent as it is, true or not.
"""


def after_trouble(content: object) -> Reply:
    """Of a grader that is down at first, in each of the ways in which one is, and then answers with this."""
    down = iter([(503, {"Retry-After": "0"}), (502, {}), (429, {"Retry-After": "0"}), (500, {})])
    lock = threading.Lock()

    def reply(_: Asked) -> tuple[int, dict[str, str], object]:
        with lock:
            status, headers = next(down, (200, {}))
        return status, headers, content if status == 200 else {}

    return reply


@contextmanager
def answering(reply: Reply, port: int = 0) -> Iterator[str]:
    """The server's address; its port is one that is free, unless one is said."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_PUT(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def do_DELETE(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(self.command, self.path, body, self.client_address[1], self.headers)
            status, headers, content = reply(asked)
            text = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(text))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
