"""Programs that talk with an interactor: verdicts, whose time is whose, and the wall between the two."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sandbox.config import SandboxConfig
from sandbox.errors import Cancelled
from sandbox.judge import Judge
from sandbox.problem import Dialogue, Problem, Submission
from sandbox.verdicts import Verdict
from tests.sandbox.cells import ROOMY, footprint, wait_until
from tests.sandbox.conversations import (
    CARELESS,
    KATTIS,
    LIMITS,
    LINEAR,
    NONSENSE,
    RIGHT,
    TESTLIB,
    c,
    graded,
    jury,
    problem,
)

pytestmark = pytest.mark.jail

A, W, R, C = Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.RUNTIME_ERROR, Verdict.CHECKER_ERROR
T, M, O, I = Verdict.TIME_LIMIT, Verdict.MEMORY_LIMIT, Verdict.OUTPUT_LIMIT, Verdict.IDLE  # noqa: E741


@pytest.fixture(scope="module")
def judge(sandbox_config: SandboxConfig) -> Iterator[Judge]:
    judge = Judge(replace(sandbox_config, checker_cpu_s=1.5), slot=0, core=None)
    yield judge
    judge.close()


RIGHT_CPP = """
#include <iostream>
int main() {
    for (long low = 1, high = 1000000;;) {
        long middle = (low + high) / 2;
        std::cout << middle << std::endl;
        char said;
        std::cin >> said;
        if (said == '=') return 0;
        said == '<' ? high = middle - 1 : low = middle + 1;
    }
}
"""
LINEAR_CPP = """
#include <iostream>
int main() {
    char said = 0;
    for (long guess = 1; said != '='; guess++) {
        std::cout << guess << std::endl;
        std::cin >> said;
    }
}
"""
BY_PATHS = RIGHT.replace("print(middle, flush=True)", "print(middle, file=out, flush=True)").replace(
    "input()", "given.readline().strip()"
)
BY_PATHS = "out, given = open('/dev/stdout', 'w'), open('/dev/stdin')\n" + BY_PATHS
FOUND = "print(617283, flush=True)\nassert input() == '='\n"


#: In one write, so that nobody has gone yet.
TOO_MANY = 'for (int n = 0; n < 100; n++) puts("1"); fflush(stdout);'

#: Language, source, verdict, and how it is told where the interactor does its part.
PROGRAMS = {
    "right": ("python", RIGHT, A, ""),
    "right, in C++": ("cpp", RIGHT_CPP, A, ""),
    "right, in a fresh interpreter": ("python-exec", RIGHT, A, ""),
    "right, by the names of its streams": ("python", BY_PATHS, A, ""),
    "guesses too often, then reads": (
        "python",
        LINEAR,
        W,
        "the interactor rejected, then the program exited with status 1",
    ),
    "guesses too often, then writes": (
        "cpp",
        LINEAR_CPP,
        W,
        "the interactor rejected, then the program died of SIGPIPE",
    ),
    "floods": ("c", c('for (;;) puts("1");'), W, "the interactor rejected, then the program died of SIGPIPE"),
    "goes on after it was rejected": (
        "c",
        c(f"{TOO_MANY} for (;;);"),
        W,
        "the interactor rejected, then",
    ),
    "sleeps after it was rejected": (
        "c",
        c(f"{TOO_MANY} sleep(9);"),
        W,
        "the interactor rejected, then",
    ),
    "says nothing": ("python", "pass", W, "the program ended"),
    "goes early": ("python", "print(1, flush=True)\nprint(2, flush=True)", W, "the program ended"),
    "goes early, badly": ("c", c('puts("1"); fflush(stdout); return 5;'), R, "the program exited with status 5"),
    "raises": ("python", "print(1, flush=True)\n1 / 0", R, "the program exited with status 1"),
    "crashes": ("c", c('puts("1"); fflush(stdout); abort();'), R, "the program died of SIGABRT"),
    "forgets to flush": ("c", c('char s[9]; puts("1"); scanf("%s", s);'), I, "the program used 0.00"),
    "waits": ("python", "input()", I, "the program used 0.0"),
    "loops": ("c", c("for (;;);"), T, "the program used more than 0.5 s of CPU time, then the interactor"),
    "eats memory": ("python", "x = b'x' * (1 << 28)", M, "the program needed more than 128 MiB"),
    "floods stderr": (
        "c",
        c("static char x[65536]; for (;;) fwrite(x, 1, sizeof x, stderr);"),
        O,
        "the program wrote more than 1 MiB",
    ),
    "does not wait for the last word": ("python", "print(617283)", A, ""),
    "reads on after it was accepted": (
        "python",
        FOUND + "input()",
        R,
        "the interactor accepted, then the program exited",
    ),
    "sleeps after it was accepted": (
        "python",
        FOUND + "import time\ntime.sleep(9)",
        I,
        "the interactor accepted, then",
    ),
    "ends badly after it was accepted": ("python", FOUND + "raise SystemExit(3)", R, ""),
    "writes on after it was accepted": ("python", FOUND + "import time\ntime.sleep(0.3)\nprint('thanks')", A, ""),
    "dies of writing after it was accepted": (
        "c",
        c('char s[9]; puts("617283"); fflush(stdout); scanf("%s", s); usleep(300000); for (;;) puts("thanks");'),
        A,
        "",
    ),
}


@pytest.mark.parametrize("of", [KATTIS, CARELESS, TESTLIB], ids=["kattis", "careless", "testlib"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(judge: Judge, name: str, of: Problem) -> None:
    language, source, verdict, told = PROGRAMS[name]
    (result,) = graded(judge, of, source, language)
    assert (result.verdict, told) == (verdict, result.message[: len(told)]), result
    assert (result.message == "") == (verdict is A)


def test_nonsense_is_rejected(judge: Judge) -> None:
    kattis, testlib = graded(judge, KATTIS, NONSENSE)[0], graded(judge, TESTLIB, NONSENSE)[0]
    assert (kattis.verdict, kattis.checker_message) == (W, "no more guesses")
    assert testlib.verdict is W
    assert testlib.checker_message.startswith("presentation error: wrong output format Expected integer")


def test_nonsense_that_an_interactor_cannot_stand_is_its_fault(judge: Judge) -> None:
    (result,) = graded(judge, CARELESS, NONSENSE)
    assert (result.verdict, result.message) == (
        C,
        "the interactor exited with status 1, then the program exited with status 1",
    )


def test_the_interactors_word_is_kept_apart_from_the_message(judge: Judge) -> None:
    right, wrong = graded(judge, KATTIS, RIGHT)[0], graded(judge, KATTIS, LINEAR)[0]
    assert (right.checker_message, wrong.checker_message) == ("found after 19", "too many guesses")


def test_the_checker_has_the_last_word_on_what_the_interactor_left(judge: Judge) -> None:
    of = problem(jury("guess_testlib.cpp"), ("7", "6"), ("500000", "1"), dialogue=Dialogue(jury("count_testlib.cpp")))
    results = graded(judge, of, RIGHT)
    assert [(result.verdict, result.message, result.checker_message) for result in results] == [
        (W, "", "wrong answer 17 guesses, 6 allowed"),
        (A, "", "ok 1 guesses"),
    ]


def test_a_testlib_interactor_alone_decides_where_there_is_no_checker(judge: Judge) -> None:
    (result,) = graded(judge, problem(jury("guess_testlib.cpp"), ("7", "1")), RIGHT)
    assert (result.verdict, result.checker_message) == (A, "ok found")


def test_an_interactor_gets_its_flags(judge: Judge) -> None:
    told = problem(jury("guess.cpp", "tell"), ("7", "1"))
    assert graded(judge, told, "assert input() == '1'\nprint(7)")[0].verdict is A


def test_the_exit_status_can_be_ignored(judge: Judge) -> None:
    lenient = replace(KATTIS, ignore_exit_code=True)
    assert graded(judge, lenient, FOUND + "raise SystemExit(3)")[0].verdict is A


def test_one_conversation_knows_nothing_of_the_one_before(judge: Judge) -> None:
    of = problem(jury("guess.cpp"), ("1", "1"), ("22", "1"), ("333", "1"))
    results = graded(judge, of, "print(1, flush=True)\ninput()")
    assert [result.verdict for result in results] == [A, W, W]


def test_what_the_interactor_computes_is_not_the_programs_time(judge: Judge) -> None:
    of = problem(jury("faulty.py"), ("works", ""))
    limits = replace(LIMITS, cpu_s=0.3, wall_s=20.0)
    (result,) = graded(judge, of, "print(1, flush=True)\nprint(input())", limits=limits)
    assert result.verdict is A
    assert result.cpu_s is not None
    assert result.wall_s is not None
    assert result.cpu_s < 0.2 < 0.3 < result.wall_s


def test_what_the_interactor_computes_is_the_judges_own_work(judge: Judge) -> None:
    """And so nobody else's, to whom a program's idling could be laid."""
    before_s = judge.used_s
    (result,) = graded(judge, problem(jury("faulty.py"), ("works", "")), "print(1, flush=True)\nprint(input())")
    assert result.cpu_s is not None
    assert judge.used_s - before_s >= 0.4 + result.cpu_s


def test_an_interactor_that_waits_for_the_core_makes_no_program_idle(judge: Judge) -> None:
    """0.4 s of CPU time within 0.6 s, while four others want each core: not to be had by the wall clock."""
    limits = replace(LIMITS, cpu_s=0.3, wall_s=0.6)
    of = problem(jury("faulty.py"), ("works", ""))
    with contextlib.ExitStack() as others:
        for _ in range(4 * len(os.sched_getaffinity(0))):
            # Each a session of its own: the kernel shares a core out among sessions first, and a cell's run is one.
            other = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"], start_new_session=True)
            others.callback(other.wait)
            others.callback(other.kill)
        # The scheduler may let it through early: it is the runs past the wall limit that prove something.
        for _ in range(20):
            (result,) = graded(judge, of, "print(1, flush=True)\nprint(input())", limits=limits)
            assert (result.verdict, result.reruns) == (A, 0)
            assert result.wall_s is not None
            if result.wall_s > 0.6:
                break
    assert result.wall_s > 0.6


def test_a_judge_can_be_called_off_in_a_conversation(judge: Judge) -> None:
    cancelled, cancel = os.pipe()
    timer = threading.Timer(0.5, os.write, (cancel, b"x"))
    timer.start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        judge.judge(Submission(KATTIS, "python", b"input()", ROOMY), cancel_fd=cancelled)
    timer.join()
    os.close(cancelled)
    os.close(cancel)
    assert time.monotonic() - started < 5


# ---------------------------------------------------------------------------------------------------------------
# The wall between the two

PEEK = """
import os
seen = []
for root in ("/box", "/tmp", "/prog", "/dev/shm"):
    for folder, folders, files in os.walk(root):
        seen += [f"{folder}/{name}" for name in (*folders, *files)]
