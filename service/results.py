"""From what a submission came to, to the GradeResult that is sent.

Knows no judge, so that the API can report a fault itself.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import get_args

from sandbox.problem import CompileResult, Limits, TestResult
from sandbox.tally import Tally
from sandbox.verdicts import Verdict
from service import contract
from service.engines.base import Graded, Job, Summary
from service.growth import Fit, growth
from service.points import Plan, award, plan
from service.scoring import Score, score
from service.stores.problems import ProblemStore, ProblemStoreError

VERSION = version("rkgrade")

#: Of all texts in a result that are shown on demand, shared out equally among its tests. JSON may make six of each
#: byte, and a worker, Redis and the API hold them beside what is others'.
SHOWN_BYTES = 8 * 2**20

#: Texts of a test that are.
_TEXTS_EACH = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one submission came to: judged, without a program to judge, or failed at by the grader."""

    score: Score
    tests: Sequence[TestResult]
    limits: Limits | None = None
    """Those that the tests were run under; None where it never came to that."""
    compile: CompileResult | None = None
    compile_s: float = 0.0
    run_s: float = 0.0
    plan: Plan | None = None
    """How the problem gives points, if it does."""


def graded(
    job: Job,
    outcome: Outcome,
    *,
    grader: contract.GraderInfo,
    queue_s: float,
    tally: Tally,
    problem_cached: bool | None = None,
    verdict_cached: bool | None = None,
) -> Graded:
    """The finished result, to be sent now: `total_s` ends here. `tally`: of what was met for it, and since the last
    one. `problem_cached`: whether the problem was loaded already, where that was asked. `verdict_cached`: False where
    an earlier result was looked for.
    """
    request, points, compiled = job.request, outcome.score, outcome.compile
    ran = points.verdict not in get_args(contract.Unrun)
    earned = award(outcome.plan, outcome.tests, ran=ran) if outcome.plan is not None else None
    result = contract.GradeResult(
        id=request.id,
        index=job.index,
        problem_id=job.problem_id,
        language=request.language,
        verdict=points.verdict,
        category=points.category,
        taxonomy=request.taxonomy,
        first_failure_length=points.first_failure_length,
        rewards=dict(points.rewards),
        groups=tuple(
            contract.GroupRow(k=g.k, tests=g.tests, passed=g.passed, failed=g.failed, skipped=g.skipped)
            for g in points.groups
        ),
        score=None if earned is None else earned.score,
        point_groups=()
        if earned is None
        else tuple(
            contract.PointRow(
                group=one.part.name,
                scoring=one.part.scoring,
                tests=len(one.part.points),
                points=one.points,
                max_points=one.max_points,
            )
            for one in earned.parts
        ),
        tests=_rows(outcome.tests, request.detail),
        limits=None if outcome.limits is None else _limits(outcome.limits),
        growth=None if outcome.limits is None else _growth(outcome.tests, outcome.limits),
        compile=compile_row(compiled),
        timing=contract.Timing(
            queue_s=queue_s,
            compile_s=outcome.compile_s,
            run_s=outcome.run_s,
            total_s=time.monotonic() - job.arrived_s,
        ),
        grader=grader,
    )
    summary = Summary(
        language=request.language,
        verdict=points.verdict,
        category=points.category,
        tests=dict(Counter(str(test.verdict) for test in outcome.tests)),
        compile_cache=compile_cache(compiled),
        provoked=sum(test.provoked for test in outcome.tests),
        reruns=sum(test.reruns for test in outcome.tests),
        queue_s=queue_s,
        compile_s=outcome.compile_s,
        run_s=outcome.run_s,
        cells_started=tally.cells_started,
        cpu_s=sum(test.cpu_s or 0.0 for test in outcome.tests),
        wall_s=sum(test.wall_s or 0.0 for test in outcome.tests),
        problem_cached=problem_cached,
        verdict_cached=verdict_cached,
        oom_kills=tally.oom_kills,
        host_oom_kills=tally.host_oom_kills,
        fault=next((test.message for test in outcome.tests if test.verdict is Verdict.INTERNAL_ERROR), ""),
        sandbox_faults=dict(tally.faults),
    )
    return Graded(result.model_dump_json().encode(), summary)


