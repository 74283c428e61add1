"""Threads that wait for a grader: in order, with every error told, and left behind where the work breaks off."""

from __future__ import annotations

import threading

import pytest

from rl_client.workers import Workers

WITHIN_S = 10.0


def test_results_and_errors_come_where_they_are_asked_for() -> None:
    def fail() -> int:
        raise KeyError("x")

    with Workers(2) as workers:
        futures = [workers.submit(lambda: 1), workers.submit(fail), workers.submit(lambda: 3)]
    assert [futures[0].result(0), futures[2].result(0)] == [1, 3]
    with pytest.raises(KeyError):
        futures[1].result(0)


def test_what_was_handed_over_is_done_before_the_end() -> None:
    done: list[int] = []
    with Workers(1) as workers:
        for number in range(100):
            workers.submit(lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == list(range(100))


def test_no_more_than_so_many_at_once() -> None:
    both = threading.Barrier(2)
    with Workers(2) as workers:
        futures = [workers.submit(lambda: both.wait(WITHIN_S)) for _ in range(4)]
        assert sorted(future.result(WITHIN_S) for future in futures) == [0, 0, 1, 1]


def test_an_error_leaves_behind_what_is_under_way_and_drops_the_rest() -> None:
    begun, over = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        over.wait(WITHIN_S)

    later: list[int] = []
    with pytest.raises(RuntimeError, match="broke off"), Workers(1) as workers:
        hanging = workers.submit(hang)
        dropped = workers.submit(lambda: later.append(1))
        assert begun.wait(WITHIN_S)
        raise RuntimeError("broke off")
    assert not hanging.done()
    over.set()
    hanging.result(WITHIN_S)
    assert (later, dropped.done()) == ([], False)
