"""The steps of which talk with a grader is made, whoever takes them.

An exchange is a generator. It yields steps and is sent what became of them; what it returns is what came of it all:

    Ask      send this request          -> the answer (of a streamed one, its head); httpx' error is thrown in
    More     wait for more of a stream  -> bytes, or None where it has ended;        httpx' error is thrown in
    Pause    wait so long               -> None
    Hold     wait for the turn at a key -> None; it is given up by `Release`, or when the exchange ends
    Release  give up that turn          -> None
    Found    hand this to the caller    -> None

`Grader` takes these steps with threads, `AsyncGrader` on an event loop.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from service.contract import GradeResult


@dataclass(frozen=True, slots=True)
class Ask:
    method: str
    url: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    timeout: httpx.Timeout | None = None
    """None: the client's own."""
    stream: bool = False


@dataclass(frozen=True, slots=True)
class More:
    pass


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Hold:
    key: str


@dataclass(frozen=True, slots=True)
class Release:
    key: str


@dataclass(frozen=True, slots=True)
class Found:
    result: GradeResult


T = TypeVar("T")
Step = Ask | More | Pause | Hold | Release | Found
Exchange = Generator[Step, Any, T]
