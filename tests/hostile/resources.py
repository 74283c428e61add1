"""Programs that take more than they were given: processes, memory, output, time."""

from __future__ import annotations

from sandbox.problem import Limits
from sandbox.verdicts import Verdict
from tests.hostile.case import MB, Case, Run, in_pythons, program, words

ACCEPTED, WRONG, TIME, MEMORY, OUTPUT, IDLE, CRASH = (
    Verdict.ACCEPTED,
    Verdict.WRONG_ANSWER,
    Verdict.TIME_LIMIT,
    Verdict.MEMORY_LIMIT,
    Verdict.OUTPUT_LIMIT,
    Verdict.IDLE,
    Verdict.RUNTIME_ERROR,
)

#: CPU time runs out long before wall time does.
BUSY = Limits(cpu_s=0.2, wall_s=20.0, memory_bytes=128 * MB, output_bytes=MB)
#: Wall time runs out, with no CPU time to speak of.
SLEEPY = Limits(cpu_s=5.0, wall_s=0.4, memory_bytes=128 * MB, output_bytes=MB)
#: Files may be as large as output may: 16 MB each, so that memory runs out first.
TIGHT = Limits(cpu_s=10.0, wall_s=30.0, memory_bytes=64 * MB, output_bytes=20 * MB)
PIPES = Limits(cpu_s=5.0, wall_s=20.0, memory_bytes=24 * MB, output_bytes=MB)
CRAMPED = Limits(cpu_s=5.0, wall_s=20.0, memory_bytes=256 * MB, output_bytes=MB, processes=24)
MANY_FILES = Limits(cpu_s=20.0, wall_s=60.0, memory_bytes=512 * MB, output_bytes=MB)
FLOOD = Limits(cpu_s=5.0, wall_s=20.0, memory_bytes=64 * MB, output_bytes=MB)

_after = Run(b"alive\n", name="alive")
"""A sound run after an unruly one: it must find its cell, or a new one, in order."""

FLOODS = """
import os, signal, sys
word = sys.stdin.readline().strip()
block = b"x" * 65536
def write_on(fd):
    while True:
        os.write(fd, block)
if word == "stdout":
    write_on(1)
elif word == "stderr":
    write_on(2)
elif word == "print":
    while True:
        print("held")
elif word == "quietly":
    try:
        write_on(1)
    except OSError:
        os._exit(0)
elif word == "in_child":
    if os.fork() == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        write_on(1)
    os.wait()
elif word == "both":
    for _ in range(15):
        os.write(1, block)
        os.write(2, block)
    os.write(2, block + block)
elif word == "exactly":
    os.write(1, b"held" + b" " * (2**20 - 4))
elif word == "one_more":
    os.write(1, b"held" + b" " * (2**20 - 3))
elif word == "errors_to_the_brim":
    os.write(2, b" " * 2**20)
    print("held")
elif word == "no_limit_on_files":
    with open("/tmp/file", "wb") as file:
        file.write(b" " * 2**19)
    print("held")
"""

SIGNAL_HANDLERS = """
import signal
def carry_on(number, frame):
    pass
for number in range(1, signal.NSIG):
    if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
        signal.signal(number, carry_on)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""

PYTHON_BUSY = """
import os, sys, threading
word = sys.stdin.readline().strip()
def spin():
    while True:
        pass
if word == "spin":
    spin()
elif word == "fork_bomb":
    while True:
        try:
            os.fork()
        except OSError:
            pass
elif word == "threads":
    for _ in range(8):
        threading.Thread(target=spin).start()
elif word == "child":
    if os.fork() == 0:
        spin()
    os.wait()
elif word == "one_long_call":
    # No bytecode boundary: nothing in the interpreter could interrupt it.
    sum(range(10**12))
elif word == "big_number":
    9 ** 9 ** 9
elif word == "regex":
    import re
    re.match("(a*)*b", "a" * 40)
elif word == "eats_exceptions":
    while True:
        try:
            spin()
        except BaseException:
            pass
"""

PYTHON_SLEEPY = """
import os, queue, signal, sys, threading, time
word = sys.stdin.readline().strip()
if word == "sleep":
    time.sleep(1000)
elif word == "stop_self":
    os.kill(os.getpid(), signal.SIGSTOP)
elif word == "thread_never_ends":
    threading.Thread(target=time.sleep, args=(1000,)).start()
    print("held", flush=True)
elif word == "deadlock":
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
elif word == "queue":
    queue.Queue().get()