def again(job: Job, known: contract.GradeResult, *, queue_s: float, tally: Tally, problem_cached: bool) -> Graded:
    """The result of an earlier grade, as the answer to this one: what is its request's own, and when, is this one's."""
    compiled = known.compile
    result = known.model_copy(
        update={
            "id": job.request.id,
            "index": job.index,
            "compile": None if compiled is None else compiled.model_copy(update={"cpu_s": 0.0, "cached": True}),
            "timing": contract.Timing(
                queue_s=queue_s, compile_s=0.0, run_s=0.0, total_s=time.monotonic() - job.arrived_s, cached=True
            ),
        }
    )
    summary = Summary(
        language=known.language,
        verdict=known.verdict,
        category=known.category,
        tests=dict(Counter(str(test.verdict) for test in known.tests)),
        compile_cache=None,
        provoked=0,
        reruns=0,
        queue_s=queue_s,
        compile_s=0.0,
        run_s=0.0,
        cells_started=tally.cells_started,
        problem_cached=problem_cached,
        verdict_cached=True,
        oom_kills=tally.oom_kills,
        host_oom_kills=tally.host_oom_kills,
        sandbox_faults=dict(tally.faults),
    )
    return Graded(result.model_dump_json().encode(), summary)


def compile_cache(compiled: CompileResult | None) -> str | None:
    """As of `Summary`."""
    if compiled is None:
        return None
    if not compiled.cached:
        return "miss"
    return "shared" if compiled.shared else "hit"


def fault(job: Job, store: ProblemStore, *, grader: contract.GraderInfo, message: str) -> Graded:
    """The result of a grade that the grader itself failed at: internal_error, category and rewards null."""
    try:
        problem = contract.parse_problem(store.get(job.problem_id))
        stored, points_plan = problem.tests, plan(problem)
    except (ProblemStoreError, OSError):
        stored, points_plan = (), None
    tests = tuple(
        TestResult(
            index=index,
            name=test.name,
            input_length=contract.input_length(test.given, job.request.length_unit),
            verdict=Verdict.INTERNAL_ERROR,
            message=message,
        )
        for index, test in enumerate(stored)
    )
    nothing = Score(Verdict.INTERNAL_ERROR, None, None, {"R_inf": None}, ())
    points = score(tests, job.request.taxonomy) if tests else nothing
    queue_s = time.monotonic() - job.accepted_s
    return graded(job, Outcome(points, tests, plan=points_plan), grader=grader, queue_s=queue_s, tally=Tally())


def compile_row(compiled: CompileResult | None) -> contract.CompileRow | None:
    if compiled is None:
        return None
    return contract.CompileRow(
        ok=compiled.ok,
        cpu_s=compiled.cpu_s,
        cached=compiled.cached,
        message=compiled.message,
        timed_out=compiled.timed_out,
    )


def _limits(limits: Limits) -> contract.LimitsRow:
    return contract.LimitsRow(
        cpu_s=limits.cpu_s,
        wall_s=limits.effective_wall_s,
        memory_bytes=limits.memory_bytes,
        output_bytes=limits.output_bytes,
        processes=limits.processes,
    )


def _growth(tests: Sequence[TestResult], limits: Limits) -> contract.GrowthRow | None:
    found = growth(tests, cpu_limit_s=limits.cpu_s, memory_limit_bytes=limits.memory_bytes)
    return None if found is None else contract.GrowthRow(cpu=_fit(found.cpu), memory=_fit(found.memory))


def _fit(fit: Fit | None) -> contract.FitRow | None:
    return None if fit is None else contract.FitRow.model_validate(fit, from_attributes=True)


def _rows(tests: Sequence[TestResult], detail: contract.Detail) -> tuple[contract.TestRow, ...]:
    shown_bytes = SHOWN_BYTES // (_TEXTS_EACH * max(1, len(tests))) if detail == "outputs" else None
    return tuple(_row(test, shown_bytes) for test in tests)


def _row(test: TestResult, shown_bytes: int | None) -> contract.TestRow:
    """`shown_bytes`: of each text that is shown on demand; None for none of them."""

    def tail(text: bytes | None) -> str | None:
        return None if text is None or shown_bytes is None else text[-shown_bytes:].decode("utf-8", "replace")

    return contract.TestRow(
        index=test.index,
        name=test.name,
        input_length=test.input_length,
        verdict=test.verdict,
        cpu_s=test.cpu_s,
        wall_s=test.wall_s,
        memory_bytes=test.memory_bytes,
        exit_code=test.exit_code,
        signal=test.signal,
        score=test.score,
        message=test.message,
        provoked=test.provoked,
        reruns=test.reruns,
        stdout_tail=tail(test.stdout_tail),
        stderr_tail=tail(test.stderr_tail),
        output_tail=tail(test.output_tail),
        checker_message=None if shown_bytes is None else test.checker_message[:shown_bytes],
    )
