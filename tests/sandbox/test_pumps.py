"""Pumps between pipes, driven as a poller drives them: nothing lost, nothing beyond the bound, ends passed on."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterator

import pytest

from sandbox.pumps import READ_BYTES, Pump
from tests.sandbox.cells import open_fds


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """Source's ends to read and to write, target's ends to read and to write; the first and last are for the pump."""
    before = open_fds()
    source, says = os.pipe()
    hears, target = os.pipe()
    yield source, says, hears, target
    for fd in (says, hears):
        if str(fd) in open_fds():
            os.close(fd)
    assert open_fds() == before


def drive(pump: Pump) -> None:
    """Let it move all that it can."""
    while waits := pump.waits_for():
        poller = select.poll()
        for fd, events in waits.items():
            poller.register(fd, events)
        ready = dict(poller.poll(0))
        if not ready:
            return
        pump.move(ready)


def test_bytes_pass_and_are_counted(pipes: tuple[int, int, int, int]) -> None:
    source, says, hears, target = pipes
    with contextlib.closing(Pump(source, 100, target)) as pump:
        for word in (b"one", b"two"):
            os.write(says, word)
            drive(pump)
            assert os.read(hears, 100) == word
        assert (pump.read_bytes, pump.over) == (6, False)


def test_a_reader_that_does_not_read_keeps_the_writer_waiting(pipes: tuple[int, int, int, int]) -> None:
    source, says, hears, target = pipes
    os.set_blocking(says, False)
    sent = 0
    with contextlib.closing(Pump(source, 1 << 30, target)) as pump:
        while True:
            drive(pump)
            try:
                sent += os.write(says, b"x" * 4096)
            except BlockingIOError:
                break
        # Two pipes, and what the pump itself holds.
        assert sent <= 3 * READ_BYTES
        os.close(says)
        heard = 0
        while data := os.read(hears, 1 << 20):
            heard += len(data)
            drive(pump)
        assert heard == sent


def test_the_writers_end_is_the_readers_end_of_file(pipes: tuple[int, int, int, int]) -> None:
    source, says, hears, target = pipes
    with contextlib.closing(Pump(source, 100, target)) as pump:
        os.write(says, b"last")
        os.close(says)
        drive(pump)
        assert (os.read(hears, 100), os.read(hears, 100)) == (b"last", b"")
        assert not pump.waits_for()


def test_the_writers_end_can_be_withheld(pipes: tuple[int, int, int, int]) -> None:
    source, says, hears, target = pipes
    os.set_blocking(hears, False)
    with contextlib.closing(Pump(source, 100, target, withholds_end=True)) as pump:
        os.write(says, b"last")
        drive(pump)
        assert not pump.withheld
        os.close(says)
        drive(pump)
        assert (pump.withheld, os.read(hears, 100)) == (True, b"last")
        with pytest.raises(BlockingIOError):
            os.read(hears, 100)
    assert (pump.withheld, os.read(hears, 100)) == (False, b"")


def test_a_reader_that_goes_ends_a_pump_that_withholds(pipes: tuple[int, int, int, int]) -> None:
    source, says, hears, target = pipes
    with contextlib.closing(Pump(source, 100, target, withholds_end=True)) as pump:
        os.close(says)
        drive(pump)
        os.close(hears)
        drive(pump)
        assert (pump.withheld, pump.waits_for()) == (False, {})


@pytest.mark.parametrize("held", [b"", b"unheard"])
def test_the_readers_end_is_the_writers_broken_pipe(pipes: tuple[int, int, int, int], held: bytes) -> None:
    source, says, hears, target = pipes
    with contextlib.closing(Pump(source, 100, target)) as pump:
        os.close(hears)
        os.write(says, held)
        drive(pump)
        assert not pump.waits_for()
        with pytest.raises(BrokenPipeError):
            os.write(says, b"x")


@pytest.mark.parametrize("forgets", [True, False])
def test_at_the_bound_both_ends_are_cut_off(pipes: tuple[int, int, int, int], forgets: bool) -> None:
    source, says, hears, target = pipes
    with contextlib.closing(Pump(source, 5, None if forgets else target)) as pump:
        os.write(says, b"12345")
        drive(pump)
        assert (pump.over, bool(pump.waits_for())) == (False, True)
        os.write(says, b"678")
        drive(pump)
        assert (pump.over, pump.read_bytes, bool(pump.waits_for())) == (True, 6, False)
        with pytest.raises(BrokenPipeError):
            os.write(says, b"9")
    if forgets:
        os.close(target)
    assert os.read(hears, 100) == (b"" if forgets else b"12345")
