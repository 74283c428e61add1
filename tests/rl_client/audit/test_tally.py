"""What results count for: each way to agree with a label, and each way not to."""

from __future__ import annotations

import pytest

from rl_client.audit.rows import DisagreementRow, SideRow
from rl_client.audit.tally import tally
from rl_client.datasets.submissions import Expectation
from service.contract import Verdict
from tests.rl_client.audit.results import program, result

AC, WA, TLE, SKIPPED = Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.TIME_LIMIT, Verdict.SKIPPED
CHECKER, INTERNAL = Verdict.CHECKER_ERROR, Verdict.INTERNAL_ERROR

RIGHT, WRONG = program("right", correct=True), program("wrong", correct=False)
SLOW = program("slow", correct=False, expected=(Expectation(frozenset({AC, TLE}), frozenset({TLE})),))


@pytest.mark.parametrize(
    ("one", "verdicts", "graded", "agreed", "kind"),
    [
        (RIGHT, (AC, AC), 1, 1, None),
        (RIGHT, (AC, WA), 1, 0, "false_negative"),
        (RIGHT, (TLE, SKIPPED), 1, 0, "false_negative"),
        (WRONG, (AC, WA), 1, 1, None),
        (WRONG, (TLE, SKIPPED), 1, 1, None),
        (WRONG, (AC, AC), 1, 0, "false_positive"),
        (SLOW, (AC, TLE), 1, 1, None),
        (SLOW, (AC, WA), 1, 1, "unexpected"),
        (SLOW, (AC, AC), 1, 0, "false_positive"),
        (RIGHT, (AC, CHECKER), 0, 0, "fault"),
        (WRONG, (AC, CHECKER), 0, 0, "fault"),
        (WRONG, (INTERNAL,), 0, 0, "fault"),
    ],
)
def test_one_result(one: object, verdicts: tuple[Verdict, ...], graded: int, agreed: int, kind: str | None) -> None:
    counted = tally([one], [(one, result(*verdicts))], sources=False)  # type: ignore[list-item]

    side, other = counted.incorrect, counted.correct
    if one is RIGHT:
        side, other = other, side
    assert side == SideRow(labelled=1, graded=graded, agreed=agreed)
    assert other == SideRow(labelled=0, graded=0, agreed=0)
    assert [row.kind for row in counted.disagreements] == ([] if kind is None else [kind])


@pytest.mark.parametrize("one", [RIGHT, WRONG])
def test_a_program_that_does_not_compile_says_nothing_of_the_tests(one: object) -> None:
    graded = result(SKIPPED, of_all="compile_error", compiler="no semicolon")
    counted = tally([one], [(one, graded)], sources=False)  # type: ignore[list-item]

    assert (counted.correct.graded, counted.incorrect.graded, counted.compile_errors) == (0, 0, 1)
    assert [(row.kind, row.message, row.test) for row in counted.disagreements] == [
        ("compile_error", "no semicolon", None)
    ]


def test_many_results_together() -> None:
    unused = program("unused", correct=False)
    results = [
        (RIGHT, result(AC)),
        (RIGHT, result(INTERNAL)),
        (WRONG, result(WA)),
        (WRONG, result(AC)),
        (SLOW, result(CHECKER)),
    ]
    counted = tally([RIGHT, RIGHT, WRONG, WRONG, SLOW, unused], results, sources=False)

    assert counted.correct == SideRow(labelled=2, graded=1, agreed=1)
    assert counted.incorrect == SideRow(labelled=4, graded=2, agreed=1)
    assert counted.verdicts == {
        "right": {"accepted": 1, "internal_error": 1},
        "wrong": {"wrong_answer": 1, "accepted": 1, "checker_error": 1},
    }
    assert (counted.checker_errors, counted.internal_errors, counted.compile_errors) == (1, 1, 0)
    assert (counted.unexpected, counted.grader) == (0, "1.2.3")


def test_a_disagreement_names_the_first_failure_by_length_and_keeps_the_source_if_asked() -> None:
    for sources in (False, True):
        (row,) = tally([RIGHT], [(RIGHT, result(AC, WA, TLE))], sources=sources).disagreements
        assert row == DisagreementRow(
            name="right",
            label="right",
            language="python",
            kind="false_negative",
            verdict="wrong_answer",
            test="t1",
            input_length=10,
            message="said wrong_answer",
            source="right" if sources else None,
        )


def test_what_is_otherwise_than_expected_is_said_in_words() -> None:
    (row,) = tally([SLOW], [(SLOW, result(AC, WA))], sources=False).disagreements
    assert row.message == "t1 came to wrong_answer"
