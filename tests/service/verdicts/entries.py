"""Results to be kept by the tests of keeping them."""

from __future__ import annotations

from sandbox.verdicts import Verdict
from service.contract import GradeResult, GraderInfo, TestRow, Timing

KEY, OTHER = "0" * 64, "1" * 64


def result(message: str = "", *, id: str | None = "step-1") -> GradeResult:
    return GradeResult(
        id=id,
        index=3,
        problem_id="sha256:" + 64 * "0",
        language="python",
        verdict=Verdict.ACCEPTED,
        category="correct",
        taxonomy="first_failure",
        first_failure_length=None,
        rewards={"R_1": 1, "R_inf": 1},
        groups=(),
        tests=(TestRow(index=0, input_length=4, verdict=Verdict.ACCEPTED, cpu_s=0.01, message=message),),
        compile=None,
        timing=Timing(queue_s=0.1, compile_s=0.0, run_s=0.2, total_s=0.3),
        grader=GraderInfo(version="0.1.0", sandbox="nsjail", language_version="Python 3", secure=True),
    )


def as_json(message: str = "") -> bytes:
    return result(message).model_dump_json().encode()
