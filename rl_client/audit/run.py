"""The audit itself: rows in, their programs to a grader, a line out for each problem as soon as it is done.

What is in memory is bounded: so many problems, and bytes of them, are under way at once. Knows neither files nor
terminals.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol

from rl_client.audit.choosing import Choice, Chosen, choose
from rl_client.audit.rows import ProblemRow, Thresholds
from rl_client.audit.tally import tally
from rl_client.client import Grader
from rl_client.datasets.base import Entry
from rl_client.datasets.importing import Candidate, Skipped, encoded
from rl_client.datasets.row import RowError
from rl_client.datasets.submissions import Submission
from rl_client.encoded import EncodedProblem
from rl_client.errors import Refused, UnknownProblem
from rl_client.workers import Workers
from service.contract import GradeRequest, GradeResult

#: Bytes of problems and programs under way at once; one problem that is larger goes alone.
IN_FLIGHT_BYTES = 128 * 2**20


@dataclass(slots=True)
class Progress:
    """How far an audit is."""

    rows: int = 0
    audited: int = 0
    known: int = 0
    """Left out, since the report has them."""
    graded: int = 0
    quarantined: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


class Watcher(Protocol):
    """Told of everything as it happens."""

    def audited(self, row: ProblemRow) -> None: ...

    def skipped(self, skipped: Skipped) -> None: ...

    def progress(self, done_bytes: int, progress: Progress) -> None: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What an audit is told."""

    choice: Choice
    thresholds: Thresholds
    names: Mapping[str, str]
    """The ids of the grader's languages by all their names."""
    sources: bool
    problems_at_once: int


class _Case:
    """One problem under way. Its programs are graded by several threads; the last of them hands it on."""

    def __init__(self, candidate: Candidate, entry: Entry, problem: EncodedProblem, chosen: Chosen) -> None:
        self.candidate = candidate
        self.key, self.submissions = entry.key, entry.submissions
        self.kind, self.tests = entry.problem.kind, len(entry.problem.tests)
        self.problem = problem
        self.chosen = chosen
        self.bytes = len(problem.content) + sum(len(one.source) for one in entry.submissions)
        self.results: list[GradeResult | None] = [None] * len(chosen.requests)
        self.refused: Counter[str] = Counter()
        self.refusal: str | None = None
        """Why the grader does not take the problem."""
        self.error: Exception | None = None
        self._left = len(chosen.requests)
        self._lock = threading.Lock()

    def done_one(self) -> bool:
        """Whether that was the last."""
        with self._lock:
            self._left -= 1
            return self._left == 0


