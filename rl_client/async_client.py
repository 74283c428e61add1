"""`AsyncGrader`: a grader over HTTP for whoever runs an event loop, and has hundreds of grades on their way at once.

What is said and when to ask again is decided in `rl_client.exchange`, as for `Grader`, which is the same with threads.
Needs httpx and pydantic alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar

import httpx

from rl_client.compression import Compression
from rl_client.connections import AsyncConnections
from rl_client.encoded import EncodedProblem
from rl_client.errors import GaveUp
from rl_client.exchange import Exchanges
from rl_client.patience import PATIENCE_S
from rl_client.sessions import AsyncSession
from rl_client.steps import Ask, Exchange, Found, Hold, More, Pause, Release, Step
from rl_client.tool_exchange import ToolExchanges
from service.contract import GradeRequest, GradeResult, LanguageRow, RunRequest, RunResult, SessionRequest

T = TypeVar("T")

CONNECTIONS = 64


class AsyncGrader:
    """One grader; any number of tasks of one event loop may use it at once, and share its connections.

    Patience, repetition and errors are those of `Grader`. A task that is cancelled leaves, and the grader cancels its
    grade.
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
        """As of `Grader`. Takes no event loop yet: it may be made outside of one."""
        self._exchanges = Exchanges(url, token=token, patience_s=patience_s, compression=compression)
        self._tools = ToolExchanges(self._exchanges)
        self.url = self._exchanges.url
        self._connections = AsyncConnections(connections, self._exchanges.connection())
        # Where all others wait for grades, a session is kept all the same.
        self._keeping = AsyncConnections(1, self._exchanges.connection())
        self._turns: dict[str, asyncio.Lock] = {}
        self._given_up = asyncio.Event()

    async def __aenter__(self) -> AsyncGrader:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Nobody waits any more: requests that would be tried again, and new ones, raise GaveUp.

        Connections are closed as the requests that are on their way have their answers.
        """
        self._given_up.set()
        await self._connections.aclose()
        await self._keeping.aclose()

    async def check(self) -> None:
        """Raises GraderError at once where no grader answers, or none that takes the token."""
        await self._run(self._exchanges.check())

    async def languages(self) -> tuple[LanguageRow, ...]:
        """What can be graded there. Raises GraderError."""
        return await self._run(self._exchanges.languages())

    async def put_problem(self, problem: EncodedProblem, *, again: bool = False) -> None:
        """As of `Grader`."""
        await self._run(self._exchanges.put_problem(problem, again=again))

    async def grade(self, request: GradeRequest, *, deadline_s: float | None = None) -> GradeResult:
        """As of `Grader`."""
        return await self._run(self._exchanges.grade(request, deadline_s=deadline_s))

    async def grade_batch(
        self, requests: Sequence[GradeRequest], *, deadline_s: float | None = None
    ) -> AsyncGenerator[GradeResult, None]:
        """As of `Grader`."""
        steps = self._exchanges.grade_batch(requests, deadline_s=deadline_s)
        async with contextlib.aclosing(self._driven(steps, [])) as found:
            async for result in found:
                yield result

    async def run(self, request: RunRequest, *, deadline_s: float | None = None) -> RunResult:
        """As of `Grader`."""
        return await self._run(self._tools.run(request, deadline_s))

    async def check_sessions(self) -> None:
        """As of `Grader`."""
        await self._run(self._tools.check())

    async def open_session(self, request: SessionRequest | None = None) -> AsyncSession:
        """As of `Grader`."""
        opened = await self._run(self._tools.open(request or SessionRequest()))
        return self.session(opened.id)

    def session(self, id: str) -> AsyncSession:
        """As of `Grader`."""
        return AsyncSession(id, self._tools, self._run)

    async def keep_session(self, id: str) -> None:
        """As of `Grader`, and whatever all connections are used for: it has one of its own."""
        await self._run(self._tools.read(id, "", 0), self._keeping)

    # -- taking the steps of an exchange

    async def _run(self, steps: Exchange[T], connections: AsyncConnections | None = None) -> T:
        """Of an exchange that finds nothing on its way."""
        end: list[T] = []
        async for _ in self._driven(steps, end, connections):
            raise AssertionError("it found something")
        return end[0]

    async def _driven(
        self, steps: Exchange[T], end: list[T], connections: AsyncConnections | None = None
    ) -> AsyncGenerator[GradeResult, None]:
        """Puts what the exchange returns into `end`. Raises GaveUp, and whatever the exchange does."""
        async with contextlib.aclosing(_Open(connections or self._connections, self._turn, self._pause)) as taking:
            outcome: Any = None
            failed: Exception | None = None
            while True:
                try:
                    step = steps.send(outcome) if failed is None else steps.throw(failed)
                except StopIteration as stop:
                    end.append(stop.value)
                    return
                outcome = failed = None
                if isinstance(step, Found):
                    yield step.result
                    continue
                try:
                    outcome = await taking.take(step)
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    failed = error

    def _turn(self, key: str) -> asyncio.Lock:
        return self._turns.setdefault(key, asyncio.Lock())

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._given_up.wait()
                raise GaveUp(f"nobody waits for the grader at {self.url} any more")


class _Open:
    """What one exchange has open: the answer that it reads, and its turn at a key."""

    def __init__(
        self,
        connections: AsyncConnections,
        turn: Callable[[str], asyncio.Lock],
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        """`turn`: the lock of a key. `pause`: waits, or raises GaveUp."""
        self._connections = connections
        self._turn_at = turn
        self._pause = pause
        self._answer = contextlib.AsyncExitStack()
        self._turn = contextlib.AsyncExitStack()
        self._pieces: AsyncIterator[bytes] | None = None

    async def take(self, step: Step) -> httpx.Response | bytes | None:
        """Raises GaveUp, and httpx' errors."""
        match step:
            case Ask():
                return await self._ask(step)
            case More() if self._pieces is not None:
                return await anext(self._pieces, None)
            case Pause():
                await self._pause(step.seconds)
            case Hold():
                await self._turn.enter_async_context(self._turn_at(step.key))
            case Release():
                await self._turn.aclose()
        return None

    async def aclose(self) -> None:
        await self._answer.aclose()
        await self._turn.aclose()

    async def _ask(self, ask: Ask) -> httpx.Response:
        await self._answer.aclose()
        client = await self._connections.take(ask.timeout.pool if ask.timeout is not None else None)
        self._answer.push_async_callback(self._connections.give_back, client)
        request = client.build_request(
            ask.method,
            ask.url,
            content=ask.body,
            headers=ask.headers,
            timeout=httpx.USE_CLIENT_DEFAULT if ask.timeout is None else ask.timeout,
        )
        answer = await client.send(request, stream=True)
        self._answer.push_async_callback(answer.aclose)
        self._pieces = answer.aiter_bytes()
        if not ask.stream or not answer.is_success:
            await answer.aread()
            await self._answer.aclose()
        return answer
