"""Programs that attack the way by which files of a single run come in and go out: nothing but their own plain files
does, whatever they leave in place of it, and the judge stays as it was.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from sandbox.problem import Limits, TestResult
from sandbox.single import FILES_BYTES, Remains, SingleRun
from sandbox.verdicts import Verdict
from tests.hostile.case import MB, PYTHONS, ROOMY
from tests.slowness import SLOWNESS

pytestmark = pytest.mark.jail

SLOT = 3

#: What attacks may add to the judge's memory: what it hands back, several times, and no more.
GROWTH_BYTES = 10 * FILES_BYTES


@pytest.fixture(scope="module")
def judge(config: SandboxConfig) -> Iterator[Judge]:
    judge = Judge(config, slot=SLOT, core=None)
    yield judge
    judge.close()


@pytest.fixture(autouse=True)
def nothing_stays(judge: Judge) -> Iterator[None]:
    judge.warm()
    before = descriptors()
    yield
    judge.warm()
    until = time.monotonic() + 10 * SLOWNESS
    while descriptors() > before and time.monotonic() < until:
        judge.warm()
        time.sleep(0.02)
    assert descriptors() <= before


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def run(judge: Judge, source: str, language: str = "python", **fields: object) -> tuple[TestResult, Remains]:
    result = judge.run(SingleRun(language, source.encode(), **{"limits": ROOMY, **fields}))  # type: ignore[arg-type]
    [test] = result.judgement.tests
    assert result.remains is not None, test
    return test, result.remains


LINKS = """
import os, socket
for name, target in {
    "source": "/prog/main.py", "warden": "/rkgrade/warden.py", "system": "/etc/ld.so.cache", "stdin": "/dev/stdin",
    "descriptor": "/proc/self/fd/3", "of the warden": "/proc/1/fd/3", "environment": "/proc/1/environ",
    "memory": "/proc/self/mem", "root": "/", "parent": "..", "itself": "itself", "own": "plain", "device": "/dev/zero",
}.items():
    os.symlink(target, name)
os.mkdir("folder")
os.symlink("/prog", "folder/prog")
os.symlink("..", "folder/up")
os.symlink("folder", "another")
try:
    os.mkfifo("fifo")
except OSError:
    pass
socket.socket(socket.AF_UNIX).bind("socket")
open("plain", "w").write("its own")
os.link("plain", "folder/hard")
open("closed", "w").write("closed")
os.chmod("closed", 0)
os.mkdir("closed folder")
open("closed folder/inner", "w").write("inner")
os.chmod("closed folder", 0)
for outside in ("/prog/main.py", "/etc/ld.so.cache", "/proc/self/status"):
    try:
        os.link(outside, "hard " + outside.rpartition("/")[2])
        print("linked", outside)
    except OSError:
        pass
print("held")
"""


@pytest.mark.parametrize("language", PYTHONS)
def test_only_plain_files_of_its_own_go_out(judge: Judge, language: str) -> None:
    test, remains = run(judge, LINKS, language)
    assert test.verdict is Verdict.ACCEPTED, remains.stderr
    assert remains.stdout == b"held\n"
    assert remains.files == {"plain": b"its own", "folder/hard": b"its own"}
    # Thirteen links, three in and to the folder, a socket, what it closed to itself; perhaps a fifo.
    assert remains.left_out in (19, 20)


@pytest.mark.parametrize("language", PYTHONS)
def test_what_is_asked_for_by_name_is_such_a_file_or_nothing(judge: Judge, language: str) -> None:
    fetch = (
        "source", "warden", "system", "stdin", "descriptor", "of the warden", "environment", "memory", "root",
        "itself", "own", "device", "folder/prog/main.py", "folder/up/plain", "another/hard", "parent/rkgrade/warden.py",
        "fifo", "socket", "closed", "closed folder/inner", "folder", "missing", "plain", "folder/hard",
    )  # fmt: skip
    test, remains = run(judge, LINKS, language, fetch=fetch)
    assert test.verdict is Verdict.ACCEPTED, remains.stderr
    assert (remains.files, remains.left_out) == ({"plain": b"its own", "folder/hard": b"its own"}, 0)


def test_a_file_that_was_given_is_not_told_in_a_links_name(judge: Judge) -> None:
    source = "import os\nos.remove('given')\nos.symlink('/prog/main.py', 'given')\n"
    test, remains = run(judge, source, files={"given": b"given"}, fetch=("given",))
    assert (test.verdict, remains.files) == (Verdict.ACCEPTED, {})


NAMES = r"""
import os
for name in (b"new\nline", b"tab\t\"quote\\", "\u00fc\U0001f600".encode(), b"\xff\xfe", b"...", b"-rf", b"a" * 255,
             b"\x1b[31m", b" "):
    open(name, "w").write("x")
os.mkdir(b"\xff")
open(b"\xff/inner", "w").write("x")
"""


def test_names_come_as_they_are_or_not_at_all(judge: Judge) -> None:
    test, remains = run(judge, NAMES)
    assert test.verdict is Verdict.ACCEPTED, remains.stderr
    names = {"new\nline", 'tab\t"quote\\', "\u00fc\U0001f600", "...", "-rf", "a" * 255, "\x1b[31m", " "}
    assert remains.files == dict.fromkeys(names, b"x")
    assert remains.left_out == 2


def test_a_flood_of_files_fits_into_no_message_and_breaks_none(judge: Judge) -> None:
    source = """
import os
made = 0
try:
    while True:
        name = os.fsencode(f"{made:06d}") + b"\\xff" * 240
        os.close(os.open(name, os.O_CREAT))
        made += 1
