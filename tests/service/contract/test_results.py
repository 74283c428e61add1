"""What a client makes of a result."""

from __future__ import annotations

from typing import Any

from sandbox.verdicts import Verdict
from service.contract import GradeResult
from tests.service.contract.samples import ID, refused

RESULT: dict[str, Any] = {
    "id": "step-1",
    "index": None,
    "problem_id": ID,
    "language": "python",
    "verdict": "time_limit",
    "category": "optimization_failure",
    "taxonomy": "first_failure",
    "first_failure_length": 12,
    "rewards": {"R_1": 1, "R_2": 0, "R_inf": 0},
    "groups": [
        {"k": 1, "tests": 1, "passed": 1, "failed": 0, "skipped": 0},
        {"k": 2, "tests": 2, "passed": 1, "failed": 1, "skipped": 0},
    ],
    "tests": [
        {"index": 0, "input_length": 4, "verdict": "accepted", "cpu_s": 0.01, "exit_code": 0},
        {"index": 1, "input_length": 12, "verdict": "time_limit", "cpu_s": 2.0, "signal": 9, "reruns": 1},
    ],
    "compile": None,
    "timing": {"queue_s": 0.0, "compile_s": 0.0, "run_s": 2.1, "total_s": 2.2},
    "grader": {"version": "0.1.0", "sandbox": "nsjail 3.6", "language_version": "3.11.2", "secure": True},
}


def test_a_result_survives_the_way_over_the_wire() -> None:
    result = GradeResult.model_validate(RESULT)

    assert GradeResult.model_validate_json(result.model_dump_json()) == result
    assert list(result.rewards) == ["R_1", "R_2", "R_inf"]
    assert result.tests[1].verdict is Verdict.TIME_LIMIT
    assert (result.tests[1].reruns, result.tests[1].stdout_tail) == (1, None)


def test_a_submission_without_run_tests_has_a_verdict_of_its_own() -> None:
    for verdict in ("compile_error", "format_error"):
        assert GradeResult.model_validate(RESULT | {"verdict": verdict}).verdict == verdict
    assert list(refused(GradeResult, RESULT | {"rewards": {"R_1": 2}})) == ["rewards.R_1"]


def test_an_older_client_reads_a_newer_graders_result() -> None:
    newer = RESULT | {"added_later": 1, "timing": RESULT["timing"] | {"added_later": 1}}

    assert GradeResult.model_validate(newer) == GradeResult.model_validate(RESULT)
