"""A server of models that speaks OpenAI's API: `/chat/completions`, `/completions` and `/models`, as vLLM, SGLang,
llama.cpp and others have them.

What is busy or out of reach is asked again, ever more seldom and at random, for as long as there is patience. A prompt
that the model has no room for is an error of that prompt's; any other refusal is one of the whole evaluation's, since
all its requests are alike. Knows no problems and no graders.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import httpx

from rl_client import address
from rl_client.evaluate.errors import PromptTooLong, ServerUnfit, ServerUnreachable
from rl_client.evaluate.prompts import Messages
from rl_client.patience import Patience
from rl_client.sendable import sendable

_LOG = logging.getLogger(__name__)

#: For an answer to begin: thousands of tokens for each of several samples, behind a queue.
TIMEOUT_S = 3600.0
CONNECT_S = 10.0

#: Between two warnings that a server is waited for.
_TOLD_EVERY_S = 60.0

_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})

#: How servers say that a prompt does not fit: OpenAI's and llama.cpp's codes, and sentences of vLLM, SGLang, TGI.
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|(maximum|available|model's) context|context (length|size|window)"
    r"|maximum model length|max_model_len|max_seq_len|prompt is too long|input is too long"
    r"|`inputs` (tokens|must have less)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Choice:
    """One sample."""

    text: str
    reasoning: str | None
    finish_reason: str | None


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request came to."""

    choices: tuple[Choice, ...]
    prompt_tokens: int | None
    completion_tokens: int | None
    seconds: float


class ModelServer:
    """One server, for one event loop. To be used as a context manager."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        connections: int = 32,
        patience_s: float = 300.0,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """`url`: with the `/v1` that most have. `key`: sent with each request. Raises ValueError of no address."""
        self.url = address.checked(url, "--server")
        self._patience_s = patience_s
        self._told_at_s = -math.inf
        self._client = httpx.AsyncClient(
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(timeout_s, connect=CONNECT_S, pool=None),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )

    async def __aenter__(self) -> ModelServer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def models(self, patience_s: float | None = None) -> tuple[str, ...]:
        """The names of the models that it has; none where it does not say. `patience_s`: other than usual.

        Raises ServerError.
        """
        answer = await self._answer("GET", "/models", None, patience_s)
        if answer.status_code in (404, 405):
            return ()
        content = self._content(answer)
        rows = content.get("data")
        if not isinstance(rows, list):
            raise self._unfit("/models", "there is no list `data`")
        return tuple(sendable(str(row["id"])) for row in rows if isinstance(row, dict) and "id" in row)

    async def chat(self, messages: Messages, samples: int, fields: Mapping[str, Any]) -> Reply:
        """At most `samples` of the next turn. Raises PromptTooLong, ServerError."""
        return await self._ask("/chat/completions", {**fields, "messages": messages, "n": samples}, samples)

    async def complete(self, prompt: str, samples: int, fields: Mapping[str, Any]) -> Reply:
        """At most `samples` of what follows. Raises PromptTooLong, ServerError."""
        return await self._ask("/completions", {**fields, "prompt": prompt, "n": samples}, samples)

    async def _ask(self, path: str, body: Mapping[str, Any], samples: int) -> Reply:
        begun_s = time.monotonic()
        answer = await self._answer("POST", path, body)
        if answer.status_code in (400, 413, 422) and _TOO_LONG.search(answer.text):
            raise PromptTooLong(sendable(_reason(answer)))
        content = self._content(answer)
        rows = content.get("choices")
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            raise self._unfit(path, "there is no `choices` with a choice")
        rows.sort(key=lambda row: row["index"] if isinstance(row.get("index"), int) else 0)
        usage = content.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        return Reply(
            tuple(self._choice(path, row) for row in rows[:samples]),
            _count(counts.get("prompt_tokens")),
            _count(counts.get("completion_tokens")),
            time.monotonic() - begun_s,
        )

    def _choice(self, path: str, row: dict[str, Any]) -> Choice:
        message = row.get("message") if path.startswith("/chat") else row
        name = "content" if path.startswith("/chat") else "text"
        # A chat's content is null where all of it was thought.
        if not isinstance(message, dict) or not isinstance(text := message.get(name) or "", str):
            raise self._unfit(path, f"a choice has no `{name}`")
        thought = message.get("reasoning_content") or message.get("reasoning")
        reason = row.get("finish_reason")
        return Choice(
            sendable(text),
            sendable(thought) if isinstance(thought, str) else None,
            sendable(reason) if isinstance(reason, str) else None,
        )

    async def _answer(
        self, method: str, path: str, body: Mapping[str, Any] | None, patience_s: float | None = None
    ) -> httpx.Response:
        """The first answer that is no "ask again". Raises ServerUnreachable."""
        patience_s = self._patience_s if patience_s is None else patience_s
        patience = Patience(patience_s)
        while True:
            asked_s = None
            try:
                answer = await self._client.request(method, f"{self.url}{path}", json=body)
            except (httpx.TransportError, httpx.DecodingError) as error:
                trouble = str(error) or type(error).__name__
            else:
                if answer.status_code not in _RETRIED:
                    return answer
                trouble = f"it answers {answer.status_code}: {_reason(answer)}"
                after = answer.headers.get("Retry-After", "")
                asked_s = float(after) if after.isdecimal() else None
            wait_s = patience.wait_s(asked_s)
            if wait_s is None:
                raise ServerUnreachable(
                    f"the model's server at {self.url} did not take {path} for {patience_s:g} s: {trouble}"
                )
            if time.monotonic() - self._told_at_s >= _TOLD_EVERY_S:
                self._told_at_s = time.monotonic()
                _LOG.warning("the model's server at %s: %s; it is asked again", self.url, trouble)
            await asyncio.sleep(wait_s)

    def _content(self, answer: httpx.Response) -> dict[str, Any]:
        """What a success holds. Raises ServerUnfit."""
        path = answer.request.url.path
        if not answer.is_success:
            raise ServerUnfit(
                f"the model's server at {self.url} answers {answer.status_code} to {path}: {_reason(answer)}"
            )
        content = _json(answer)
        if not isinstance(content, dict):
            raise self._unfit(path, "it is no JSON object")
        return content

    def _unfit(self, path: str, reason: str) -> ServerUnfit:
        return ServerUnfit(f"the model's server at {self.url} answers {path} not as OpenAI's API does: {reason}")


def _json(answer: httpx.Response) -> object:
    """None of what is no JSON, or is nested too deeply to be read."""
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _reason(answer: httpx.Response) -> str:
    """The server's own word: OpenAI's `error.message`, vLLM's old `message`, FastAPI's `detail`, or the text."""
    content = _json(answer)
    if isinstance(content, dict):
        error = content.get("error")
        found = error.get("message") if isinstance(error, dict) else error
        content = found or content.get("message") or content.get("detail")
    words = content if isinstance(content, str) else answer.text
    return " ".join(words.split())[:300] or answer.reason_phrase
