"""One program by itself, in a real cell: what it is given, what it says and leaves, and how it ended."""

from __future__ import annotations

import os
import signal

import pytest

from sandbox.errors import Cancelled
from sandbox.judge import Judge
from sandbox.problem import Limits, TestResult
from sandbox.single import FILES_BYTES, TAIL_BYTES, Remains, SingleRun
from sandbox.verdicts import Verdict
from service.contract.files import MAX_FETCHED
from tests.sandbox.cells import MB, ROOMY, processes_in, wait_until, while_running

pytestmark = pytest.mark.jail


def run(judge: Judge, source: str | bytes, language: str = "python", **fields: object) -> tuple[TestResult, Remains]:
    code = source.encode() if isinstance(source, str) else source
    asked = SingleRun(language, code, **{"limits": ROOMY, **fields})  # type: ignore[arg-type]
    result = judge.run(asked)
    [test] = result.judgement.tests
    assert result.remains is not None, test
    return test, result.remains


def test_it_reads_its_stdin_and_its_output_comes_back(judge: Judge) -> None:
    source = "import sys\nprint(sys.stdin.read()[::-1])\nprint('aside', file=sys.stderr)\n"
    test, remains = run(judge, source, stdin=b"abc")
    assert (test.verdict, test.exit_code, test.signal) == (Verdict.ACCEPTED, 0, None)
    assert remains == Remains(b"cba\n", b"aside\n", False, {}, 0)
    assert 0 < (test.cpu_s or 0) <= (test.wall_s or 0) + 0.05
    assert 0 < (test.memory_bytes or 0) < 64 * MB


@pytest.mark.parametrize("language", ["python", "python-exec"])
def test_files_come_in_and_what_is_new_or_changed_goes_out(judge: Judge, language: str) -> None:
    source = """
import os
assert sorted(os.listdir()) == ["data", "gone.txt", "same.txt", "text.txt"], os.listdir()
assert open("data/deep/in.bin", "rb").read() == bytes(range(256))
os.remove("gone.txt")
with open("text.txt", "a") as file:
    file.write(" and more")
os.makedirs("out/plots")
open("out/plots/a.png", "wb").write(b"\\x89PNG\\xff")
open("out/empty", "w").close()
os.mkdir("nothing in it")
"""
    given = {"data/deep/in.bin": bytes(range(256)), "gone.txt": b"", "same.txt": b"same", "text.txt": b"text"}
    test, remains = run(judge, source, language, files=given)
    assert test.verdict is Verdict.ACCEPTED, remains.stderr
    assert remains.files == {"out/empty": b"", "out/plots/a.png": b"\x89PNG\xff", "text.txt": b"text and more"}
    assert remains.left_out == 0


@pytest.mark.parametrize("language", ["python", "python-exec"])
def test_modules_among_the_files_can_be_imported(judge: Judge, language: str) -> None:
    files = {"helper.py": b"x = 1\n", "package/__init__.py": b"", "package/inner.py": b"y = 2\n"}
    source = "import helper\nfrom package.inner import y\nprint(helper.x + y)\n"
    test, remains = run(judge, source, language, files=files)
    assert (test.verdict, remains.stdout, remains.files) == (Verdict.ACCEPTED, b"3\n", {})


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_can_be_kept_in_a_file(judge: Judge, mode: str) -> None:
    source = """
import sqlite3, sys
with sqlite3.connect("kept.db", timeout=0) as base:
    base.execute(f"pragma journal_mode = {sys.stdin.read()}")
    base.execute("create table numbers (x)")
    base.executemany("insert into numbers values (?)", [(1,), (2,)])
base.close()
print(*sqlite3.connect("kept.db").execute("select sum(x) from numbers").fetchone())
"""
    test, remains = run(judge, source, stdin=mode.encode())
    assert (test.verdict, remains.stdout, remains.stderr) == (Verdict.ACCEPTED, b"3\n", b"")
    assert "kept.db" in remains.files


def test_a_compiled_program_has_its_files_too(judge: Judge) -> None:
    source = """
#include <fstream>
int main() { int a, b; std::ifstream("in.txt") >> a >> b; std::ofstream("out.txt") << a + b; }
"""
    test, remains = run(judge, source, "cpp", files={"in.txt": b"20 22"})
    assert (test.verdict, remains.files) == (Verdict.ACCEPTED, {"out.txt": b"42"})


