"""What is counted of finished grades, where nothing was run for them."""

from __future__ import annotations

import functools
import time
from collections import Counter

import pytest

from sandbox.tally import Tally
from service.contract import GradeRequest
from service.engines.base import Job, Summary
from service.metrics import Metrics
from service.results import again
from tests.service.verdicts.entries import result


def summary(verdict: str, *, known: bool = False) -> Summary:
    return Summary("python", verdict, None, {}, None, 0, 0, 0.0, 0.0, 0.0, 0, verdict_cached=known)


FAULT, RIGHT, WRONG = summary("internal_error"), summary("accepted"), summary("wrong_answer")
KNOWN, UNRUN = summary("accepted", known=True), summary("format_error")


@pytest.mark.parametrize(
    ("ended", "faults"),
    [
        ([FAULT, FAULT], 2),
        ([FAULT, RIGHT, FAULT], 1),
        ([FAULT, FAULT, WRONG], 0),
        # A host that can run nothing any more knows many results, and finds no program in many completions.
        ([FAULT, KNOWN, FAULT, KNOWN], 2),
        ([FAULT, UNRUN, FAULT, UNRUN], 2),
    ],
)
def test_only_a_program_that_was_run_ends_a_row_of_faults(ended: list[Summary], faults: int) -> None:
    assert functools.reduce(lambda before, one: one.faults_in_a_row(before), ended, 0) == faults


def test_what_a_cancelled_grade_met_is_counted_with_the_next_one_even_where_that_is_known() -> None:
    met = Tally(cells_started=2, oom_kills=3, host_oom_kills=4, faults=Counter(no_cell=5))
    request = GradeRequest(problem="sha256:" + 64 * "0", language="python", source="")
    known = result()
    done = again(Job(request, time.monotonic()), known, queue_s=0.0, tally=met, problem_cached=True)
    metrics = Metrics()
    metrics.graded(done.summary)
    labels = f'category="{known.category}",language="{known.language}",verdict="{known.verdict}"'
    lines = metrics.exposition().decode().splitlines()
    assert {
        "rkgrade_cells_started_total 2.0",
        'rkgrade_oom_kills_total{by="limit"} 3.0',
        'rkgrade_oom_kills_total{by="host"} 4.0',
        'rkgrade_sandbox_faults_total{cause="no_cell"} 5.0',
        'rkgrade_verdict_lookups_total{cache="hit"} 1.0',
        f"rkgrade_grades_total{{{labels}}} 1.0",
    } <= set(lines)
    # Nothing ran for it.
    assert not [line for line in lines if line.startswith("rkgrade_tests_total") and not line.endswith(" 0.0")]
