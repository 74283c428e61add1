"""One request, start to end, inside a worker: completion -> program -> judge -> score -> result.

The only place where the wire contract meets the judge. Knows nothing of HTTP, queues or other workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pydantic import ValidationError

from sandbox import languages
from sandbox.errors import GraderFault
from sandbox.judge import Judge
from sandbox.problem import Limits, OnTest, Problem, Stop, Submission, TestResult
from sandbox.verdicts import Verdict
from service import contract
from service.engines.base import Graded, Job
from service.extraction import extract
from service.results import Outcome, again, graded
from service.scoring import score, score_unrun
from service.stores.loaded import LoadedProblems
from service.verdicts.cache import VerdictCache
from service.verdicts.keeping import Keeping


class LimitsRefused(Exception):
    """The limits that the problem and the request come to are past the hard bounds."""


class Grading:
    """Grades one job at a time on one judge."""

    def __init__(
        self,
        judge: Judge,
        problems: LoadedProblems,
        *,
        graders: Mapping[str, contract.GraderInfo],
        verdicts: VerdictCache | None = None,
    ) -> None:
        """`graders`: by language id, what results say of the grader. `verdicts`: where results are kept; None where
        each program is run.
        """
        self._judge = judge
        self._problems = problems
        self._graders = graders
        self._verdicts = verdicts

    def grade(self, job: Job, *, queue_s: float, cancel_fd: int | None, on_test: OnTest | None = None) -> Graded:
        """Blocks until the result is there, calling `on_test` with each test's as it ends.

        Raises ProblemStoreError, CheckerRefused and UnknownLanguage, LimitsRefused where the limits come to more than
        is allowed, and Cancelled as soon as `cancel_fd` is readable.
        """
        request = job.request
        problem_cached = job.problem_id in self._problems
        loaded = self._problems.get(job.problem_id)
        problem = loaded.measured_in(request.length_unit)
        try:
            limits = _limits(contract.effective_limits(loaded.limits, request))
        except ValidationError as error:
            # Of this alone: any other mistake in what was checked already is ours, and no word about the limits.
            which = contract.field_path(error.errors()[0]["loc"])
            raise LimitsRefused(f"the limit {which} comes to more than is allowed") from error
        language = languages.resolve(request.language)
        source = request.source
        if source is None:
            assert request.completion is not None
            names = {name.lower() for name in (language.id, language.name, *language.aliases)}
            source = extract(request.completion, request.extraction, names)
        grader = self._graders[language.id]
        if source is None:
            outcome = Outcome(score_unrun(_lengths(problem), "format_error"), _all(problem, Verdict.SKIPPED))
            keeping = None
        else:
            submission = Submission(problem, language.id, source.encode(), limits, Stop(request.stop))
            keeping = self._keeping(submission, request, grader)
            if keeping is not None and (known := keeping.known()) is not None:
                tally = self._judge.take_tally()
                return again(job, known, queue_s=queue_s, tally=tally, problem_cached=problem_cached)
            outcome = self._judged(submission, request.taxonomy, cancel_fd, on_test)
        tally = self._judge.take_tally()
        done = graded(
            job,
            replace(outcome, plan=loaded.plan),
            grader=grader,
            queue_s=queue_s,
            tally=tally,
            problem_cached=problem_cached,
            verdict_cached=None if keeping is None else False,
        )
        if keeping is not None and not tally.faults:
            keeping.keep(outcome, done.result)
        return done

    def _keeping(
        self, submission: Submission, request: contract.GradeRequest, grader: contract.GraderInfo
    ) -> Keeping | None:
        """None where its result is neither looked for nor kept."""
        if self._verdicts is None or request.fresh:
            return None
        limits = self._judge.limits_here(submission.language, submission.limits)
        return Keeping(self._verdicts, replace(submission, limits=limits), request, grader)

    def _judged(
        self,
        submission: Submission,
        taxonomy: contract.Taxonomy,
        cancel_fd: int | None,
        on_test: OnTest | None,
    ) -> Outcome:
        try:
            judgement = self._judge.judge(submission, cancel_fd=cancel_fd, on_test=on_test)
        except GraderFault as fault:
            tests = _all(submission.problem, Verdict.INTERNAL_ERROR, str(fault))
            return Outcome(score(tests, taxonomy), tests)
        if judgement.compile is None or judgement.compile.ok:
            points, tests = score(judgement.tests, taxonomy), judgement.tests
        else:
            points = score_unrun(_lengths(submission.problem), "compile_error")
            tests = _all(submission.problem, Verdict.SKIPPED)
        return Outcome(
            score=points,
            tests=tests,
            limits=judgement.limits,
            compile=judgement.compile,
            compile_s=judgement.compile_s,
            run_s=judgement.run_s,
        )


def _limits(limits: contract.ProblemLimits) -> Limits:
    return Limits(
        cpu_s=limits.cpu_s,
        wall_s=limits.wall_s,
        memory_bytes=limits.memory_mb * 2**20,
        output_bytes=limits.output_mb * 2**20,
        processes=limits.processes,
    )


def _lengths(problem: Problem) -> list[int]:
    return [test.input_length for test in problem.tests]


def _all(problem: Problem, verdict: Verdict, message: str = "") -> tuple[TestResult, ...]:
    return tuple(
        TestResult(test.index, test.name, test.input_length, verdict, message=message) for test in problem.tests
    )
