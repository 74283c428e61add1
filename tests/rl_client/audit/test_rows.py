"""Rates, and when they are reason to quarantine."""

from __future__ import annotations

import pytest

from rl_client.audit.rows import SideRow, Thresholds
from tests.rl_client.audit.results import row

USUAL = Thresholds(min_tpr=0.9, min_tnr=0.9, least=1, max_checker_errors=0.0)


@pytest.mark.parametrize(
    ("agreed", "graded", "least", "rate"),
    [(3, 4, 1, 0.75), (0, 4, 1, 0.0), (0, 0, 1, None), (3, 4, 4, 0.75), (3, 4, 5, None)],
)
def test_too_few_programs_have_no_rate(agreed: int, graded: int, least: int, rate: float | None) -> None:
    assert SideRow(labelled=9, graded=graded, agreed=agreed).rate(least) == rate


@pytest.mark.parametrize(
    ("right", "wrong", "checker_errors", "reasons"),
    [
        ((10, 10), (10, 10), 0, ()),
        ((9, 10), (9, 10), 0, ()),
        ((8, 10), (10, 10), 0, ("tpr",)),
        ((10, 10), (8, 10), 0, ("tnr",)),
        ((0, 10), (0, 10), 1, ("tpr", "tnr", "checker_error")),
        ((10, 10), (10, 10), 1, ("checker_error",)),
        ((0, 0), (10, 10), 0, ()),
        ((0, 0), (0, 0), 0, ()),
        ((0, 0), (0, 0), 3, ("checker_error",)),
    ],
)
def test_reasons(right: tuple[int, int], wrong: tuple[int, int], checker_errors: int, reasons: tuple[str, ...]) -> None:
    one = row(right=right, wrong=wrong, checker_errors=checker_errors)
    assert USUAL.reasons(one) == reasons


def test_a_share_of_checker_errors_may_be_allowed() -> None:
    some = Thresholds(0.9, 0.9, 1, max_checker_errors=0.1)
    assert some.reasons(row(right=(9, 9), wrong=(0, 0), checker_errors=1)) == ()
    assert some.reasons(row(right=(8, 8), wrong=(0, 0), checker_errors=1)) == ("checker_error",)


def test_a_row_is_judged_anew_by_other_thresholds() -> None:
    one = USUAL.judged(row(right=(1, 2), wrong=(2, 2)))
    assert (one.tpr, one.tnr, one.quarantine) == (0.5, 1.0, ("tpr",))
    lax = Thresholds(min_tpr=0.5, min_tnr=0.5, least=3, max_checker_errors=0.0).judged(one)
    assert (lax.tpr, lax.tnr, lax.quarantine) == (None, None, ())


def test_text_that_has_no_utf8_form_can_be_written_all_the_same() -> None:
    assert row(key="\ud800", audit="x", skipped={"language \ud800": 1}).model_dump_json().encode()