def test_more_files_than_fit_into_a_message_come_in(judge: Judge) -> None:
    files = {f"{number:0250d}/f{'x' * 3}": str(number).encode() for number in range(128)}
    source = "import os\nprint(sum(int(open(f'{name}/fxxx').read()) for name in os.listdir()))\n"
    _, remains = run(judge, source, files=files)
    assert remains.stdout == f"{sum(range(128))}\n".encode()


@pytest.mark.parametrize(
    ("language", "source"),
    [("python", "print(1\n"), ("cpp", "int main() { return nothing; }\n")],
)
def test_what_does_not_compile_does_not_run(judge: Judge, language: str, source: str) -> None:
    result = judge.run(SingleRun(language, source.encode(), limits=ROOMY))
    assert result.judgement.tests == ()
    assert result.remains is None
    assert result.judgement.compile is not None
    assert not result.judgement.compile.ok
    assert result.judgement.compile.message


@pytest.mark.parametrize(
    ("source", "limits", "verdict", "exit_code", "died_of"),
    [
        ("raise SystemExit(7)", {}, Verdict.RUNTIME_ERROR, 7, None),
        ("import os; os.kill(os.getpid(), 11)", {}, Verdict.RUNTIME_ERROR, None, signal.SIGSEGV),
        ("while True: pass", {"cpu_s": 0.2}, Verdict.TIME_LIMIT, None, signal.SIGKILL),
        ("import time; time.sleep(60)", {"wall_s": 0.3}, Verdict.IDLE, None, signal.SIGKILL),
        ("x = [bytes(2**20)] and bytearray(2**29)", {}, Verdict.MEMORY_LIMIT, None, signal.SIGKILL),
        ("while True: print('x' * 4096)", {}, Verdict.OUTPUT_LIMIT, None, None),
    ],
)
def test_how_it_ended_is_told(
    judge: Judge, source: str, limits: dict[str, float], verdict: Verdict, exit_code: int | None, died_of: int | None
) -> None:
    given = {"cpu_s": 5.0, "wall_s": 20.0, "memory_bytes": 256 * MB, "output_bytes": MB} | limits
    test, _ = run(judge, f"print('begun', flush=True)\n{source}\n", limits=Limits(**given))  # type: ignore[arg-type]
    assert test.verdict is verdict
    if verdict is not Verdict.OUTPUT_LIMIT:
        assert (test.exit_code, test.signal) == (exit_code, died_of)
    assert test.message


def test_what_it_said_before_it_failed_comes_back(judge: Judge) -> None:
    test, remains = run(judge, "open('kept.txt', 'w').write('x')\nprint('begun')\n1 / 0\n")
    assert test.verdict is Verdict.RUNTIME_ERROR
    assert remains.stdout == b"begun\n"
    assert b"ZeroDivisionError" in remains.stderr
    assert remains.files == {"kept.txt": b"x"}


def test_of_a_long_output_the_end_comes_back(judge: Judge) -> None:
    limits = Limits(cpu_s=10, wall_s=40, output_bytes=4 * MB)
    _, exact = run(judge, f"print('x' * {TAIL_BYTES}, end='')", limits=limits)
    assert (len(exact.stdout), exact.truncated) == (TAIL_BYTES, False)
    _, longer = run(judge, f"print('x' * {TAIL_BYTES} + 'end', end='')", limits=limits)
    assert (len(longer.stdout), longer.stdout[-5:], longer.truncated) == (TAIL_BYTES, b"xxend", True)


def test_files_beyond_the_bounds_are_counted_and_left_out(judge: Judge) -> None:
    limits = Limits(cpu_s=10, wall_s=40, memory_bytes=256 * MB, output_bytes=16 * MB)
    source = f"""
for name, size in (("a", {FILES_BYTES - 2}), ("b", 3), ("c", 2)):
    open(name, "wb").write(b"x" * size)
"""
    _, remains = run(judge, source, limits=limits)
    assert {name: len(data) for name, data in remains.files.items()} == {"a": FILES_BYTES - 2, "c": 2}
    assert remains.left_out == 1


def test_a_large_file_that_stayed_as_it_was_takes_no_room(judge: Judge) -> None:
    limits = Limits(cpu_s=10, wall_s=40, memory_bytes=256 * MB, output_bytes=MB)
    given = {"a": bytes(FILES_BYTES + 5), "b": b"x"}
    test, remains = run(judge, "open('b', 'w').write('y')", files=given, limits=limits)
    assert (test.verdict, remains.files, remains.left_out) == (Verdict.ACCEPTED, {"b": b"y"}, 0)


