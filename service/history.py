"""The last grades, for people who look on: what they came to, and nothing of what was graded.

In memory and bounded: it ends with the process, and is no record to rely on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from service.engines.base import Job, Summary

MOST = 100


@dataclass(frozen=True, slots=True)
class Past:
    """One grade that has ended."""

    at: datetime
    client: str | None
    """The name that belongs to its token, or what it calls itself, or nothing."""
    id: str | None
    """As the request gave it."""
    problem_id: str
    language: str
    verdict: str
    category: str | None
    tests: Mapping[str, int]
    """Number of tests by verdict."""
    queue_s: float
    compile_s: float
    run_s: float


class History:
    def __init__(self) -> None:
        self._grades: deque[Past] = deque(maxlen=MOST)

    def adder(self, job: Job) -> Callable[[Summary], None]:
        """What adds it once it has ended, and holds nothing of its program until then."""
        client, identifier, problem_id = job.client or None, job.request.id, job.problem_id

        def add(summary: Summary) -> None:
            self._grades.append(
                Past(
                    at=datetime.now(UTC),
                    client=client,
                    id=identifier,
                    problem_id=problem_id,
                    language=summary.language,
                    verdict=summary.verdict,
                    category=summary.category,
                    tests=summary.tests,
                    queue_s=summary.queue_s,
                    compile_s=summary.compile_s,
                    run_s=summary.run_s,
                )
            )

        return add

    def latest(self) -> list[Past]:
        """The newest first."""
        return list(reversed(self._grades))
