"""What is counted for those who watch a judge: faults by cause, those included that a second attempt mended."""

from __future__ import annotations

import pytest

from sandbox.errors import FAULT_CAUSES, GraderFault, HostOutOfMemory, HostRefused, NoCell
from sandbox.judge import Judge
from sandbox.submission import twice
from sandbox.tally import Tally


@pytest.mark.parametrize("error", [GraderFault("gone"), NoCell("no room"), HostOutOfMemory("full"), OSError("refused")])
def test_a_fault_that_a_second_attempt_mends_is_counted(error: Exception) -> None:
    tally = Tally()
    attempts: list[Exception] = [error]

    def work() -> str:
        if attempts:
            raise attempts.pop()
        return "done"

    assert twice(work, tally) == "done"
    (cause,) = tally.faults
    assert (cause, tally.faults[cause]) == (getattr(error, "cause", "host"), 1)
    assert cause in FAULT_CAUSES


def test_a_fault_that_stays_is_counted_twice_and_told() -> None:
    tally = Tally()

    def refused() -> None:
        raise OSError("no such thing")

    with pytest.raises(HostRefused, match="this host refused: no such thing"):
        twice(refused, tally)
    assert tally.faults == {"host": 2}


@pytest.mark.jail
def test_what_a_judge_has_counted_is_taken_once(judge: Judge) -> None:
    judge.take_tally()
    judge.give_back(judge.take_cell())
    judge.warm()
    assert judge.take_tally().cells_started >= 1
    assert judge.take_tally() == Tally()
