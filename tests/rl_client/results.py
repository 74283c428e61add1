"""Results as the grader gives them, scored by the grader's own rules, for tests that need no real run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from service.contract import (
    GradeResult,
    GraderInfo,
    GroupRow,
    LimitsRow,
    TestRow,
    Timing,
    Unrun,
    Verdict,
)
from service.scoring import score, score_unrun

PROBLEM = "sha256:" + "0" * 64
LIMITS = LimitsRow(cpu_s=2.0, wall_s=5.0, memory_bytes=256 * 2**20, output_bytes=64 * 2**20, processes=64)


def graded(*pairs: tuple[int, Verdict], cpu_s: Sequence[float] = (), **fields: Any) -> GradeResult:
    """Tests of these input lengths and verdicts. `fields` replace those of the result."""
    tests = tuple(
        TestRow(
            index=index,
            input_length=length,
            verdict=verdict,
            cpu_s=None if verdict is Verdict.SKIPPED else (cpu_s[index] if cpu_s else 0.01),
            memory_bytes=None if verdict is Verdict.SKIPPED else 8 * 2**20,
        )
        for index, (length, verdict) in enumerate(pairs)
    )
    return _result(score(tests, "first_failure"), tests, fields)


def unrun(verdict: Unrun, *lengths: int, **fields: Any) -> GradeResult:
    """A submission that had no program, or one that does not compile."""
    tests = tuple(
        TestRow(index=index, input_length=length, verdict=Verdict.SKIPPED) for index, length in enumerate(lengths)
    )
    return _result(score_unrun(lengths, verdict), tests, fields)


def provoked(*lengths: int) -> GradeResult:
    """A program that broke the checker at the first of these."""
    result = graded(*((length, Verdict.CHECKER_ERROR) for length in lengths))
    first = result.tests[0].model_copy(update={"provoked": True})
    return result.model_copy(update={"tests": (first, *result.tests[1:])})


def _result(points: Any, tests: tuple[TestRow, ...], fields: dict[str, Any]) -> GradeResult:
    known: dict[str, Any] = {
        "problem_id": PROBLEM,
        "language": "python",
        "verdict": points.verdict,
        "category": points.category,
        "taxonomy": "first_failure",
        "first_failure_length": points.first_failure_length,
        "rewards": dict(points.rewards),
        "groups": tuple(
            GroupRow(k=g.k, tests=g.tests, passed=g.passed, failed=g.failed, skipped=g.skipped) for g in points.groups
        ),
        "tests": tests,
        "limits": LIMITS,
        "compile": None,
        "timing": Timing(queue_s=0.0, compile_s=0.0, run_s=0.0, total_s=0.0),
        "grader": GraderInfo(version="1.2.3", sandbox="none", language_version="3", secure=True),
    }
    return GradeResult(**known | fields)
