"""From an answer of the policy to its reward: label -> grade -> reward, which is all that trainers share.

What becomes of what goes wrong, and none of it becomes 0 in silence:

* A label that cannot be read, names no problem of the grader's, or asks for what it does not have: BadLabel, with the
  field. The data set is wrong, and every sample of that row would be.
* An answer without a program is a grade, `format_error`: the reward of a failing program, or `format_error` of the
  label.
* A grader that is busy, restarts or is out of reach is asked again for `patience_s` of `AsyncGrader`, 300 s unless told
  otherwise; then GraderUnreachable.
* A fault of the grader's at this program is what `fault` of the label says: None, a number, or graded again up to three
  times and then FaultyGrade.
* A group without tests is what `empty` of the label says: None, the next group's reward, or a number.

Knows no trainer: an adapter turns its trainer's arguments into `score`, and `Scored` into what its trainer wants.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from rl_client.async_client import AsyncGrader
from rl_client.errors import BadLabel, FaultyGrade, Refused, UnknownProblem
from rl_client.labels import Label, parse_label
from rl_client.rewards import fraction, is_fault, is_provoked, r_inf, r_k
from rl_client.sendable import sendable
from rl_client.sessions import AsyncSession
from rl_client.sharing import Shared
from service.contract import Detail, GradeOptions, GradeRequest, GradeResult, SessionGradeRequest, Verdict
from service.extraction import extract

T = TypeVar("T")

#: How often a program is graded that the grader fails at, where the label says "retry".
TRIES = 3

#: The k of the R_k in `logs`.
LOGGED_K = range(1, 8)

_CATEGORIES = ("correct", "optimization_failure", "correctness_failure", "format_error")
_VERDICTS = (*(verdict for verdict in Verdict if verdict is not Verdict.SKIPPED), "compile_error")


@dataclass(frozen=True, slots=True)
class Scored:
    """What one answer came to."""

    reward: float | None
    """None: leave this sample out."""
    result: GradeResult
    label: Label

    @property
    def passed(self) -> bool:
        """Whether its reward is that of a program that passes what it is rewarded for: nothing there is to repair."""
        measure = self.label.measure()
        value = measure(self.result)
        if value is None or self.result.category == "correct":
            return self.result.category == "correct"
        return value > -1 if measure.is_signed else value >= 1

    @property
    def why_unrewarded(self) -> str:
        """Why an answer that has no reward has none, in words."""
        if is_fault(self.result):
            return f"the grader failed at this program: {self.result.verdict}"
        return f"{self.label.reward} has no tests here"

    def logs(self, prefix: str = "rkgrade_") -> dict[str, float]:
        """Numbers to log, under the same names for every sample, whatever it came to.

        Categories and verdicts are 1.0 or 0.0; so are `R_1` to `R_7` and `R_inf`, where an R_k without tests is as the
        next one that has some, and all are 0.0 where the grader failed (`fault` is 1.0 then: leave these out of means).
        `passed` is the share of tests accepted, where skipped ones are not; `first_failure` the decimal logarithm of
        the first failing input length, 0.0 where none failed; times are seconds.
        """
        numbers = {"rewarded": float(self.reward is not None), **_numbers(self.result)}
        return {f"{prefix}{name}": value for name, value in numbers.items()}


def logs_of_none(prefix: str = "rkgrade_") -> dict[str, float]:
    """Those of a sample that has no result at all: the names of `Scored.logs`, `fault` 1.0, all else 0.0."""
    return {f"{prefix}{name}": float(name == "fault") for name in ("rewarded", *_NAMES)}


def _numbers(result: GradeResult) -> dict[str, float]:
    return {
        "fault": float(is_fault(result)),
        "provoked": float(is_provoked(result)),
        **{name: float(result.category == name) for name in _CATEGORIES},
        **{str(name): float(result.verdict == name) for name in _VERDICTS},
        **{f"R_{k}": r_k(k, empty="next")(result) or 0.0 for k in LOGGED_K},
        "R_inf": r_inf(result) or 0.0,
        "passed": fraction.of(result) or 0.0,
        "first_failure": math.log10(max(1, result.first_failure_length or 1)),
        "cpu_s": max((test.cpu_s or 0.0 for test in result.tests), default=0.0),
        "queue_s": result.timing.queue_s,
        "total_s": result.timing.total_s,
    }


_NAMES = (
    "fault", "provoked", *_CATEGORIES, *map(str, _VERDICTS), *(f"R_{k}" for k in LOGGED_K), "R_inf", "passed",
    "first_failure", "cpu_s", "queue_s", "total_s",
)  # fmt: skip


async def _scored(label: Label, graded: Callable[[], Awaitable[GradeResult]]) -> Scored:
    reward = label.reward_of_result()
    for attempt in range(1, TRIES + 1):
        result = await graded()
        try:
            return Scored(reward(result), result, label)
        except FaultyGrade as error:
            if attempt == TRIES:
                raise FaultyGrade(error.verdict, Scored(None, result, label)) from None
    raise AssertionError("the last try returns or raises")


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """What each comes to, in order. The first error ends the others and is raised."""
    tasks = [asyncio.ensure_future(one) for one in work]
    # No TaskGroup: before Python 3.13 one that fails leaves its task counted as cancelled (CPython issue 116720), and
    # whoever goes on after the error has the next time limit come to a CancelledError.
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _by_program(request: GradeRequest) -> GradeRequest:
    """Equal where the grader finds the same program, and does the same with it."""
    # Which fences are tagged with a name of the language, only the grader knows.
    if request.completion is None or request.extraction == "tagged":
        return request
    program = extract(request.completion, request.extraction, ())
    # What holds no program takes the grader no time, and it has the last word on that.
    return request if program is None else request.model_copy(update={"completion": program})


class Scorer:
    """Scores answers by one grader, as many at once as that has connections.

    Equal programs of a problem that are asked for at the same time, without a deadline, are sent once: they have one
    verdict, be it by the clock or a fault, and each its own reward.
    """

    def __init__(
        self, grader: AsyncGrader, *, defaults: Mapping[str, object] | None = None, detail: Detail = "verdicts"
    ) -> None:
        """`defaults`: fields of labels that leave them out. `detail`: of results. Raises BadLabel of the defaults."""
        if defaults and "problem" in defaults:
            raise BadLabel("problem", "no default: each row names its own")
        parse_label({"problem": "sha256:" + "0" * 64}, defaults)
        self._grader = grader
        self._defaults = dict(defaults or {})
        self._detail = detail
        self._suffixes: dict[str, str] | None = None
        self._shared: Shared[GradeRequest, GradeResult] = Shared()

    @property
    def defaults(self) -> Mapping[str, object]:
        """Fields of labels that leave them out."""
        return self._defaults

    async def suffix(self, language: str) -> str:
        """Of files in that language, by any of its names, such as `.py`; empty where the grader does not have it.

        Raises GraderError.
        """
        if self._suffixes is None:
            self._suffixes = {
                name.lower(): row.suffix
                for row in await self._grader.languages()
                for name in (row.id, row.name, *row.aliases)
            }
        return self._suffixes.get(language.lower(), "")

    async def score(
        self, completion: str, label: object, *, deadline_s: float | None = None, detail: Detail | None = None
    ) -> Scored:
        """Score one answer: the model's raw text, without its prompt. `detail`: in place of the scorer's own.

        Raises BadLabel, FaultyGrade where the label says "retry" and the grader fails at this program three times (it
        carries what the last try came to), DeadlinePassed, GraderError, and ClientError of an answer that is too long
        for any grader.
        """
        parsed = parse_label(label, self._defaults)
        request = parsed.request(completion, detail=detail or self._detail)
        return await _scored(parsed, lambda: self._graded(request, deadline_s))

    async def score_file(self, session: AsyncSession, path: str, label: object) -> Scored:
        """Score a file of a session's. One that is not there, or is no program, is an answer without a program.

        Raises as `score` does, and SessionLost.
        """
        parsed = parse_label(label, self._defaults)
        asked = parsed.request("", detail=self._detail)
        options = {name: getattr(asked, name) for name in GradeOptions.model_fields}

        async def graded() -> GradeResult:
            try:
                return await session.grade(SessionGradeRequest(path=sendable(path), **options))
            except (ValidationError, Refused):
                # Be it for the path, the file or the label: this has the label alone.
                return await self._graded(asked, None)

        return await _scored(parsed, graded)

    async def score_all(
        self, completions: Sequence[str], labels: Sequence[object], *, deadline_s: float | None = None
    ) -> list[Scored]:
        """Score many at once, in order. The first error ends the others and is raised, as is BadLabel before any
        begins.
        """
        if len(completions) != len(labels):
            raise ValueError(f"{len(completions)} answers, and {len(labels)} labels")
        for label in labels:
            parse_label(label, self._defaults)
        return await together(
            [
                self.score(completion, label, deadline_s=deadline_s)
                for completion, label in zip(completions, labels, strict=True)
            ]
        )

    async def _graded(self, request: GradeRequest, deadline_s: float | None) -> GradeResult:
        try:
            if deadline_s is not None:
                # It counts from its own beginning.
                return await self._grader.grade(request, deadline_s=deadline_s)
            return await self._shared.done(_by_program(request), lambda: self._grader.grade(request))
        except UnknownProblem as error:
            raise BadLabel("problem", f"the grader has no {request.problem}: store it there first") from error
        except Refused as error:
            # All but the completion is the label's, and that one was checked.
            raise BadLabel(error.field, error.detail) from error
