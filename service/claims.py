"""What headers say of a request beside its body: who asks, until when, and under which key it may be asked again."""

from __future__ import annotations

import hashlib
import hmac
import math
from dataclasses import dataclass, replace
from typing import TypeVar

from starlette.datastructures import Headers
from starlette.requests import Request

from service.engines.base import Engine, Job, ToolCall
from service.errors import InvalidRequest
from service.guard import client

W = TypeVar("W", Job, ToolCall)

_CLIENT, _KEY, _DEADLINE = "X-Client-Id", "Idempotency-Key", "X-Deadline-S"

_MOST_CHARS = 255

#: A day: whoever wants to wait longer sends no deadline.
_LONGEST_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Claim:
    client: str
    key: str | None
    deadline_s: float | None

    @classmethod
    def of(cls, request: Request) -> Claim:
        """Raises InvalidRequest naming the header."""
        headers = request.headers
        deadline = headers.get(_DEADLINE)
        return cls(
            # Whose token it is cannot be chosen; what else calls itself by a name shares what it is given.
            client=client(request) or _text(headers, _CLIENT) or "",
            key=_text(headers, _KEY),
            deadline_s=None if deadline is None else _seconds(deadline),
        )

    def without_key(self, why: str) -> Claim:
        """For what has no key, since its results are not kept. Raises InvalidRequest, saying why, where one came."""
        if self.key is not None:
            raise InvalidRequest.at(_KEY, why)
        return self

    def on(self, work: W) -> W:
        """The work, claimed."""
        return replace(work, client=self.client, deadline_s=self.deadline_s)

    async def under_key(self, job: Job, engine: Engine, *, keep_s: int) -> Job:
        """The job, claimed; where it has a key, its answer is kept for `keep_s`, and found by whoever asks again.

        Raises Unavailable.
        """
        job = self.on(job)
        if self.key is None:
            return job
        # Names are shown, and anybody can claim one where there are no tokens; keys are easily guessed. So the id, by
        # which a job is read and stopped, hangs on what only the service knows.
        identifier = hmac.digest(await engine.secret(), f"{self.client}\0{self.key}".encode(), "sha256").hex()[:32]
        return replace(job, id=identifier, keep_s=keep_s, fingerprint=fingerprint(job))


def fingerprint(job: Job) -> str:
    """Equal for requests that ask the same."""
    return hashlib.sha256(job.request.model_dump_json(exclude_defaults=True).encode()).hexdigest()


def _text(headers: Headers, name: str) -> str | None:
    text = headers.get(name)
    if text is not None and not (0 < len(text) <= _MOST_CHARS and text.isascii() and text.isprintable()):
        raise InvalidRequest.at(name, f"between 1 and {_MOST_CHARS} printable ASCII characters")
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _LONGEST_S:
        raise InvalidRequest.at(_DEADLINE, f"seconds, more than 0 and at most {_LONGEST_S:,.0f}")
    return seconds