fds = sorted(map(int, os.listdir("/proc/self/fd")))
seen += [f"fd {n}" for n in fds if n > 2 and os.path.exists(f"/proc/self/fd/{n}")]
seen += [f"pid {n}" for n in os.listdir("/proc") if n.isdigit() and n not in ("1", str(os.getpid()))]
def attempt(what, deed):
    try:
        deed()
        seen.append(what)
    except OSError:
        pass
for path in ("/dev/fd/4", "/dev/fd/5", "/box/feedback/judgemessage.txt", "/box/tout", "/proc/1/fd/4", "/proc/1/fd/0"):
    attempt(path, lambda: open(path, "rb").read(1))
    attempt(path, lambda: open(path, "r+b"))
    attempt(path, lambda: os.truncate(path, 0))
print(len(seen), flush=True)
import sys
print(*seen, sep="\\n", file=sys.stderr)
"""


def test_a_program_finds_nothing_of_its_interactor(judge: Judge) -> None:
    """It prints how much it found: the number to be guessed is that of its own source alone."""
    (result,) = graded(judge, problem(jury("guess.cpp"), ("1", "1")), PEEK)
    assert result.stderr_tail == b"/prog/main.py\n"
    assert result.verdict is A


DISTURB = """
import os, signal, socket
def attempt(deed):
    try:
        deed()
    except OSError:
        pass