@pytest.mark.parametrize("language", ["python", "python-exec"])
def test_files_that_are_asked_for_come_out_be_they_changed_or_not(judge: Judge, language: str) -> None:
    source = (
        "import os\nos.mkdir('d')\nfor name in ('d/\u00fc', 'other'): open(name, 'w').write('new')\nos.remove('gone')\n"
    )
    given = {"same": b"same", "gone": b"gone"}
    test, remains = run(judge, source, language, files=given, fetch=("same", "gone", "d/\u00fc", "same", "d"))
    assert test.verdict is Verdict.ACCEPTED, remains.stderr
    assert (remains.files, remains.left_out) == ({"same": b"same", "d/\u00fc": b"new"}, 0)
    assert run(judge, source, language, files=given, fetch=())[1].files == {}


def test_as_many_files_as_can_be_asked_for_come_out_whatever_their_paths(judge: Judge) -> None:
    paths = tuple(f"\x01{number:02d}" + "\x01" * 252 for number in range(MAX_FETCHED))
    source = "import sys\nfor name in sys.stdin.read().split('\\0'): open(name, 'w').write('x')\n"
    test, remains = run(judge, source, stdin="\0".join(paths).encode(), fetch=paths)
    assert test.verdict is Verdict.ACCEPTED, remains.stderr
    assert remains.files == dict.fromkeys(paths, b"x")


def test_a_file_that_is_asked_for_and_too_large_is_counted(judge: Judge) -> None:
    limits = Limits(cpu_s=10, wall_s=40, memory_bytes=256 * MB, output_bytes=16 * MB)
    source = f"for name in 'ab': open(name, 'wb').write(bytes({FILES_BYTES} - 1))\n"
    _, remains = run(judge, source, limits=limits, fetch=("a", "b"))
    assert (list(remains.files), remains.left_out) == (["a"], 1)


def test_a_compiler_has_the_time_it_is_given(judge: Judge) -> None:
    source = f"#include <bits/stdc++.h>\nint main() {{ std::map<int, int> x; return x[0]; }}  // {os.urandom(8).hex()}"
    short = judge.run(SingleRun("cpp", source.encode(), limits=ROOMY, compile_cpu_s=0.02))
    assert short.judgement.compile is not None
    assert (short.judgement.compile.ok, short.judgement.compile.timed_out) == (False, True)
    assert judge.run(SingleRun("cpp", source.encode(), limits=ROOMY)).judgement.tests[0].verdict is Verdict.ACCEPTED
    # What is there takes no time.
    again = judge.run(SingleRun("cpp", source.encode(), limits=ROOMY, compile_cpu_s=0.02))
    assert again.judgement.tests[0].verdict is Verdict.ACCEPTED


def test_one_run_finds_nothing_of_another(judge: Judge) -> None:
    run(judge, "open('left', 'w').write('x')\nopen('/tmp/left', 'w').write('x')\n", files={"given": b"1"})
    _, remains = run(judge, "import os\nprint(os.listdir(), os.listdir('/tmp'), sorted(os.listdir('/prog')))\n")
    assert remains == Remains(b"[] [] ['main.py']\n", b"", False, {}, 0)


def test_a_lost_cell_is_the_graders_fault_and_tried_again(judge: Judge) -> None:
    source = "import time\nopen('left', 'w').write(open('given').read())\ntime.sleep(0.3)\n"
    with while_running(lambda warden: os.kill(warden, signal.SIGKILL)) as killed:
        test, remains = run(judge, source, files={"given": b"again"})
    assert len(killed) == 1
    assert (test.verdict, remains.files) == (Verdict.ACCEPTED, {"left": b"again"})


def test_a_cell_lost_twice_is_an_internal_error(judge: Judge) -> None:
    with while_running(lambda warden: os.kill(warden, signal.SIGKILL), times=2) as killed:
        result = judge.run(SingleRun("python", b"import time\ntime.sleep(5)\n", limits=ROOMY))
    assert len(killed) == 2
    assert [test.verdict for test in result.judgement.tests] == [Verdict.INTERNAL_ERROR]
    assert result.remains is None


def test_nobody_waiting_ends_it(judge: Judge) -> None:
    reader, writer = os.pipe()
    try:
        with while_running(lambda _: os.write(writer, b"x")), pytest.raises(Cancelled):
            judge.run(SingleRun("python", b"import time\ntime.sleep(60)\n", limits=ROOMY), cancel_fd=reader)
    finally:
        os.close(reader)
        os.close(writer)
    wait_until(lambda: not processes_in("*-program"), "the program is gone")