except OSError as error:
    print(made, error.errno)
"""
    started = time.monotonic()
    test, remains = run(judge, source, limits=Limits(cpu_s=10, wall_s=60, memory_bytes=512 * MB))
    made, _ = map(int, remains.stdout.split())
    assert test.verdict is Verdict.ACCEPTED
    assert made > 10_000
    assert (remains.files, remains.left_out) == ({}, made)
    assert time.monotonic() - started < 20 * SLOWNESS


def test_many_short_names_are_cut_at_the_bound(judge: Judge) -> None:
    _, remains = run(judge, "for n in range(1000): open(f'{n:04d}', 'w').write(str(n))")
    assert remains.files == {f"{n:04d}": str(n).encode() for n in range(48)}
    assert remains.left_out == 1000 - 48


def test_no_depth_is_too_deep(judge: Judge) -> None:
    source = """
import os
for level in range(5000):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
open("bottom", "w").write("x")
os.chdir("/box")
os.makedirs("/".join("e" * 15))
open("/".join("e" * 15) + "/inner", "w").write("inner")
os.makedirs("/".join("f" * 16))
open("/".join("f" * 16) + "/inner", "w").write("inner")
"""
    test, remains = run(judge, source, limits=Limits(cpu_s=10, wall_s=60, memory_bytes=512 * MB))
    assert test.verdict is Verdict.ACCEPTED, remains.stderr
    assert remains.files == {"/".join("e" * 15) + "/inner": b"inner"}
    assert remains.left_out == 2


def test_sizes_that_are_claimed_cost_nothing(judge: Judge) -> None:
    source = """
import os
for number in range(60):
    os.close(os.open(f"{number:02d}", os.O_CREAT | os.O_RDWR))
    os.truncate(f"{number:02d}", 64 << 20)
"""
    before = resident_bytes()
    limits = Limits(cpu_s=10, wall_s=60, memory_bytes=128 * MB, output_bytes=64 * MB)
    test, remains = run(judge, source, limits=limits)
    assert (test.verdict, remains.files, remains.left_out) == (Verdict.ACCEPTED, {}, 60)
    assert (test.memory_bytes or 0) < 64 * MB
    assert resident_bytes() - before < GROWTH_BYTES


def test_files_are_memory_and_bounded_in_size(judge: Judge) -> None:
    limits = Limits(cpu_s=10, wall_s=60, memory_bytes=128 * MB, output_bytes=64 * MB)
    fill = "for n in range(4): open(f'{n}', 'wb').write(bytes(60 << 20))"
    assert run(judge, fill, limits=limits)[0].verdict is Verdict.MEMORY_LIMIT
    grow = "with open('one', 'wb', 0) as file:\n    while True: file.write(bytes(1 << 20))"
    assert run(judge, grow, limits=limits)[0].verdict in (Verdict.OUTPUT_LIMIT, Verdict.RUNTIME_ERROR)


def test_what_goes_on_writing_is_over_before_its_files_are_read(judge: Judge) -> None:
    source = """
import os, time
for number in range(8):
    if os.fork() == 0:
        os.setsid()
        while True:
            open(f"{number}", "w").write("late")
            os.replace(f"{number}", f"moved {number}")
            os.symlink("/prog/main.py", f"{number}")
            os.remove(f"{number}")
time.sleep(0.3)
open("done", "w").write("done")
"""
    test, remains = run(judge, source, limits=Limits(cpu_s=20, wall_s=60))
    assert test.verdict is Verdict.ACCEPTED
    assert remains.files["done"] == b"done"
    assert set(remains.files.values()) <= {b"done", b"late", b""}


def test_what_it_is_given_is_a_copy(judge: Judge) -> None:
    source = """
import mmap, os
with open("given", "r+b") as file:
    mmap.mmap(file.fileno(), 0)[:] = b"changed"
os.chmod("given", 0o777)
print(sorted(os.listdir("/proc/self/fd")))
"""
    given = {"given": b"as sent"}
    for _ in range(2):
        test, remains = run(judge, source, files=given)
        assert (test.verdict, remains.files) == (Verdict.ACCEPTED, {"given": b"changed"}), remains.stderr
        # The fourth is the folder itself.
        assert remains.stdout == b"['0', '1', '2', '3']\n"


def test_modules_beside_it_cannot_be_written(judge: Judge) -> None:
    source = """
import os
for path in ("/prog/helper.py", "/prog/main.py", "/prog/new.py", "/prog/package/inner.py", "/prog/package/new.py"):
    for act in (lambda: open(path, "w"), lambda: os.chmod(path, 0o777), lambda: os.remove(path)):
        try:
            act()
            print("escaped", path)
        except OSError:
            pass
import helper
print("held")
"""
    _, remains = run(judge, source, files={"helper.py": b"", "package/inner.py": b""})
    assert remains.stdout == b"held\n"


def test_a_hostile_module_among_the_files_is_the_programs(judge: Judge) -> None:
    files = {
        "warden.py": b"raise SystemExit(9)\n",
        "os.py": b"raise SystemExit(9)\n",
        "sitecustomize.py": b"raise SystemExit(9)\n",
        "json/__init__.py": b"dumps = 'shadowed'\n",
    }
    _, remains = run(judge, "import json\nprint(json.dumps)\n", files=files)
    assert remains.stdout == b"shadowed\n"
    test, _ = run(judge, "print('held')\n")
    assert test.verdict is Verdict.ACCEPTED


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