# Other ends of its own pipes: it may talk to itself, and no further.
attempt(lambda: os.write(os.open("/proc/self/fd/0", os.O_WRONLY | os.O_NONBLOCK), b"=\\n" * 100))
attempt(lambda: os.kill(-1, signal.SIGKILL))
attempt(lambda: os.makedirs("/box/feedback"))
attempt(lambda: open("/box/feedback/score.txt", "w").write("100"))
attempt(lambda: open("/box/feedback/nextpass.in", "w").write("1"))
attempt(lambda: open("/box/tout", "w").write("1"))
print(1, flush=True)
print(input())
"""


def test_a_program_reaches_nothing_of_its_interactor(judge: Judge) -> None:
    (kattis,) = graded(judge, problem(jury("guess.cpp"), ("2", "1")), DISTURB)
    assert (kattis.verdict, kattis.score) == (W, None)
    of = problem(jury("guess_testlib.cpp"), ("2", "1"), dialogue=Dialogue(jury("count_testlib.cpp")))
    (testlib,) = graded(judge, of, DISTURB)
    assert (testlib.verdict, testlib.score) == (W, None)


def test_a_forked_child_cannot_keep_the_conversation_open(judge: Judge) -> None:
    """What the program leaves behind ends with it, so that the interactor sees its end."""
    source = c("if (fork() == 0) sleep(60); return 0;")
    (result,) = graded(judge, KATTIS, source, "c")
    assert (result.verdict, result.message[:17]) == (W, "the program ended")
    assert result.wall_s is not None
    assert result.wall_s < 1


def test_nothing_is_left_of_conversations(judge: Judge, sandbox_config: SandboxConfig) -> None:
    """Last of those that ask the module's judge: closing one judge of a process removes the groups of all of them."""
    judge.close()
    for of in (KATTIS, TESTLIB):
        # From its first use on a problem keeps its inputs.
        os.close(of.tests[0].stdin.open())
    before = footprint()
    other = Judge(sandbox_config, slot=1, core=None)
    for source in (RIGHT, LINEAR, "1 / 0", "input()"):
        graded(other, KATTIS, source, limits=replace(LIMITS, wall_s=0.5))
        graded(other, TESTLIB, source, limits=replace(LIMITS, wall_s=0.5))
    other.close()
    wait_until(lambda: footprint() <= before, "nothing left", within_s=3)
