"""How large a result may become, whatever a program prints."""

from __future__ import annotations

import json
import time

import pytest

from sandbox.problem import TestResult
from sandbox.tally import Tally
from sandbox.verdicts import Verdict
from service.contract import GradeRequest, GraderInfo
from service.engines.base import Job
from service.results import SHOWN_BYTES, Outcome, graded
from service.scoring import score

GRADER = GraderInfo(version="0", sandbox="nsjail", language_version="3", secure=True)
LONGEST = b"\x01" * 4095


@pytest.mark.parametrize(("tests", "shown"), [(1, 4096), (512, 4096), (10_000, 209)])
def test_what_is_shown_of_outputs_is_shared_out_among_tests_where_there_are_many(tests: int, shown: int) -> None:
    rows = [
        TestResult(
            index,
            None,
            4,
            Verdict.WRONG_ANSWER,
            stdout_tail=LONGEST + b"o",
            stderr_tail=LONGEST + b"e",
            output_tail=LONGEST + b"f",
            checker_message="c" + LONGEST.decode(),
        )
        for index in range(tests)
    ]
    request = GradeRequest(problem="sha256:" + 64 * "0", language="python", source="", detail="outputs")
    outcome = Outcome(score(rows, "first_failure"), rows)
    result = graded(Job(request, time.monotonic()), outcome, grader=GRADER, queue_s=0.0, tally=Tally()).result
    row = json.loads(result)["tests"][-1]
    texts = [row[name] for name in ("stdout_tail", "stderr_tail", "output_tail", "checker_message")]
    assert [(len(text), text.strip("\x01")) for text in texts] == [(shown, end) for end in "oefc"]
    # As JSON has it: six bytes for each, and what else stands in a row.
    assert len(result) < 6 * SHOWN_BYTES + 400 * tests + 4096
