"""Where imported problems go: to a grader over HTTP, to a file, or nowhere.

A sink takes parcels in order and answers for each, in the same order, whether it was taken. Knows nothing of data sets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Protocol

from rl_client.client import Grader
from rl_client.datasets.outputs import Output
from rl_client.encoded import EncodedProblem
from rl_client.errors import Refused
from rl_client.patience import PATIENCE_S
from rl_client.workers import Workers

#: Problems on their way to the grader at once, and the bytes of them: whichever is reached first.
CONNECTIONS = 4
IN_FLIGHT_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Parcel:
    """One problem on its way."""

    problem: EncodedProblem
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
        """Take a parcel; yields what is known by now, of this or earlier ones. Raises GraderError."""
        ...

    def finish(self) -> Iterator[Answer]:
        """Wait for what is still on its way. Raises GraderError."""
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
        digest = bytes.fromhex(parcel.problem.id.removeprefix("sha256:"))
        if digest not in self._written:
            self._output.write_line(parcel.problem.content)
            self._written.add(digest)
        yield Answer(parcel)

    def finish(self) -> Iterator[Answer]:
        yield from ()


@dataclass(frozen=True, slots=True)
class _Delivery:
    parcel: Parcel
    refusal: Future[str | None]


class GraderSink:
    """Puts problems to a grader, several at once, and waits where it is busy.

    `PUT /problems` is all or nothing and can be repeated, so whatever goes wrong no problem is there twice or in part.
    To be used as a context manager.
    """

    def __init__(self, url: str, *, token: str | None = None, patience_s: float = PATIENCE_S) -> None:
        """`token`: sent with each request, where the grader asks for one."""
        self._grader = Grader(url, token=token, connections=CONNECTIONS, patience_s=patience_s)
        self._workers = Workers(CONNECTIONS)
        self._in_flight: deque[_Delivery] = deque()

    def __enter__(self) -> GraderSink:
        """Raises GraderError at once where no grader answers there, or none that takes the token, rather than after the
        first rows were read.
        """
        try:
            self._grader.check()
        except BaseException:
            self._grader.close()
            raise
        self._workers.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._grader.close()
        self._workers.__exit__(kind, error, trace)
        self._grader.__exit__(kind, error, trace)

    def put(self, parcel: Parcel) -> Iterator[Answer]:
        # A parcel larger than the bound goes alone.
        size = len(parcel.problem.content)
        while self._in_flight and (
            len(self._in_flight) >= 2 * CONNECTIONS
            or size + sum(len(one.parcel.problem.content) for one in self._in_flight) > IN_FLIGHT_BYTES
        ):
            yield self._first()
        refusal = self._workers.submit(partial(self._deliver, parcel.problem))
        self._in_flight.append(_Delivery(parcel, refusal))

    def finish(self) -> Iterator[Answer]:
        while self._in_flight:
            yield self._first()

    def _first(self) -> Answer:
        delivery = self._in_flight.popleft()
        return Answer(delivery.parcel, delivery.refusal.result())

    def _deliver(self, problem: EncodedProblem) -> str | None:
        """The grader's reason to refuse it, or None."""
        try:
            self._grader.put_problem(problem)
        except Refused as refused:
            return str(refused)
        return None
