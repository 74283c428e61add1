"""What stands before every route: who asks, in whose name, and whether a browser was tricked into asking.

Whatever is not listed as open needs a token, where tokens are set, so that a route added later is not forgotten.

Without tokens the service trusts whoever reaches its address, which by default is this machine. So do web pages that
its user reads. None of them can read answers, since no CORS header is ever sent, but two roads remain:

- A page of another origin has the browser send requests whose answers it cannot read (cross-site request forgery).
  Browsers say so, in Sec-Fetch-Site or in Origin, and such requests are refused. Programs send neither.
- A page's own name is made to mean this address (DNS rebinding), whereupon the browser takes the service for the
  page's own. The Host header still bears that name: it must be a number or a name that is known to mean this service.

With tokens neither needs a check of Host: a page has no token, and the browser none to add for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.auth import Tokens, digest_of
from service.errors import CrossSite, Misdirected, ServiceError, Unauthorized
from service.problem_json import answer_to

_TOKEN_NEEDED = 'Bearer realm="rkgrade"'
_TOKEN_REFUSED = f'{_TOKEN_NEEDED}, error="invalid_token"'

#: On every answer, unless a route knows better: nothing here is a page, is kept, or is part of another site.
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Guard:
    """ASGI middleware, for requests and for WebSockets, which begin as one."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Tokens | None,
        hosts: Iterable[str],
        open_paths: Iterable[str],
        count: Callable[[str], None],
        served: Callable[[str], None],
    ) -> None:
        """`hosts`: names by which the service may be called where no token is needed. `open_paths`: what needs none
        ever. `count`: told the type of each refusal. `served`: told the name of the client with each request let in
        by a token.
        """
        self._app = app
        self._tokens = tokens
        self._hosts = frozenset(host.lower() for host in hosts)
        self._open_paths = frozenset(open_paths)
        self._count = count
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._admit(scope)
        except ServiceError as error:
            self._count(error.type)
            answer = answer_to(error, scope.get("state", {}).get("request_id"))
            await answer(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _admit(self, scope: Scope) -> None:
        """Raises Unauthorized, CrossSite and Misdirected."""
        headers = Headers(scope=scope)
        if self._tokens is None:
            self._check_host(headers.get("host"))
        if scope["path"] in self._open_paths:
            return
        if _is_cross_site(headers):
            raise CrossSite("a page of another site may not use this service")
        if self._tokens is not None:
            name, digest = self._client(headers.getlist("authorization"), self._tokens)
            scope.setdefault("state", {}).update(client=name, token=digest)
            structlog.contextvars.bind_contextvars(client=name)
            self._served(name)

    def _client(self, authorization: list[str], tokens: Tokens) -> tuple[str, bytes]:
        """The client's name, and its token's hash. Raises Unauthorized."""
        if not authorization:
            raise Unauthorized(
                "send a token of this service: `Authorization: Bearer TOKEN`",
                headers={"WWW-Authenticate": _TOKEN_NEEDED},
            )
        scheme, _, token = authorization[0].partition(" ")
        name = tokens.name_of(token.strip()) if scheme.lower() == "bearer" and len(authorization) == 1 else None
        if name is None:
            raise Unauthorized("this token is not good here", headers={"WWW-Authenticate": _TOKEN_REFUSED})
        return name, digest_of(token.strip())

    def _check_host(self, sent: str | None) -> None:
        # Only HTTP/1.0 may leave it out, which no browser speaks.
        if sent is None:
            return
        host = _without_port(sent).lower().rstrip(".")
        if host not in self._hosts and not _is_address(host):
            raise Misdirected(
                f"{host!r} is not known to mean this service; if it does, name it in --allowed-hosts / "
                "RKGRADE_ALLOWED_HOSTS, or have clients show a token (--tokens-file / RKGRADE_TOKENS_FILE)"
            )


def client(request: HTTPConnection) -> str:
    """The name that belongs to the request's token; empty where none was needed."""
    name: str = getattr(request.state, "client", "")
    return name


def token(request: HTTPConnection) -> bytes | None:
    """The hash of the request's token; None where none was needed."""
    digest: bytes | None = getattr(request.state, "token", None)
    return digest


def _is_cross_site(headers: Headers) -> bool:
    """Whether a browser says that a page of another origin is behind the request (Fetch Metadata; RFC 6454)."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        # `none`: typed by the user.
        return site not in ("same-origin", "none")
    # Browsers leave the one out where the connection cannot be trusted; the other stands in every POST and PUT.
    origin = headers.get("origin")
    return origin is not None and _netloc(origin) != headers.get("host", "").lower()


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