elif word == "atexit":
    import atexit
    atexit.register(time.sleep, 1000)
elif word == "blocked":
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    time.sleep(1000)
elif word == "own_pipe":
    os.read(os.pipe()[0], 1)
"""

PYTHON_MEMORY = """
import os, sys, time
word = sys.stdin.readline().strip()
if word == "at_once":
    x = bytearray(10**9)
    x[::4096] = b"x" * len(x[::4096])
elif word == "slowly":
    hoard = []
    while True:
        hoard.append(b"x" * 2**20)
        time.sleep(0.0005)
elif word == "list":
    x = [0]
    while True:
        x += x
elif word == "string":
    x = "ab"
    while True:
        x += x
elif word == "in_child":
    if os.fork() == 0:
        x = b"x" * 10**9
    os.wait()
elif word == "caught":
    try:
        x = b"x" * 10**9
    except MemoryError:
        pass
elif word == "recursion":
    sys.setrecursionlimit(10**9)
    def f(n):
        return f(n + 1)
    f(0)
elif word == "modest":
    x = b"x" * (20 * 2**20)
print("held")
"""

PYTHON_RECURSION = """
import sys, threading
word = sys.stdin.readline().strip()
def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)
class Chain:
    def __getattr__(self, name):
        return getattr(self, name + "a" if len(name) < 9 else name)
if word == "too_deep":
    depth(10**5)
elif word == "limit_raised":
    sys.setrecursionlimit(10**6)
    assert depth(10**5) == 10**5
elif word == "in_thread":
    sys.setrecursionlimit(10**6)
    threading.stack_size(64 * 2**20)
    result = []
    thread = threading.Thread(target=lambda: result.append(depth(50000)))
    thread.start()
    thread.join()
    assert result == [50000]
elif word == "caught":
    try:
        depth(10**5)
    except RecursionError:
        pass
elif word == "through_c":
    # Frames of the interpreter itself: they overflow a thread's small stack, whatever the recursion limit says.
    sys.setrecursionlimit(10**6)
    threading.stack_size(2**20)
    thread = threading.Thread(target=lambda: Chain().x)
    thread.start()
    thread.join()
