"""What is said to a grader, and what its answers mean, without sending anything: the core that both clients share.

Each exchange is a generator of `steps`. When to ask again, what to send once and how long to wait for is decided here,
and nowhere else.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import httpx
from pydantic import TypeAdapter, ValidationError

from rl_client import address
from rl_client.compression import Compression, chosen, compressed
from rl_client.connections import Settings
from rl_client.encoded import EncodedProblem
from rl_client.errors import (
    DeadlinePassed,
    GraderUnfit,
    GraderUnreachable,
    Refused,
    SessionLost,
    TokenRefused,
    UnknownProblem,
)
from rl_client.patience import PATIENCE_S, Patience
from rl_client.steps import Ask, Exchange, Found, Hold, More, Pause, Release
from rl_client.token import VARIABLE
from service.contract import MAX_BATCH_ITEMS, GradeRequest, GradeResult, LanguageRow, Problem

_LOG = logging.getLogger(__name__)

#: For an answer to begin. A grade waits in the grader's queue first, and may have thousands of tests.
TIMEOUT_S = 1800.0
CONNECT_S = 10.0
#: The grader closes connections that have been idle for 5 s; one about to be closed is better not used.
IDLE_S = 4.0

#: Between two warnings that a grader is waited for, whatever number of requests waits.
_TOLD_EVERY_S = 60.0

#: Bytes of items in one batch; one item that is larger goes alone.
BATCH_BYTES = 16 * 2**20
#: Problems that came within requests and whose encoding is kept, since they come again with each sample.
_KEPT_PROBLEMS = 32

_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
#: What says that nothing was begun.
_UNBEGUN = frozenset({408, 429, 503})
#: What a connection can come to, and what a proxy can make of an answer.
_BROKEN = (httpx.TransportError, httpx.DecodingError)
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_REFUSED = frozenset({400, 409, 413, 422})
_NO_SESSION = ("urn:rkgrade:error:session-ended", "urn:rkgrade:error:no-session")
_LANGUAGES: TypeAdapter[tuple[LanguageRow, ...]] = TypeAdapter(tuple[LanguageRow, ...])
_ITEM = re.compile(r"items\[(\d+)\]")


def timeout(limit_s: float | None = None) -> httpx.Timeout:
    """`limit_s`: for each part of it, where somebody waits no longer.

    Waiting for a connection of one's own has no limit else: what the others wait for has.
    """
    if limit_s is None:
        return httpx.Timeout(TIMEOUT_S, connect=CONNECT_S, pool=None)
    return httpx.Timeout(limit_s, connect=min(CONNECT_S, limit_s))


class Deadline:
    """Seconds from now on, or none."""

    def __init__(self, seconds: float | None) -> None:
        """Raises ValueError where it has passed before it began."""
        if seconds is not None and not seconds > 0:
            raise ValueError(f"deadline_s is {seconds}: it has to lie in the future")
        self.seconds = seconds
        self._until_s = None if seconds is None else time.monotonic() + seconds

    @property
    def left_s(self) -> float | None:
        return None if self._until_s is None else self._until_s - time.monotonic()


class Exchanges:
    """All that can be said to one grader."""

    def __init__(
        self, url: str, *, token: str | None, patience_s: float = PATIENCE_S, compression: Compression = "auto"
    ) -> None:
        """Raises ValueError, naming the argument that is at fault."""
        if not patience_s >= 0:
            raise ValueError(f"patience_s is {patience_s}: it is a number of seconds from 0 on")
        self.url = address.checked(url)
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._patience_s = patience_s
        self._coding = chosen(compression, url)
        self._told_at_s = -math.inf
        self._stored: set[str] = set()
        self._encoded: OrderedDict[int, tuple[Problem, EncodedProblem]] = OrderedDict()

    def connection(self) -> Settings:
        """What each connection to this grader is made with."""
        return Settings(timeout(), IDLE_S, self.headers, httpx.create_ssl_context())

    def check(self) -> Exchange[None]:
        """Raises GraderError at once where no grader answers, or none that takes the token."""
        for path in ("/health/live", "/languages"):
            try:
                answer: httpx.Response = yield Ask("GET", f"{self.url}{path}")
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise GraderUnreachable(f"no grader answers at {self.url}: {_words(error)}") from error
            if answer.status_code == 401:
                raise self._locked(answer)
            if answer.status_code != 200:
                raise GraderUnfit(f"{self.url} answers {answer.status_code} to {path}: is it a grader?")

    def languages(self) -> Exchange[tuple[LanguageRow, ...]]:
        """Raises GraderError."""
        answer = self._settled((yield from self._answer("GET", "/languages", None, Deadline(None))))
        try:
            return _LANGUAGES.validate_json(answer.content)
        except ValidationError as error:
            raise self.unfit(error) from error

    def put_problem(
        self, problem: EncodedProblem, *, again: bool = False, deadline: Deadline | None = None
    ) -> Exchange[None]:
        """Store the problem where this has not been done, or `again`. Raises Refused, DeadlinePassed, GraderError."""
        if problem.id in self._stored and not again:
            return
        # Many samples of one problem begin together: the first of them sends it.
        yield Hold(problem.id)
        if again or problem.id not in self._stored:
            answer = yield from self._answer("PUT", "/problems", problem.content, deadline or Deadline(None))
            named = _field(self._settled(answer), "id")
            if named != problem.id:
                raise GraderUnfit(
                    f"the grader at {self.url} calls a problem {named} that is {problem.id} here: "
                    "its version of the contract is another"
                )
            self._stored.add(problem.id)
        yield Release(problem.id)

    def grade(self, request: GradeRequest, *, deadline_s: float | None = None) -> Exchange[GradeResult]:
        """A problem that the request holds is stored first, and goes by its id then. `deadline_s`: seconds from now.

        Raises Refused, UnknownProblem of an id that is stored nowhere, DeadlinePassed, GraderError, and ValueError of a
        deadline that has passed.
        """
        deadline = Deadline(deadline_s)
        request, problem = self._by_id(request)
        if problem is not None:
            yield from self.put_problem(problem, deadline=deadline)
        try:
            return (yield from self._grade(request, deadline))
        except UnknownProblem:
            if problem is None:
                raise
            # A grader with an empty store has taken the place of the one that took it.
            yield from self.put_problem(problem, again=True, deadline=deadline)
            return (yield from self._grade(request, deadline))

    def _grade(self, request: GradeRequest, deadline: Deadline) -> Exchange[GradeResult]:
        answer = yield from self._answer("POST", "/grade", _json(request), deadline)
        return self._result(self._settled(answer).content)

    def grade_batch(self, requests: Sequence[GradeRequest], *, deadline_s: float | None = None) -> Exchange[None]:
        """Finds the result of each request, in any order; `index` is its position in `requests`."""
        deadline = Deadline(deadline_s)
        problems: dict[str, EncodedProblem] = {}
        left: dict[int, bytes] = {}
        for index, request in enumerate(requests):
            request, problem = self._by_id(request)
            if problem is not None and problem.id not in problems:
                yield from self.put_problem(problem, deadline=deadline)
                problems[problem.id] = problem
            left[index] = _json(request)
        patience, stored_again = Patience(self._patience_s), False
        while left:
            before, trouble = len(left), "its answer ends too early"
            try:
                yield from self._batch(left, deadline)
            except _BROKEN as error:
                trouble = _words(error)
            except UnknownProblem:
                if stored_again or not problems:
                    raise
                for problem in problems.values():
                    yield from self.put_problem(problem, again=True, deadline=deadline)
                stored_again = True
                continue
            if len(left) < before:
                patience = Patience(self._patience_s)
            else:
                yield from self._patiently(patience, deadline, trouble, "POST /grade/batch")

    def _batch(self, left: dict[int, bytes], deadline: Deadline) -> Exchange[None]:
        """Takes from `left` what could be graded of its beginning. Raises what is `_BROKEN` where that breaks off."""
        order: list[int] = []
        size = 0
        for index, item in left.items():
            if order and (len(order) == MAX_BATCH_ITEMS or size + len(item) > BATCH_BYTES):
                break
            order.append(index)
            size += len(item)
        body = b'{"items":[' + b",".join(left[index] for index in order) + b"]}"
        answer = yield from self._answer("POST", "/grade/batch", body, deadline, stream=True)
        try:
            self._settled(answer)
        except Refused as refused:
            raise _at_its_own_place(refused, order) from None
        kept = b""
        while (piece := (yield More())) is not None:
            *lines, kept = (kept + piece).split(b"\n")
            for line in lines:
                result = self._result(line)
                if result.index is None or result.index >= len(order) or order[result.index] not in left:
                    raise GraderUnfit(f"the grader at {self.url} answers a batch with item {result.index}")
                index = order[result.index]
                del left[index]
                yield Found(result.model_copy(update={"index": index}))

    # -- asking until it is answered

    def settled(
        self, method: str, path: str, content: bytes | None, deadline: Deadline, *, once: bool = False
    ) -> Exchange[bytes]:
        """What is answered with a success. `once`: what may have begun over there is not asked for again.

        Raises Refused, UnknownProblem, SessionLost, DeadlinePassed, GraderError.
        """
        return self._settled((yield from self._answer(method, path, content, deadline, once=once))).content

    def _answer(
        self,
        method: str,
        path: str,
        content: bytes | None,
        deadline: Deadline,
        *,
        stream: bool = False,
        once: bool = False,
    ) -> Exchange[httpx.Response]:
        """The first answer that is no "ask again". Raises GraderUnreachable, DeadlinePassed, SessionLost of `once`."""
        patience = Patience(self._patience_s)
        body: bytes | None = None
        headers: dict[str, str] = {}
        if content is not None:
            body, coding = compressed(content, self._coding)
            headers = {"Content-Type": "application/json", **coding}
        while True:
            limits, asked_s = self._within(deadline), None
            try:
                answer: httpx.Response = yield Ask(
                    method, f"{self.url}{path}", body, {**headers, **limits[0]}, limits[1], stream
                )
            except _BROKEN as error:
                trouble = _words(error)
                if once and not isinstance(error, _UNSENT):
                    raise SessionLost(None, f"{method} {path} may have begun, and has no answer: {trouble}") from error
            else:
                if _field(answer, "type") == "urn:rkgrade:error:deadline-passed":
                    raise self._too_late(deadline, f"{method} {path}", "it was not done by then")
                if answer.status_code not in (_UNBEGUN if once else _RETRIED):
                    if answer.status_code in _RETRIED:
                        raise SessionLost(None, f"{method} {path}: {answer.status_code}: {_reason(answer)}")
                    return answer
                trouble = f"it answers {answer.status_code} {answer.reason_phrase}"
                asked_s = _retry_after_s(answer)
            yield from self._patiently(patience, deadline, trouble, f"{method} {path}", asked_s)

    def _within(self, deadline: Deadline) -> tuple[dict[str, str], httpx.Timeout | None]:
        """Headers and time limit of an attempt."""
        left_s = deadline.left_s
        if left_s is None:
            return {}, None
        # What is past its deadline was found out before: this is only the rest of a millisecond.
        left_s = max(left_s, 0.001)
        return {"X-Deadline-S": f"{min(left_s, 86_400):.3f}"}, timeout(left_s)

    def _patiently(
        self, patience: Patience, deadline: Deadline, trouble: str, what: str, asked_s: float | None = None
    ) -> Exchange[None]:
        """Wait before the next attempt, and tell of it from time to time. Raises GraderUnreachable, DeadlinePassed
        where there will be none.
        """
        wait_s, left_s = patience.wait_s(asked_s), deadline.left_s
        if left_s is not None and (left_s <= 0 or (wait_s is not None and wait_s >= left_s)):
            raise self._too_late(deadline, what, trouble)
        if wait_s is None:
            asked = f"{what} for {self._patience_s:.0f} s"
            raise GraderUnreachable(f"the grader at {self.url} did not take {asked}: {trouble}")
        if time.monotonic() - self._told_at_s >= _TOLD_EVERY_S:
            self._told_at_s = time.monotonic()
            most_s = patience.left_s if left_s is None else min(left_s, patience.left_s)
            _LOG.warning(
                "the grader at %s does not take %s: %s; it is asked again for %.0f s", self.url, what, trouble, most_s
            )
        yield Pause(wait_s)

    def _too_late(self, deadline: Deadline, what: str, trouble: str) -> DeadlinePassed:
        return DeadlinePassed(f"{what} to the grader at {self.url} had {deadline.seconds:g} s: {trouble}")

    # -- what is sent and what is answered

    def _by_id(self, request: GradeRequest) -> tuple[GradeRequest, EncodedProblem | None]:
        """The request with its problem's id, and that problem where the request held it."""
        problem = request.problem
        if isinstance(problem, str):
            return request, None
        known = self._encoded.get(id(problem))
        # An object's id is another's once it is gone; as long as it is kept here, it is not.
        if known is None:
            known = problem, EncodedProblem.of(problem)
            self._encoded[id(problem)] = known
            while len(self._encoded) > _KEPT_PROBLEMS:
                self._encoded.popitem(last=False)
        return request.model_copy(update={"problem": known[1].id}), known[1]

    def _result(self, content: bytes) -> GradeResult:
        try:
            return GradeResult.model_validate_json(content)
        except ValidationError as error:
            raise self.unfit(error) from error

    def _settled(self, answer: httpx.Response) -> httpx.Response:
        """The answer, if it is a success. Raises Refused, GraderUnfit."""
        if answer.is_success:
            return answer
        field, reason = _field(answer, "field"), _reason(answer)
        if answer.status_code == 401:
            raise self._locked(answer)
        if answer.status_code in _REFUSED:
            raise Refused(answer.status_code, reason, field if isinstance(field, str) else None)
        if _field(answer, "type") in _NO_SESSION:
            ended = _field(answer, "ended")
            raise SessionLost(ended if isinstance(ended, str) else None, reason)
        if answer.status_code == 404 and _field(answer, "type") == "urn:rkgrade:error:not-found":
            raise UnknownProblem(answer.status_code, reason)
        raise GraderUnfit(f"the grader at {self.url} answers {answer.status_code}: {reason}")

    def _locked(self, answer: httpx.Response) -> TokenRefused:
        return TokenRefused(f"the grader at {self.url} asks for a token: {_reason(answer)} ({VARIABLE}, --token-file)")

    def unfit(self, error: ValidationError) -> GraderUnfit:
        """What an answer is that the contract does not know."""
        first: dict[str, Any] = dict(error.errors(include_url=False, include_input=False)[0])
        place = ".".join(map(str, first["loc"]))
        return GraderUnfit(f"the grader at {self.url} answers outside the contract: {place}: {first['msg']}")


def _json(request: GradeRequest) -> bytes:
    return request.model_dump_json(exclude_defaults=True).encode()


def _at_its_own_place(refused: Refused, order: list[int]) -> Refused:
    """The same with items counted as the caller counts them."""

    def place(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"items[{order[number] if number < len(order) else number}]"

    field = None if refused.field is None else _ITEM.sub(place, refused.field)
    return type(refused)(refused.status, _ITEM.sub(place, refused.detail), field)


def _retry_after_s(answer: httpx.Response) -> float | None:
    """Seconds (RFC 9110, 10.2.3); a date there is passed over."""
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None


def _field(answer: httpx.Response, name: str) -> object:
    """A field of an error, or of an answer that is small."""
    if answer.is_success and name == "type":
        return None
    try:
        content = answer.json()
    except ValueError:
        return None
    return content.get(name) if isinstance(content, dict) else None


def _reason(answer: httpx.Response) -> str:
    detail = _field(answer, "detail")
    return " ".join(detail.split()) if isinstance(detail, str) else answer.reason_phrase


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
