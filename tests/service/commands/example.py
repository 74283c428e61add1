"""The example's programs, and what the command says of programs as JSON."""

from __future__ import annotations

from pathlib import Path

from service.contract import GradeResult

EXAMPLE = Path(__file__).parents[3] / "examples" / "two-sum-count"
ACCEPTED = EXAMPLE / "submissions/accepted/counting.py"
SLOW = EXAMPLE / "submissions/time_limit_exceeded/every_pair.py"
WRONG = EXAMPLE / "submissions/wrong_answer/forgets_repeats.py"


def results(stdout: str) -> list[GradeResult]:
    return [GradeResult.model_validate_json(line) for line in stdout.splitlines()]
