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

from sandbox.problem import CompileResult, TestResult
from sandbox.verdicts import Verdict
from service import contract
from service.engines.base import Graded, Job, Summary
from service.points import Plan, award, plan
from service.scoring import Score, score
from service.stores.problems import ProblemStore, ProblemStoreError

VERSION = version("rkgrade")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one submission came to: judged, without a program to judge, or failed at by the grader."""

    score: Score
    tests: Sequence[TestResult]
    compile: CompileResult | None = None
    compile_s: float = 0.0
    run_s: float = 0.0
    plan: Plan | None = None
    """How the problem gives points, if it does."""


def graded(job: Job, outcome: Outcome, *, grader: contract.GraderInfo, queue_s: float, cells_started: int) -> Graded:
    """The finished result, to be sent now: `total_s` ends here. `cells_started`: for it, and since the last one."""
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
        tests=tuple(_row(test, request.detail) for test in outcome.tests),
        compile=None
        if compiled is None
        else contract.CompileRow(
            ok=compiled.ok, cpu_s=compiled.cpu_s, cached=compiled.cached, message=compiled.message
        ),
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
        compile_cached=None if compiled is None else compiled.cached,
        reruns=sum(test.reruns for test in outcome.tests),
        queue_s=queue_s,
        compile_s=outcome.compile_s,
        run_s=outcome.run_s,
        cells_started=cells_started,
    )
    return Graded(result.model_dump_json().encode(), summary)


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
    return graded(job, Outcome(points, tests, plan=points_plan), grader=grader, queue_s=queue_s, cells_started=0)


def _row(test: TestResult, detail: contract.Detail) -> contract.TestRow:
    shown = detail == "outputs"
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
        reruns=test.reruns,
        stdout_tail=test.stdout_tail.decode("utf-8", "replace") if shown else None,
        stderr_tail=test.stderr_tail.decode("utf-8", "replace") if shown else None,
        checker_message=test.checker_message if shown else None,
    )