class Audit:
    """One run over candidates, which must have been read with their submissions."""

    def __init__(
        self, grader: Grader, workers: Workers, settings: Settings, is_known: Callable[[str], bool], watcher: Watcher
    ) -> None:
        """`is_known`: whether what a hash stands for need not be graded."""
        self._grader = grader
        self._workers = workers
        self._settings = settings
        self._is_known = is_known
        self._watcher = watcher
        self._ended: SimpleQueue[_Case] = SimpleQueue()
        self._in_flight = 0
        self._in_flight_bytes = 0
        self._begun: set[str] = set()
        self.progress = Progress()

    def run(self, candidates: Iterable[Candidate]) -> Progress:
        """Audit them all. Raises DatasetError, GraderError; what was done by then has been told to the watcher."""
        try:
            for candidate in candidates:
                self.progress.rows += 1
                try:
                    self._begin(candidate)
                except RowError as error:
                    self._skip(Skipped(candidate.path, candidate.number, error.fault, error.detail))
                self._settle_ended()
                self._watcher.progress(candidate.done_bytes, self.progress)
            while self._in_flight:
                self._settle(self._ended.get())
        except BaseException:
            self._keep_ended()
            raise
        return self.progress

    def _begin(self, candidate: Candidate) -> None:
        entry, problem = encoded(candidate)
        chosen = choose(problem.id, entry.submissions, self._settings.names, self._settings.choice)
        # The same problem with the same programs may be in a set twice.
        if self._is_known(chosen.audit) or chosen.audit in self._begun:
            self.progress.known += 1
            return
        self._begun.add(chosen.audit)
        case = _Case(candidate, entry, problem, chosen)
        while self._in_flight and (
            self._in_flight >= self._settings.problems_at_once or self._in_flight_bytes + case.bytes > IN_FLIGHT_BYTES
        ):
            self._settle(self._ended.get())
        self._in_flight += 1
        self._in_flight_bytes += case.bytes
        if chosen.requests:
            self._workers.submit(partial(self._store, case))
        else:
            self._ended.put(case)

    def _store(self, case: _Case) -> None:
        """In a worker: the problem first, then its programs."""
        try:
            self._grader.put_problem(case.problem)
        except Refused as refused:
            case.refusal = str(refused)
            self._ended.put(case)
        # Whatever it is, it ends the audit, in the thread that reads the rows.
        except Exception as error:  # noqa: BLE001
            case.error = error
            self._ended.put(case)
        else:
            for position, (_, request) in enumerate(case.chosen.requests):
                self._workers.submit(partial(self._grade, case, position, request))

    def _grade(self, case: _Case, position: int, request: GradeRequest) -> None:
        try:
            case.results[position] = self._graded(case, request)
        except Refused as refused:
            case.refused[f"refused: {refused.detail}"] += 1
        except Exception as error:  # noqa: BLE001
            # Handed on at once: what else of it waits for the same grader would be long in failing.
            case.error = error
            self._ended.put(case)
        if case.done_one():
            self._ended.put(case)

    def _graded(self, case: _Case, request: GradeRequest) -> GradeResult:
        try:
            return self._grader.grade(request)
        except UnknownProblem:
            # A grader with an empty store has taken the place of the one that took it.
            self._grader.put_problem(case.problem, again=True)
            return self._grader.grade(request)

    def _settle_ended(self) -> None:
        try:
            while True:
                self._settle(self._ended.get_nowait())
        except Empty:
            return

    def _keep_ended(self) -> None:
        """What is done must not be lost, whatever else went wrong."""
        try:
            while True:
                case = self._ended.get_nowait()
                if case.error is None:
                    self._settle(case)
        except Empty:
            return

    def _settle(self, case: _Case) -> None:
        self._in_flight -= 1
        self._in_flight_bytes -= case.bytes
        if case.error is not None:
            raise case.error
        if case.refusal is not None:
            self._skip(Skipped(case.candidate.path, case.candidate.number, "refused", case.refusal))
            return
        row = self._row(case)
        self.progress.audited += 1
        self.progress.graded += sum(result is not None for result in case.results)
        self.progress.quarantined += bool(row.quarantine)
        self._watcher.audited(row)

    def _skip(self, skipped: Skipped) -> None:
        self.progress.skipped[skipped.fault] += 1
        self._watcher.skipped(skipped)

    def _row(self, case: _Case) -> ProblemRow:
        results: list[tuple[Submission, GradeResult]] = [
            (one, result)
            for (one, _), result in zip(case.chosen.requests, case.results, strict=True)
            if result is not None
        ]
        counted = tally(case.submissions, results, sources=self._settings.sources)
        row = ProblemRow(
            file=str(case.candidate.path),
            row=case.candidate.number,
            key=case.key,
            problem_id=case.problem.id,
            kind=case.kind,
            tests=case.tests,
            audit=case.chosen.audit,
            tpr=None,
            tnr=None,
            correct=counted.correct,
            incorrect=counted.incorrect,
            verdicts=counted.verdicts,
            unexpected=counted.unexpected,
            compile_errors=counted.compile_errors,
            checker_errors=counted.checker_errors,
            internal_errors=counted.internal_errors,
            skipped=dict(Counter(case.chosen.skipped) + case.refused),
            disagreements=counted.disagreements,
            quarantine=(),
            grader=counted.grader,
        )
        return self._settings.thresholds.judged(row)
