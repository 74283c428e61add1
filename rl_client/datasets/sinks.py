"""Where imported problems go: to a grader over HTTP, to a file, or nowhere.

A sink takes parcels in order and answers for each, in the same order, whether it was taken. Knows nothing of data sets.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Protocol

import httpx

from rl_client.datasets.outputs import Output

#: Problems on their way to the grader at once, and the bytes of them: whichever is reached first.
CONNECTIONS = 4
IN_FLIGHT_BYTES = 64 * 2**20

#: How long one problem is tried again while the grader is busy, starting or out of reach.
PATIENCE_S = 300.0
_FIRST_DELAY_S = 0.25
_LONGEST_DELAY_S = 30.0

_RETRIED = frozenset({429, 500, 502, 503, 504})
_REFUSED = frozenset({400, 413, 422})


class SinkError(Exception):
    """Nothing more can be put there. The message is one line."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """One problem on its way."""

    problem_id: str
    content: bytes
    """Canonical JSON."""
    ticket: Any
    """The sender's own; comes back with the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a parcel."""

    parcel: Parcel
    refusal: str | None = None
    """Why it was not taken."""


class Sink(Protocol):
    def put(self, parcel: Parcel) -> Iterator[Answer]:
        """Take a parcel; yields what is known by now, of this or earlier ones. Raises SinkError."""
        ...

    def finish(self) -> Iterator[Answer]:
        """Wait for what is still on its way. Raises SinkError."""
        ...


class NoSink:
    """Takes everything and keeps nothing: for a dry run."""

    def put(self, parcel: Parcel) -> Iterator[Answer]:
        yield Answer(parcel)

    def finish(self) -> Iterator[Answer]:
        yield from ()


class FileSink:
    """One problem a line, each once, however often it comes."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._written: set[bytes] = set()

    def put(self, parcel: Parcel) -> Iterator[Answer]:
        digest = bytes.fromhex(parcel.problem_id.removeprefix("sha256:"))
        if digest not in self._written:
            self._output.write_line(parcel.content)
            self._written.add(digest)
        yield Answer(parcel)

    def finish(self) -> Iterator[Answer]:
        yield from ()


@dataclass(frozen=True, slots=True)
class _Job:
    parcel: Parcel
    refusal: Future[str | None]


class GraderSink:
    """Puts problems to a grader, several at once, and waits where it is busy.

    `PUT /problems` is all or nothing and can be repeated, so whatever goes wrong no problem is there twice or in part.
    To be used as a context manager.
    """

    def __init__(self, url: str, *, patience_s: float = PATIENCE_S) -> None:
        self._url = url.rstrip("/")
        self._patience_s = patience_s
        self._client = httpx.Client(timeout=httpx.Timeout(300.0, connect=10.0))
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        # Daemons: an import that is ended does not wait for a grader that answers nothing.
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(CONNECTIONS)]
        self._in_flight: deque[_Job] = deque()
        self._stopped = threading.Event()

    def __enter__(self) -> GraderSink:
        """Raises SinkError at once where no grader answers there, rather than after the first rows were read."""
        try:
            answer = self._client.get(f"{self._url}/health/live")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            self._client.close()
            raise SinkError(f"no grader answers at {self._url}: {_words(error)}") from error
        if answer.status_code != 200:
            self._client.close()
            raise SinkError(f"{self._url} answers {answer.status_code} to /health/live: is it a grader?")
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for _ in self._threads:
            self._jobs.put(None)
        if kind is None:
            for thread in self._threads:
                thread.join()
            self._client.close()

    def put(self, parcel: Parcel) -> Iterator[Answer]:
        # A parcel larger than the bound goes alone.
        while self._in_flight and (
            len(self._in_flight) >= 2 * CONNECTIONS
            or len(parcel.content) + sum(len(job.parcel.content) for job in self._in_flight) > IN_FLIGHT_BYTES
        ):
            yield self._first()
        job = _Job(parcel, Future())
        self._in_flight.append(job)
        self._jobs.put(job)

    def finish(self) -> Iterator[Answer]:
        while self._in_flight:
            yield self._first()

    def _first(self) -> Answer:
        job = self._in_flight.popleft()
        return Answer(job.parcel, job.refusal.result())

    def _work(self) -> None:
        """What each thread does."""
        while (job := self._jobs.get()) is not None:
            if self._stopped.is_set():
                return
            try:
                job.refusal.set_result(self._deliver(job.parcel))
            # Whatever it is, it is raised where the answer is asked for.
            except Exception as error:  # noqa: BLE001
                job.refusal.set_exception(error)

    def _deliver(self, parcel: Parcel) -> str | None:
        """The grader's reason to refuse it, or None. Raises SinkError."""
        waited_s, delay_s = 0.0, _FIRST_DELAY_S
        while True:
            try:
                answer = self._client.put(
                    f"{self._url}/problems", content=parcel.content, headers={"Content-Type": "application/json"}
                )
            except httpx.TransportError as error:
                trouble, wait_s = _words(error), delay_s
            else:
                if answer.status_code not in _RETRIED:
                    return self._settled(parcel, answer)
                trouble = f"it answers {answer.status_code} {answer.reason_phrase}"
                wait_s = _retry_after_s(answer) or delay_s
            if waited_s + wait_s > self._patience_s:
                raise SinkError(f"the grader at {self._url} took no problem for {self._patience_s:.0f} s: {trouble}")
            # Spread, so that threads refused together do not knock together again.
            wait_s *= random.uniform(1, 1.25)
            if self._stopped.wait(wait_s):
                raise SinkError("stopped")
            waited_s, delay_s = waited_s + wait_s, min(2 * delay_s, _LONGEST_DELAY_S)

    def _settled(self, parcel: Parcel, answer: httpx.Response) -> str | None:
        if answer.status_code in _REFUSED:
            return f"the grader refused it ({answer.status_code}): {_detail(answer)}"
        if not answer.is_success:
            raise SinkError(f"the grader at {self._url} answers {answer.status_code}: {_detail(answer)}")
        named = _field(answer, "id")
        if named != parcel.problem_id:
            raise SinkError(
                f"the grader at {self._url} calls a problem {named} that is {parcel.problem_id} here: "
                "its version of the contract is another"
            )
        return None


def _retry_after_s(answer: httpx.Response) -> float | None:
    """Seconds (RFC 9110, 10.2.3); a date there is passed over."""
    text = answer.headers.get("Retry-After", "")
    return min(float(text), _LONGEST_DELAY_S) if text.isdecimal() else None


def _detail(answer: httpx.Response) -> str:
    detail, field = _field(answer, "detail"), _field(answer, "field")
    if not isinstance(detail, str):
        return answer.reason_phrase
    return f"{field}: {detail}" if isinstance(field, str) and field not in detail else detail


def _field(answer: httpx.Response, name: str) -> object:
    try:
        content = answer.json()
    except ValueError:
        return None
    return content.get(name) if isinstance(content, dict) else None


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
