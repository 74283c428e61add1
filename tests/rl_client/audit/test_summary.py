"""All problems together: pooled rates and means, and thresholds that are today's."""

from __future__ import annotations

from rl_client.audit.rows import DisagreementRow, Thresholds
from rl_client.audit.summary import SHOWN, Summary, summarize
from tests.rl_client.audit.results import row

USUAL = Thresholds(min_tpr=0.9, min_tnr=0.9, least=1, max_checker_errors=0.0)
REJECTED = DisagreementRow(name="a", label="right", language="python", kind="false_negative", verdict="wrong_answer")


def test_nothing() -> None:
    found = summarize([], USUAL)
    assert found == Summary()
    assert (found.correct.pooled, found.correct.mean) == (None, None)


def test_problems_count_alike_in_the_mean_and_by_their_programs_in_the_pooled_rate() -> None:
    rows = [
        row("A", right=(9, 9), wrong=(0, 0), verdicts={"right": {"accepted": 9}}, skipped={"language py2": 2}),
        row("B", right=(0, 1), wrong=(2, 2), verdicts={"right": {"wrong_answer": 1}}, disagreements=(REJECTED,)),
        row("C", right=(0, 0), wrong=(0, 0), skipped={"language py2": 1}),
    ]
    found = summarize(rows, USUAL)

    assert (found.problems, found.without_rate, found.quarantined, found.reasons) == (3, 1, 1, {"tpr": 1})
    assert (found.correct.pooled, found.correct.mean, found.correct.rates) == (0.9, 0.5, 2)
    assert (found.incorrect.pooled, found.incorrect.mean, found.incorrect.rates) == (1.0, 1.0, 1)
    assert found.verdicts == {"right": {"accepted": 9, "wrong_answer": 1}}
    assert (found.kinds, found.skipped) == ({"false_negative": 1}, {"language py2": 3})
    assert [one.key for one in found.worst] == ["B"]


def test_what_a_line_says_of_its_own_quarantine_does_not_count() -> None:
    lines = [row(right=(1, 2), quarantine=("tpr",), tpr=0.5)]
    assert summarize(lines, Thresholds(0.5, 0.5, 1, 0.0)).quarantined == 0
    assert summarize(lines, USUAL).quarantined == 1


def test_no_more_than_so_many_are_kept_to_be_shown() -> None:
    found = summarize((row(str(number), wrong=(0, 1)) for number in range(SHOWN + 5)), USUAL)
    assert (found.quarantined, len(found.worst)) == (SHOWN + 5, SHOWN)
