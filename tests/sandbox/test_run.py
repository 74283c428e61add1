"""Runs with more than a stdin: further descriptors, links, directories, pipes; and several runs watched at once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator, Sequence

import pytest

from sandbox.cell import Cell
from sandbox.cgroups import Cgroups
from sandbox.config import SandboxConfig
from sandbox.errors import GraderFault
from sandbox.problem import Limits
from sandbox.pumps import Pump
from sandbox.run import Action, RunRecord, RunRequest
from sandbox.stdin import Stdin
from sandbox.watching import wait_for
from tests.sandbox.cells import MB, open_cell, open_fds, while_running
from tests.slowness import SLOWNESS

pytestmark = pytest.mark.jail

LIMITS = Limits(cpu_s=5 * SLOWNESS, wall_s=10 * SLOWNESS)


@pytest.fixture
def cells(sandbox_config: SandboxConfig, groups: Cgroups) -> Iterator[tuple[Cell, Cell]]:
    pair = (open_cell(sandbox_config, groups), open_cell(sandbox_config, groups))
    yield pair
    for cell in pair:
        cell.close()


@pytest.fixture
def nothing() -> Iterator[int]:
    fd = Stdin(b"").open()
    yield fd
    os.close(fd)


def python(code: str) -> tuple[str, ...]:
    return ("/usr/bin/python3", "-S", "-c", code)


def request(code: str, stdin_fd: int, **fields: object) -> RunRequest:
    return RunRequest(Action.EXEC, stdin_fd, LIMITS, python(code), **fields)  # type: ignore[arg-type]


def output(record: RunRecord) -> bytes:
    assert record.evidence.exit_code == 0, record.stderr.tail(1000)
    return record.stdout.tail(1000)


def test_extra_descriptors_follow_in_order_and_nothing_else_does(cells: tuple[Cell, Cell], nothing: int) -> None:
    one, other = Stdin(b"one").open(), Stdin(b"other").open()
    code = (
        "import os\n"
        "def is_open(fd):\n"
        "    try: os.fstat(fd); return True\n"
        "    except OSError: return False\n"
        "print(os.read(4, 9), os.read(5, 9), list(filter(is_open, range(100))))"
    )
    record = cells[0].run(request(code, nothing, extra_fds=(one, other)))
    assert output(record) == b"b'one' b'other' [0, 1, 2, 4, 5]\n"
    record.close()
    os.close(one)
    os.close(other)


@pytest.mark.parametrize("count", [1, 8])
def test_links_lead_to_extra_descriptors(cells: tuple[Cell, Cell], nothing: int, count: int) -> None:
    fds = tuple(Stdin(f"content {number}".encode()).open() for number in range(count))
    links = {f"file{number}.txt": number for number in range(count)}
    code = f"print(*(open(f'file{{n}}.txt').read() + open(f'file{{n}}.txt').read() for n in range({count})))"
    record = cells[0].run(request(code, nothing, extra_fds=fds, links=links))
    assert output(record).decode().split("content ")[1:] == [
        f"{number}{end}" for number in range(count) for end in ("", " " if number < count - 1 else "\n")
    ]
    record.close()
    for fd in fds:
        os.close(fd)


def test_what_a_link_leads_to_cannot_be_changed(cells: tuple[Cell, Cell], nothing: int) -> None:
    data = Stdin(b"safe")
    fd = data.open()
    code = (
        "import os\n"
        "for attempt in (lambda: open('in', 'w').write('x'), lambda: os.truncate('in', 0),\n"
        "                lambda: os.write(os.open('/proc/self/fd/4', os.O_RDWR), b'x')):\n"
        "    try: attempt(); print('changed')\n"
        "    except OSError: pass\n"
        "print(open('in').read())"
    )
    record = cells[0].run(request(code, nothing, extra_fds=(fd,), links={"in": 0}))
    assert output(record) == b"safe\n"
    record.close()
    os.close(fd)
    again = data.open()
    assert os.read(again, 10) == b"safe"
    os.close(again)


def test_directories_are_the_programs_own_and_gone_with_the_run(cells: tuple[Cell, Cell], nothing: int) -> None:
    code = "import os; open('feedback/score.txt', 'w').write('1'); print(os.listdir('.'), os.stat('feedback').st_uid)"
    for _ in range(2):
        record = cells[0].run(request(code, nothing, directories=("feedback",)))
        assert output(record) == b"['feedback'] 1000\n"
        record.close()


def test_a_forked_python_program_finds_the_same(cells: tuple[Cell, Cell], nothing: int) -> None:
    source = b"import os\nprint(open('in').read(), os.listdir('.'), os.read(4, 2))"
    with_source, extra = Stdin(source).open(), Stdin(b"xy").open()
    cells[0].load({"main.py": with_source}, executable=False)
    cells[0].run(RunRequest(Action.CHECK, nothing, LIMITS)).close()
    record = cells[0].run(
        RunRequest(Action.PYTHON, nothing, LIMITS, extra_fds=(extra,), links={"in": 0}, directories=("d",))
    )
    assert output(record) == b"xy ['in', 'd'] b'xy'\n"
    record.close()
    os.close(with_source)
    os.close(extra)


def test_two_programs_talk_through_pipes(cells: tuple[Cell, Cell]) -> None:
    asks = (
        "import sys\n"
        "for n in range(500):\n"
        "    print(n, flush=True)\n"
        "    assert int(input()) == n + 1\n"
        "print('done', file=sys.stderr)"
    )
    answers = "import sys\nfor line in sys.stdin: print(int(line) + 1, flush=True)"
    to_answers, from_asks = os.pipe()
    to_asks, from_answers = os.pipe()
    runs = [
        cells[0].start(request(asks, to_asks, stdout_fd=from_asks)),
        cells[1].start(request(answers, to_answers, stdout_fd=from_answers)),
    ]
    for fd in (to_answers, from_asks, to_asks, from_answers):
        os.close(fd)
    records = wait_for(runs)
    assert [record.evidence.exit_code for record in records] == [0, 0]
    assert records[0].stderr.tail(100) == b"done\n"
    for record in records:
        record.close()


def test_every_plain_file_of_a_folder_can_be_taken(cells: tuple[Cell, Cell], nothing: int) -> None:
    code = (
        "import os\n"
        "for name in ('b', 'a'): open(f'kept/{name}', 'w').write(name)\n"
        "os.mkdir('kept/folder'); os.symlink('/etc/passwd', 'kept/link')\n"
        "open('kept/folder/deep', 'w').write('x'); open('beside', 'w').write('x')"
    )
    record = cells[0].run(request(code, nothing, directories=("kept",), collect=("kept/", "none/", "beside/")))
    assert {name: taken.head(9) for name, taken in record.collected.items()} == {"kept/a": b"a", "kept/b": b"b"}
    record.close()


def test_no_more_files_of_a_folder_are_taken_than_fit_into_an_answer(cells: tuple[Cell, Cell], nothing: int) -> None:
    code = "for number in range(1000): open('kept/' + 'x' * 200 + f'{number:04}', 'w')"
    record = cells[0].run(request(code, nothing, directories=("kept",), collect=("kept/",)))
    assert record.evidence.exit_code == 0
    assert [name[-4:] for name in record.collected] == [f"{number:04}" for number in range(48)]
    record.close()


def test_names_of_a_folder_that_are_long_when_written_out_break_no_answer(
    cells: tuple[Cell, Cell], nothing: int
) -> None:
    code = "for number in range(60): open(b'kept/' + b'\\xff' * 240 + b'%04d' % number, 'w')"
    record = cells[0].run(request(code, nothing, directories=("kept",), collect=("kept/",)))
    assert record.evidence.exit_code == 0
    assert 20 < len(record.collected) < 48
    record.close()


@pytest.mark.parametrize(("words", "status"), [(1, 0), (70, 0), (40_000, -signal.SIGPIPE)])
def test_what_is_said_to_a_run_that_has_ended_is_forgotten_up_to_a_bound(
    cells: tuple[Cell, Cell], nothing: int, words: int, status: int
) -> None:
    """70,000 bytes fit into no pipe; 2 MB are more than the bound."""
    fd, to_first = os.pipe()
    says = f"import os, time; time.sleep(0.2); [os.write(1, b'x' * 1000) for _ in range({words})]"
    first = cells[0].start(request("pass", fd))
    second = cells[1].start(
        request(f"import signal; signal.signal(13, signal.SIG_DFL); {says}", nothing, stdout_fd=to_first)
    )
    os.close(to_first)
    with contextlib.closing(Pump(fd, MB)) as pump:
        records = wait_for([first, second], remains={first: pump})
    assert records[1].evidence.signal == (-status or None)
    for record in records:
        record.close()


@pytest.mark.parametrize(("said", "over"), [(0, False), (MB, False), (MB + 1, True), (100 * MB, True)])
def test_what_passes_through_a_pump_is_held_to_its_bound(
    cells: tuple[Cell, Cell], nothing: int, said: int, over: bool
) -> None:
    """All of it arrives, or the bound; beyond that the writer is stopped, and it is its output that was too much."""
    heard, says = os.pipe()
    reads, on = os.pipe()
    with contextlib.closing(Pump(heard, MB, on)) as pump:
        writes = f"import sys\nfor _ in range({said} // 1000): sys.stdout.write('x' * 1000)\n"
        writer = cells[0].start(request(f"{writes}sys.stdout.write('x' * ({said} % 1000))", nothing, stdout_fd=says))
        reader = cells[1].start(request("import sys; print(len(sys.stdin.read()))", reads))
        writer.pump = pump
        os.close(says)
        os.close(reads)
        records = wait_for([writer, reader])
    assert records[0].evidence.over_output is over
    assert over or records[0].evidence.exit_code == 0
    assert int(output(records[1])) <= MB
    assert over or int(output(records[1])) == said
    for record in records:
        record.close()


def test_what_was_said_too_much_counts_once_it_is_read(cells: tuple[Cell, Cell], nothing: int) -> None:
    """The writer has long ended when its reader, and with that the pump, comes to the end of what it wrote."""
    heard, says = os.pipe()
    reads, on = os.pipe()
    with contextlib.closing(Pump(heard, MB, on)) as pump:
        fcntl.fcntl(heard, fcntl.F_SETPIPE_SZ, MB)
        writer = cells[0].start(request(f"print('x' * {MB + 1000})", nothing, stdout_fd=says))
        late = "import sys, time; time.sleep(0.5); print(len(sys.stdin.read()))"
        reader = cells[1].start(request(late, reads))
        writer.pump = pump
        os.close(says)
        os.close(reads)
        records = wait_for([writer, reader])
    assert (records[0].evidence.over_output, records[0].evidence.exit_code) == (True, 0)
    for record in records:
        record.close()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_who_ended_first_is_known(cells: tuple[Cell, Cell], nothing: int, order: Sequence[int]) -> None:
    codes = ("pass", "import time; time.sleep(0.3)")
    runs = [cells[place].start(request(codes[kind], nothing)) for place, kind in enumerate(order)]
    for record in wait_for(runs):
        record.close()
    first = min(runs, key=lambda run: run.ended_at)
    assert order[runs.index(first)] == 0


def test_each_run_is_held_to_its_own_limits(cells: tuple[Cell, Cell], nothing: int) -> None:
    short = RunRequest(Action.EXEC, nothing, Limits(cpu_s=0.2), python("while True: pass"))
    records = wait_for([cells[0].start(short), cells[1].start(request("print(1)", nothing))])
    assert records[0].evidence.over_cpu
    assert output(records[1]) == b"1\n"
    for record in records:
        record.close()


def test_a_fault_in_one_run_ends_the_other(cells: tuple[Cell, Cell], nothing: int) -> None:
    before = open_fds()
    sleep = "import time; time.sleep(60)"
    runs = [cells[0].start(request(sleep, nothing)), cells[1].start(request(sleep, nothing))]
    started = time.monotonic()
    with while_running(lambda pid: os.kill(pid, 9)), pytest.raises(GraderFault):
        wait_for(runs)
    assert time.monotonic() - started < 5 * SLOWNESS
    assert [cell.usable for cell in cells] == [False, False]
    assert open_fds() == before


def test_a_program_starts_without_the_wardens_priority(cells: tuple[Cell, Cell], nothing: int) -> None:
    code = "import os; print(os.getpriority(os.PRIO_PROCESS, 0), os.getpriority(os.PRIO_PROCESS, 1))"
    record = cells[0].run(request(code, nothing))
    assert output(record) == b"0 -5\n"
    record.close()