print("held")
"""

CPP_RECURSION = b"""
#include <bits/stdc++.h>
using namespace std;
vector<vector<int>> next_of;
int visit(int node, int parent) {
    int size = 1;
    for (int child : next_of[node]) if (child != parent) size += visit(child, node);
    return size;
}
int endless(int n, volatile int *up) {
    volatile int here[64];
    here[0] = n + *up;
    return endless(n + 1, here) + here[0];
}
int main() {
    string word;
    cin >> word;
    if (word == "path") {
        next_of.resize(1000000);
        for (int i = 0; i + 1 < 1000000; i++) { next_of[i].push_back(i + 1); next_of[i + 1].push_back(i); }
        if (visit(0, -1) != 1000000) return 3;
    }
    if (word == "endless") { volatile int zero = 0; cerr << endless(0, &zero); }
    if (word == "vector") { vector<int> v; for (;;) v.push_back(1); }
    if (word == "bad_alloc") { try { vector<char> v(size_t(1) << 46); cerr << v[5]; } catch (bad_alloc &) {} }
    if (word == "uncaught") throw runtime_error("x");
    cout << "held" << endl;
}
"""

#: As many timers as the host lets it have. Each could cost the kernel time every tick.
TIMERS = b"""
#include <signal.h>
#include <stdio.h>
#include <time.h>
int main(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    int made = 0;
    signal(SIGALRM, SIG_IGN);
    while (made < 5000 && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) made++;
    puts(100 <= made && made <= 1024 ? "held" : "escaped");
}
"""

BIG_INPUT = b"1" * MB + b"\n"

CASES: list[Case] = [
    Case(
        "busy",
        "c",
        program("processes.c"),
        (
            *words(
                TIME,
                "fork_bomb",
                "vfork_bomb",
                "orphan_bomb",
                "thread_spinners",
                "leader_thread_leaves",
                "children_in_turn",
                "orphans_in_turn",
                "system_time",
                "child_spins_parent_waits",
                "handlers",
                "blocked_signals",
                "just_over",
            ),
            *words(ACCEPTED, "just_under", "alive"),
        ),
        BUSY,
    ),
    Case(
        "sleepy",
        "c",
        program("processes.c"),
        (
            *words(
                IDLE,
                "sleep",
                "sleep_blocked",
                "sleep_closed",
                "stop_self",
                "vfork_hangs",
                "deadlock",
                "read_own_pipe",
                "fork_sleepers",
            ),
            _after,
        ),
        SLEEPY,
    ),
    Case(
        "lingering",
        "c",
        program("processes.c"),
        (
            *words(
                ACCEPTED,
                "child_spins_after",
                "child_sleeps_after",
                "daemon",
                "alive",
                "clone_no_signal",
                "subreaper",
                "zombies",
                "thread_bomb",
                "fork_count",
                "kill_all",
                "out_of_fds",
                "fds_in_flight",
                "exec_shell",
                "exec_self",
                "exec_from_memory",
                "stdout_reopened",
                "stdout_read_back",
                "alive",
            ),
            # The answer came from a child that outlived the program: too late.
            *words(
                WRONG, "answer_after_exit", "answer_by_clone_parent", "exec_true", "close_stdout", "stdout_elsewhere"
            ),
            Run(b"kill_group\n", CRASH, signal=9, name="kill_group"),
            Run(b"dump_core\n", CRASH, signal=6, name="dump_core"),
            _after,
        ),
    ),
    Case(
        "few_processes",
        "c",
        program("processes.c"),
        words(ACCEPTED, "zombies", "fork_count", "thread_bomb", "alive"),
        CRAMPED,
    ),
    *in_pythons(
        "busy",
        PYTHON_BUSY,
        *words(
            TIME, "spin", "fork_bomb", "threads", "child", "one_long_call", "big_number", "regex", "eats_exceptions"
        ),
        limits=BUSY,
    ),
    *in_pythons("signal_handlers", SIGNAL_HANDLERS, Run(verdict=TIME), limits=BUSY),
    *in_pythons(
        "sleepy",
        PYTHON_SLEEPY,
        *words(IDLE, "sleep", "stop_self", "thread_never_ends", "deadlock", "queue", "atexit", "blocked", "own_pipe"),
        limits=SLEEPY,
    ),
    Case(
        "memory",
        "c",
        program("memory.c"),
        (
            *words(MEMORY, "at_once", "slowly", "in_child", "in_children", "mapped_shared", "memfds"),
            *words(MEMORY, "fill_tmp", "fill_box", "fill_shm", "endless_recursion"),
            # What a run before left in its files is not this one's.
            *words(ACCEPTED, "half_in_tmp", "half_in_tmp", "just_under"),
            *words(ACCEPTED, "reserved_only", "deep_recursion", "stack_array"),
            Run(b"kill_self\n", CRASH, signal=9, name="kill_self"),
        ),
        TIGHT,
    ),
    Case("memory_in_pipes", "c", program("memory.c"), words(MEMORY, "pipes"), PIPES),
    Case(
        "many_files",
        "c",
        program("memory.c"),
        (*words(ACCEPTED, "many_files"), *words(ACCEPTED, "just_under")),
        MANY_FILES,
    ),
    *in_pythons(
        "memory",
        PYTHON_MEMORY,
        *words(MEMORY, "at_once", "slowly", "list", "string", "in_child", "caught", "recursion"),
        *words(ACCEPTED, "modest"),
        limits=TIGHT,
    ),
    *in_pythons(
        "recursion",
        PYTHON_RECURSION,
        Run(b"too_deep\n", CRASH, exit_code=1, name="too_deep"),
        Run(b"through_c\n", CRASH, signal=11, name="through_c"),
        *words(ACCEPTED, "limit_raised", "in_thread", "caught"),
    ),
    Case(
        "recursion",
        "cpp",
        CPP_RECURSION,
        (
            *words(ACCEPTED, "path", "bad_alloc"),
            *words(MEMORY, "endless", "vector"),
            Run(b"uncaught\n", CRASH, signal=6, name="uncaught"),
        ),
    ),
    *in_pythons(
        "flood",
        FLOODS,
        *words(OUTPUT, "stdout", "stderr", "print", "quietly", "in_child", "both", "one_more"),
        *words(ACCEPTED, "exactly", "errors_to_the_brim", "no_limit_on_files"),
        limits=FLOOD,
    ),
    Case("timers", "c", TIMERS, (Run(), Run())),
    Case("ignores_input", "c", b'#include <stdio.h>\nint main(void) { puts("held"); }\n', (Run(BIG_INPUT),)),
    *in_pythons("ignores_input", "print('held')\n", Run(BIG_INPUT)),
]
