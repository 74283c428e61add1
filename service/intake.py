"""From a request that is well-formed to a job that can be queued: its language is known here, its problem
is stored, its limits are allowed.

Whatever can be refused is refused here, before anything is queued. Knows nothing of HTTP beyond the errors
it raises.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import ValidationError

from sandbox import calls
from service import contract
from service.bodies import LARGE_BYTES
from service.engines.base import Job, LanguageInfo, ToolCall
from service.errors import (
    DiskFull,
    FieldError,
    InvalidRequest,
    NotFound,
    StoredProblemCorrupt,
    Unavailable,
    invalid_fields,
)
from service.stores.problems import CorruptProblem, ProblemStore, StoreFull, StoreUnreachable, UnknownProblem

T = TypeVar("T")

#: Problems larger than this are written out and hashed in a thread.
_INLINE_CHARS = 100_000

#: Stored problems whose kinds and limits are remembered, so that grading by id reads no problem here.
_MOST_REMEMBERED = 10_000


#: For which languages problems of a kind are, where not for all.
_LANGUAGES_OF: Final[Mapping[str, tuple[str, ...]]] = {"call": calls.LANGUAGES, "script": calls.LANGUAGES}


@dataclass(frozen=True, slots=True)
class _Known:
    """What must be known of a problem before a program is graded on it."""

    kind: contract.Kind
    limits: contract.ProblemLimits


class Intake:
    def __init__(self, store: ProblemStore, languages: Callable[[], Sequence[LanguageInfo]]) -> None:
        """`languages`: those that can be graded now; hosts come and go where they are elsewhere."""
        self._store = store
        self._offered = languages
        self._ids_of: tuple[Sequence[LanguageInfo], Mapping[str, str]] = ((), {})
        self._problems: OrderedDict[str, _Known] = OrderedDict()
        self._large = asyncio.Lock()

    async def store(self, problem: contract.Problem) -> tuple[str, bool]:
        """Store a problem; its id, and whether it was new. Raises DiskFull."""
        if sum(len(test.given) + len(test.wanted) for test in problem.tests) > _INLINE_CHARS:
            identifier = await asyncio.to_thread(contract.problem_id, problem)
        else:
            identifier = contract.problem_id(problem)
        created = False
        if not self._store.remembers(identifier):
            try:
                # Written out a second time, rather than held as a whole.
                _, created = await asyncio.to_thread(lambda: self._store.put(contract.canonical_chunks(problem)))
            except StoreFull as error:
                raise DiskFull(str(error)) from error
            except StoreUnreachable as error:
                raise _unreachable(error) from error
        if not created:
            self._store.used(identifier)
        self._remember(identifier, _known(problem))
        return identifier, created

    def held(self, jobs: Iterable[Job]) -> AbstractContextManager[None]:
        """Their problems stay stored meanwhile."""
        return self._store.held({job.problem_id for job in jobs})

    def doubt(self, identifier: str) -> None:
        """What is stored under the id was found damaged: the next one to bring the problem along has it stored anew."""
        self._store.doubt(identifier)

    async def described(self, identifier: str) -> contract.ProblemInfo:
        """What may be told of a stored problem. Raises NotFound, StoredProblemCorrupt."""
        return await self._from_stored(identifier, contract.describe)

    async def _from_stored(self, identifier: str, take: Callable[[contract.Problem], T]) -> T:
        """What `take` needs of a stored problem, which is held no longer than that."""
        try:
            large = (await asyncio.to_thread(self._store.size, identifier) or 0) > LARGE_BYTES
            # One of the large ones at a time: a request of a few bytes would else fill the memory with another.
            async with self._large if large else contextlib.nullcontext():
                return await asyncio.to_thread(lambda: take(contract.parse_problem(self._store.get(identifier))))
        except UnknownProblem:
            raise NotFound(f"no problem {identifier} is stored here") from None
        except CorruptProblem:
            raise StoredProblemCorrupt(f"what is stored as {identifier} is damaged; send the problem again") from None
        except StoreUnreachable as error:
            raise _unreachable(error) from error

    async def job(self, request: contract.GradeRequest, *, arrived_s: float) -> Job:
        """Raises InvalidRequest naming the field, NotFound, StoredProblemCorrupt, DiskFull."""
        self._check_languages([request.language], [""])
        return await self._job(request, arrived_s=arrived_s, index=None)

    async def jobs(self, requests: Sequence[contract.GradeRequest], *, arrived_s: float) -> list[Job]:
        """The same for a batch, all or nothing: fields read `items[3].language`."""
        prefixes = [f"items[{index}]." for index in range(len(requests))]
        self._check_languages([request.language for request in requests], prefixes)
        return [await self._job(request, arrived_s=arrived_s, index=index) for index, request in enumerate(requests)]

    def call(self, request: contract.RunRequest, *, arrived_s: float) -> ToolCall:
        """Raises InvalidRequest naming the field."""
        self._check_languages([request.language], [""])
        settled = request.model_copy(update={"language": self._ids()[request.language.lower()]})
        return ToolCall(settled, arrived_s, memory_bytes=request.limits.memory_mb * 2**20)

    def _ids(self) -> Mapping[str, str]:
        """By each name of a language in lower case: its id."""
        offered = self._offered()
        if offered is not self._ids_of[0]:
            names = {
                name.lower(): language.id
                for language in offered
                for name in (language.id, language.name, *language.aliases)
            }
            self._ids_of = (offered, names)
        return self._ids_of[1]

    def _check_languages(self, languages: Sequence[str], prefixes: Sequence[str]) -> None:
        ids = self._ids()
        if not ids:
            raise Unavailable("no worker has come yet to say what can be graded here")
        known = ", ".join(dict.fromkeys(ids.values()))
        unknown = [
            FieldError(
                f"{prefix}language",
                f"the language {language!r} is not known here; known are {known}",
            )
            for language, prefix in zip(languages, prefixes, strict=True)
            if language.lower() not in ids
        ]
        if unknown:
            raise invalid_fields(unknown)

    async def _job(self, request: contract.GradeRequest, *, arrived_s: float, index: int | None) -> Job:
        prefix = "" if index is None else f"items[{index}]."
        if isinstance(request.problem, str):
            identifier = request.problem
            known = await self._known_of(identifier, prefix)
        else:
            identifier, _ = await self.store(request.problem)
            known = _known(request.problem)
        language = self._ids()[request.language.lower()]
        if language not in (suited := _LANGUAGES_OF.get(known.kind, (language,))):
            raise InvalidRequest.at(
                f"{prefix}language", f"{known.kind} problems are for {', '.join(suited)}, not for {language}"
            )
        try:
            limits = contract.effective_limits(known.limits, request)
        except ValidationError as error:
            which = contract.field_path(error.errors()[0]["loc"])
            raise InvalidRequest.at(
                f"{prefix}time_factor", f"the limit {which} that it comes to is past what is allowed"
            ) from None
        settled = request.model_copy(update={"problem": identifier, "language": language})
        return Job(settled, arrived_s, index, memory_bytes=limits.memory_mb * 2**20)

    async def _known_of(self, identifier: str, prefix: str) -> _Known:
        known = self._problems.get(identifier)
        try:
            # In a thread, since the store may be elsewhere.
            there = known is not None and await asyncio.to_thread(self._store.contains, identifier)
        except StoreUnreachable as error:
            raise _unreachable(error) from error
        if known is not None and there:
            self._problems.move_to_end(identifier)
        else:
            try:
                known = await self._from_stored(identifier, _known)
            except NotFound as error:
                raise NotFound(error.detail, errors=[FieldError(f"{prefix}problem", error.detail)]) from None
            self._remember(identifier, known)
        self._store.used(identifier)
        return known

    def _remember(self, identifier: str, known: _Known) -> None:
        self._problems[identifier] = known
        self._problems.move_to_end(identifier)
        if len(self._problems) > _MOST_REMEMBERED:
            self._problems.popitem(last=False)


def _unreachable(error: StoreUnreachable) -> Unavailable:
    return Unavailable(f"the store of problems cannot be used: {error}")


def _known(problem: contract.Problem) -> _Known:
    return _Known(problem.kind, problem.limits)
