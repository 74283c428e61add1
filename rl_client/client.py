"""`Grader`: a grader over HTTP, for whoever trains on it or feeds it. With threads; `AsyncGrader` is for event loops.

What is said and when to ask again is decided in `rl_client.exchange`; this sends, waits and lets go. Knows nothing of
rewards or data sets. Needs httpx and pydantic alone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

import httpx

from rl_client.compression import Compression
from rl_client.connections import Connections
from rl_client.encoded import EncodedProblem
from rl_client.errors import GaveUp
from rl_client.exchange import Exchanges
from rl_client.patience import PATIENCE_S
from rl_client.sessions import Session
from rl_client.steps import Ask, Exchange, Found, Hold, More, Pause, Release, Step
from rl_client.tool_exchange import ToolExchanges
from service.contract import GradeRequest, GradeResult, LanguageRow, RunRequest, RunResult, SessionRequest

T = TypeVar("T")

CONNECTIONS = 8


class Grader:
    """One grader; any number of threads may use it at once, and share its connections, which are kept open.

    A grader that is busy (429, 503), fails (500, 502, 504) or is out of reach is asked again, after the time it asks
    for (Retry-After) or ever longer ones, for `patience_s` at most. Every request can be repeated without harm:
    problems are stored by their hash, and a grade that nobody waits for is cancelled.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        connections: int = CONNECTIONS,
        patience_s: float = PATIENCE_S,
        compression: Compression = "auto",
    ) -> None:
        """`token`: sent with each request, where the grader asks for one. `connections`: requests on their way at once;
        further ones wait for one that is free. `patience_s`: seconds. `compression`: of large bodies.

        Raises ValueError, naming the argument, and of `zstd` where `zstandard` is not installed.
        """
        self._exchanges = Exchanges(url, token=token, patience_s=patience_s, compression=compression)
        self._tools = ToolExchanges(self._exchanges)
        self.url = self._exchanges.url
        self._connections = Connections(connections, self._exchanges.connection())
        self._turns: dict[str, threading.Lock] = {}
        self._given_up = threading.Event()

    def __enter__(self) -> Grader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nobody waits any more: requests that would be tried again, and new ones, raise GaveUp.

        Connections are closed as the requests that are on their way have their answers.
        """
        self._given_up.set()
        self._connections.close()

    def check(self) -> None:
        """Raises GraderError at once where no grader answers, or none that takes the token."""
        self._run(self._exchanges.check())

    def languages(self) -> tuple[LanguageRow, ...]:
        """What can be graded there. Raises GraderError."""
        return self._run(self._exchanges.languages())

    def put_problem(self, problem: EncodedProblem, *, again: bool = False) -> None:
        """Store the problem, unless it was stored by this client before; `again` stores it all the same.

        Raises Refused, GraderError.
        """
        self._run(self._exchanges.put_problem(problem, again=again))

    def grade(self, request: GradeRequest, *, deadline_s: float | None = None) -> GradeResult:
        """Grade one program; a fault of the grader's at it is a result too, whose category is null.

        A problem that the request holds is stored first, once, and goes by its id then. `deadline_s`: seconds from now
        after which nobody wants the answer; the grader is told, and does not grade what is too late.

        Raises Refused, UnknownProblem where `problem` is the id of none that is stored there, DeadlinePassed, and
        GraderError.
        """
        return self._run(self._exchanges.grade(request, deadline_s=deadline_s))

    def grade_batch(
        self, requests: Sequence[GradeRequest], *, deadline_s: float | None = None
    ) -> Generator[GradeResult, None, None]:
        """Grade many programs in one request, or few; each result comes as it ends, and its `index` tells of which.

        Where the connection breaks, those that are missing are asked for again. What it raises is what `grade` does;
        where one request is refused nothing of its batch is graded.
        """
        return self._driven(self._exchanges.grade_batch(requests, deadline_s=deadline_s))

    def run(self, request: RunRequest, *, deadline_s: float | None = None) -> RunResult:
        """Run one program once, as a tool; a fault of the grader's at it is a result too: `internal_error`.

        Raises Refused, DeadlinePassed, GraderError.
        """
        return self._run(self._tools.run(request, deadline_s))

    def check_sessions(self) -> None:
        """Raises GraderUnfit where this grader has no sessions, and GraderError where it cannot be asked."""
        self._run(self._tools.check())

    def open_session(self, request: SessionRequest | None = None) -> Session:
        """Open a workspace; where as many are open as may, one that ends is waited for.

        Raises Refused, GraderError.
        """
        opened = self._run(self._tools.open(request or SessionRequest()))
        return self.session(opened.id)

    def session(self, id: str) -> Session:
        """One that is open, by its id; whether it is shows when something is asked of it."""
        return Session(id, self._tools, self._run)

    def keep_session(self, id: str) -> None:
        """Use it, so that it is not ended for being idle. Raises SessionLost, GaveUp, GraderError."""
        self._run(self._tools.read(id, "", 0))

    # -- taking the steps of an exchange

    def _run(self, steps: Exchange[T]) -> T:
        """Of an exchange that finds nothing on its way."""
        try:
            next(self._driven(steps))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        raise AssertionError("it found something")

    def _driven(self, steps: Exchange[T]) -> Generator[GradeResult, None, T]:
        """Raises GaveUp, and whatever the exchange does."""
        with contextlib.closing(_Open(self._connections, self._turn, self._pause)) as taking:
            outcome: Any = None
            failed: Exception | None = None
            while True:
                try:
                    step = steps.send(outcome) if failed is None else steps.throw(failed)
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
                outcome = failed = None
                if isinstance(step, Found):
                    yield step.result
                    continue
                try:
                    outcome = taking.take(step)
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    failed = error

    def _turn(self, key: str) -> threading.Lock:
        return self._turns.setdefault(key, threading.Lock())

    def _pause(self, seconds: float) -> None:
        if self._given_up.wait(seconds):
            raise GaveUp(f"nobody waits for the grader at {self.url} any more")


class _Open:
    """What one exchange has open: the answer that it reads, and its turn at a key."""

    def __init__(
        self, connections: Connections, turn: Callable[[str], threading.Lock], pause: Callable[[float], None]
    ) -> None:
        """`turn`: the lock of a key. `pause`: waits, or raises GaveUp."""
        self._connections = connections
        self._turn_at = turn
        self._pause = pause
        self._answer = contextlib.ExitStack()
        self._turn = contextlib.ExitStack()
        self._pieces: Iterator[bytes] = iter(())

    def take(self, step: Step) -> httpx.Response | bytes | None:
        """Raises GaveUp, and httpx' errors."""
        match step:
            case Ask():
                return self._ask(step)
            case More():
                return next(self._pieces, None)
            case Pause():
                self._pause(step.seconds)
            case Hold():
                self._turn.enter_context(self._turn_at(step.key))
            case Release():
                self._turn.close()
        return None

    def close(self) -> None:
        self._answer.close()
        self._turn.close()

    def _ask(self, ask: Ask) -> httpx.Response:
        self._answer.close()
        client = self._connections.take(ask.timeout.pool if ask.timeout is not None else None)
        self._answer.callback(self._connections.give_back, client)
        request = client.build_request(
            ask.method,
            ask.url,
            content=ask.body,
            headers=ask.headers,
            timeout=httpx.USE_CLIENT_DEFAULT if ask.timeout is None else ask.timeout,
        )
        answer = client.send(request, stream=True)
        self._answer.callback(answer.close)
        self._pieces = answer.iter_bytes()
        if not ask.stream or not answer.is_success:
            answer.read()
            self._answer.close()
        return answer
