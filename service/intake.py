"""From a request that is well-formed to a job that can be queued: its language is known here, its problem
is stored, its limits are allowed.

Whatever can be refused is refused here, before anything is queued. Knows nothing of HTTP beyond the errors
it raises.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import ValidationError

from sandbox import calls
from service import contract
from service.bodies import LARGE_BYTES
from service.engines.base import Job, LanguageInfo
from service.errors import (
    DiskFull,
    FieldError,
    InvalidRequest,
    NotFound,
    StoredProblemCorrupt,
    invalid_fields,
)
from service.stores.problems import CorruptProblem, ProblemStore, StoreFull, UnknownProblem

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
    def __init__(self, store: ProblemStore, languages: Sequence[LanguageInfo]) -> None:
        self._store = store
        self._languages = {
            name.lower(): language.id
            for language in languages
            for name in (language.id, language.name, *language.aliases)
        }
        self._known = ", ".join(language.id for language in languages)
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
        self._remember(identifier, _known(problem))
        return identifier, created

    async def described(self, identifier: str) -> contract.ProblemInfo:
        """What may be told of a stored problem. Raises NotFound, StoredProblemCorrupt."""
        return await self._from_stored(identifier, contract.describe)

    async def _from_stored(self, identifier: str, take: Callable[[contract.Problem], T]) -> T:
        """What `take` needs of a stored problem, which is held no longer than that."""
        large = (self._store.size(identifier) or 0) > LARGE_BYTES
        try:
            # One of the large ones at a time: a request of a few bytes would else fill the memory with another.
            async with self._large if large else contextlib.nullcontext():
                return await asyncio.to_thread(lambda: take(contract.parse_problem(self._store.get(identifier))))
        except UnknownProblem:
            raise NotFound(f"no problem {identifier} is stored here") from None
        except CorruptProblem:
            raise StoredProblemCorrupt(f"what is stored as {identifier} is damaged; send the problem again") from None

    async def job(self, request: contract.GradeRequest, *, arrived_s: float) -> Job:
        """Raises InvalidRequest naming the field, NotFound, StoredProblemCorrupt, DiskFull."""
        self._check_languages([request], [""])
        return await self._job(request, arrived_s=arrived_s, index=None)

    async def jobs(self, requests: Sequence[contract.GradeRequest], *, arrived_s: float) -> list[Job]:
        """The same for a batch, all or nothing: fields read `items[3].language`."""
        self._check_languages(requests, [f"items[{index}]." for index in range(len(requests))])
        return [await self._job(request, arrived_s=arrived_s, index=index) for index, request in enumerate(requests)]

    def _check_languages(self, requests: Sequence[contract.GradeRequest], prefixes: Sequence[str]) -> None:
        unknown = [
            FieldError(
                f"{prefix}language",
                f"the language {request.language!r} is not known here; known are {self._known}",
            )
            for request, prefix in zip(requests, prefixes, strict=True)
            if request.language.lower() not in self._languages
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
        language = self._languages[request.language.lower()]
        if language not in (suited := _LANGUAGES_OF.get(known.kind, (language,))):
            raise InvalidRequest.at(
                f"{prefix}language", f"{known.kind} problems are for {', '.join(suited)}, not for {language}"
            )
        try:
            contract.effective_limits(known.limits, request)
        except ValidationError as error:
            which = contract.field_path(error.errors()[0]["loc"])
            raise InvalidRequest.at(
                f"{prefix}time_factor", f"the limit {which} that it comes to is past what is allowed"
            ) from None
        settled = request.model_copy(update={"problem": identifier, "language": language})
        return Job(settled, arrived_s, index)

    async def _known_of(self, identifier: str, prefix: str) -> _Known:
        known = self._problems.get(identifier)
        if known is not None and self._store.contains(identifier):
            self._problems.move_to_end(identifier)
            return known
        try:
            known = await self._from_stored(identifier, _known)
        except NotFound as error:
            raise NotFound(error.detail, errors=[FieldError(f"{prefix}problem", error.detail)]) from None
        return self._remember(identifier, known)

    def _remember(self, identifier: str, known: _Known) -> _Known:
        self._problems[identifier] = known
        self._problems.move_to_end(identifier)
        if len(self._problems) > _MOST_REMEMBERED:
            self._problems.popitem(last=False)
        return known


def _known(problem: contract.Problem) -> _Known:
    return _Known(problem.kind, problem.limits)
