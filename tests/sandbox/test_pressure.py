"""Whether the host was short, and who may run on it: side by side, or one alone and not starved."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sandbox.pressure import CoreTime, Turn, core_time, taken_by_others
from tests.sandbox.cells import wait_until

START = CoreTime(busy_s=100.0, at_s=1000.0)


def later(*, after_s: float, busy_s: float = 0.0) -> CoreTime:
    return CoreTime(START.busy_s + busy_s, START.at_s + after_s)


@pytest.mark.parametrize(
    ("after", "own_s", "cpu_s", "wall_s", "idle", "taken"),
    [
        pytest.param(later(after_s=2, busy_s=2.0), 1.0, 1.0, 2.0, False, True, id="waited while others ran"),
        pytest.param(later(after_s=2, busy_s=2.0), 1.95, 1.95, 2.0, False, False, id="did not wait"),
        pytest.param(later(after_s=2, busy_s=1.0), 1.0, 1.0, 2.0, False, False, id="waited for itself"),
        pytest.param(later(after_s=2, busy_s=1.39), 1.0, 1.0, 2.0, False, False, id="a fifth is not yet taken"),
        pytest.param(later(after_s=2, busy_s=1.41), 1.0, 1.0, 2.0, False, True, id="more than a fifth is"),
        pytest.param(later(after_s=2, busy_s=1.9), 1.6, 1.0, 1.7, False, False, id="an earlier test is no other"),
        pytest.param(later(after_s=2.6, busy_s=2.6), 2.0, 2.0, 2.6, False, False, id="waited within the margin"),
        pytest.param(later(after_s=2.7, busy_s=2.7), 2.0, 2.0, 2.7, False, True, id="waited beyond the margin"),
        pytest.param(later(after_s=2, busy_s=1.0), 0.0, 0.0, 2.0, True, True, id="idle on a busy core"),
        pytest.param(later(after_s=2, busy_s=0.1), 0.0, 0.0, 2.0, True, False, id="idle on a quiet core"),
        pytest.param(later(after_s=0, busy_s=1.0), 0.0, 0.0, 2.0, False, True, id="no time between the readings"),
    ],
)
def test_whether_others_took_the_core(
    after: CoreTime, own_s: float, cpu_s: float, wall_s: float, idle: bool, taken: bool
) -> None:
    assert taken_by_others(START, after, own_s=own_s, cpu_s=cpu_s, wall_s=wall_s, idle=idle) is taken


def test_readings_see_work_on_the_cores_of_this_process() -> None:
    first = core_time()
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    second = core_time()
    assert second.at_s - first.at_s >= 0.3
    assert 0.2 < second.busy_s - first.busy_s <= len(os.sched_getaffinity(0)) * (second.at_s - first.at_s) + 0.1


# ---------------------------------------------------------------------------------------------------------------
# Turns

#: Another judge of this host: takes turns of one kind until it is killed, writing a line into its log at both ends.
TURNS = """
import os, sys, time
from pathlib import Path
from sandbox.pressure import Turn
turn = Turn(Path(sys.argv[1]))
log = os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while True:
    with getattr(turn, sys.argv[2])():
        os.write(log, b"+")
        time.sleep(0.02)
        os.write(log, b"-")
    if sys.argv[2] == "alone":
        time.sleep(0.02)  # Being alone is rare; two that want nothing else would only get in each other's way.
"""


def judges(locks: Path, log: Path, *kinds: str) -> list[subprocess.Popen[bytes]]:
    return [subprocess.Popen([sys.executable, "-c", TURNS, str(locks), kind, str(log)]) for kind in kinds]


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        process.wait()


def written(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def test_shared_turns_run_side_by_side(tmp_path: Path) -> None:
    one, other = Turn(tmp_path), Turn(tmp_path)
    with one.shared(), other.shared():
        pass
    one.close()
    other.close()


def test_the_one_alone_excludes_all_others(tmp_path: Path) -> None:
    log = tmp_path / "log"
    others = judges(tmp_path, log, "shared", "shared", "alone")
    turn = Turn(tmp_path)
    try:
        wait_until(lambda: written(log) > 20, "the others at work")
        for _ in range(5):
            with turn.alone():
                before = log.read_bytes()
                time.sleep(0.1)  # Long enough for several turns of the others, had they any.
                assert log.read_bytes() == before
                assert before.count(b"+") == before.count(b"-")
            size = written(log)
            wait_until(lambda size=size: written(log) > size, "the others going on")  # type: ignore[misc]
    finally:
        end(others)
        turn.close()


def test_the_one_alone_is_not_starved(tmp_path: Path) -> None:
    """Four judges share without a pause: without the gate, hardly a moment would find the floor free."""
    log = tmp_path / "log"
    others = judges(tmp_path, log, *["shared"] * 4)
    turn = Turn(tmp_path)
    waited = []
    try:
        wait_until(lambda: written(log) > 40, "the others at work")
        for _ in range(10):
            before = written(log)
            started = time.monotonic()
            with turn.alone():
                waited.append(time.monotonic() - started)
                # Whoever held the floor may finish; nobody gets it anew.
                assert written(log) - before <= 40
        assert max(waited) < 5
    finally:
        end(others)
        turn.close()


def test_shared_turns_wait_for_the_one_alone_and_then_go_on(tmp_path: Path) -> None:
    alone, shared = Turn(tmp_path), Turn(tmp_path)
    entered = threading.Event()

    def enter() -> None:
        with shared.shared():
            entered.set()

    thread = threading.Thread(target=enter)
    with alone.alone():
        thread.start()
        assert not entered.wait(0.2)
    assert entered.wait(20)
    thread.join()
    alone.close()
    shared.close()


@pytest.mark.parametrize("kind", ["shared", "alone"])
def test_a_turn_ends_with_whatever_ends_it(tmp_path: Path, kind: str) -> None:
    """An exception within it, or the death of the process that holds it."""
    turn = Turn(tmp_path)
    with pytest.raises(KeyError), getattr(turn, kind)():
        raise KeyError
    dead = judges(tmp_path, tmp_path / "log", kind)
    wait_until(lambda: written(tmp_path / "log") > 0, "a turn of the other's")
    end(dead)
    with turn.alone():
        pass
    turn.close()
