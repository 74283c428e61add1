"""Results as the grader gives them, and labelled programs, for tests that need no real ones."""

from __future__ import annotations

from rl_client.audit.rows import ProblemRow, SideRow
from rl_client.datasets.submissions import Submission
from service.contract import (
    CompileRow,
    GradeResult,
    GraderInfo,
    SubmissionVerdict,
    TestRow,
    Timing,
    Verdict,
)

PROBLEM = "sha256:" + "0" * 64


def program(name: str, *, correct: bool, **fields: object) -> Submission:
    known = {"label": "right" if correct else "wrong", "language": "py3", "source": name}
    return Submission(name=name, correct=correct, **known | fields)  # type: ignore[arg-type]


def result(*verdicts: Verdict, of_all: SubmissionVerdict | None = None, compiler: str | None = None) -> GradeResult:
    """Tests with these verdicts, of rising input length; the first that is not accepted decides."""
    failed = [verdict for verdict in verdicts if verdict not in (Verdict.ACCEPTED, Verdict.SKIPPED)]
    return GradeResult(
        problem_id=PROBLEM,
        language="python",
        verdict=of_all or (failed[0] if failed else Verdict.ACCEPTED),
        category=None,
        taxonomy="first_failure",
        first_failure_length=None,
        rewards={},
        groups=(),
        tests=tuple(
            TestRow(index=index, name=f"t{index}", input_length=10 * index, verdict=verdict, message=f"said {verdict}")
            for index, verdict in enumerate(verdicts)
        ),
        compile=None if compiler is None else CompileRow(ok=False, cpu_s=0.0, cached=False, message=compiler),
        timing=Timing(queue_s=0.0, compile_s=0.0, run_s=0.0, total_s=0.0),
        grader=GraderInfo(version="1.2.3", sandbox="none", language_version="3", secure=True),
    )


def row(
    key: str = "A",
    *,
    right: tuple[int, int] = (1, 1),
    wrong: tuple[int, int] = (1, 1),
    **fields: object,
) -> ProblemRow:
    """A line of a report; `right` and `wrong` are how many agreed, of how many."""
    known: dict[str, object] = {
        "file": "rows.jsonl",
        "row": 0,
        "key": key,
        "problem_id": PROBLEM,
        "kind": "stdio",
        "tests": 1,
        "audit": f"audit of {key}",
        "tpr": None,
        "tnr": None,
        "correct": SideRow(labelled=right[1], graded=right[1], agreed=right[0]),
        "incorrect": SideRow(labelled=wrong[1], graded=wrong[1], agreed=wrong[0]),
        "verdicts": {},
        "unexpected": 0,
        "compile_errors": 0,
        "checker_errors": 0,
        "internal_errors": 0,
        "skipped": {},
        "disagreements": (),
        "quarantine": (),
        "grader": "1.2.3",
    }
    return ProblemRow.model_validate(known | fields)
