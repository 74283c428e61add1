"""Programs that leave something for the next test to find or to stumble over."""

from __future__ import annotations

from dataclasses import replace

from sandbox.problem import Limits
from sandbox.verdicts import Verdict
from tests.hostile.case import MB, Case, Run, in_pythons, program

FILES = """
import os, sys
word = sys.stdin.readline().strip()
if word == "leave":
    for directory in ("/tmp", "/box", "/dev/shm", "/prog", "/var/tmp", "/run", "/", "."):
        for name in ("answer", "main.py", "sitecustomize.py", "usercustomize.py", "random.py", "heapq.py", "_heapq.py"):
            try:
                with open(f"{directory}/{name}", "w") as file:
                    file.write("print('escaped')\\n")
            except OSError:
                pass
    os.makedirs("/box/.local/lib/python3.11/site-packages", exist_ok=True)
    with open("/box/.local/lib/python3.11/site-packages/x.pth", "w") as file:
        file.write("import os; print('escaped')\\n")
    print("held")
else:
    import heapq, random
    left = os.listdir("/tmp") + os.listdir("/box")
    print("held" if not left and not os.path.exists("answer") else "escaped")
"""

# What the interpreter itself holds: a fork's damage must not reach the one it was forked from, nor the next fork.
INTERPRETER = """
import sys
word = sys.stdin.readline().strip()
import builtins, gc, heapq, json, locale, math, os, random, signal, string, threading
if word == "leave":
    builtins.len = lambda x: 42
    math.pi = 3
    heapq.heappush = lambda heap, item: None
    string.digits = "none"
    random.seed(1)
    sys.setrecursionlimit(60)
    sys.path.insert(0, "/tmp")
    sys.argv.append("escaped")
    sys.modules["json"] = None
    os.environ["LEFT"] = "1"
    os.chdir("/tmp")
    os.umask(0o777)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    gc.disable()
    threading.stack_size(2**20)
    sys.settrace(lambda *a: None)
    sys.stdout.write("held\\n")
else:
    heap = []
    heapq.heappush(heap, 1)
    faults = [
        len([]) != 0, math.pi == 3, heap != [1], string.digits == "none", sys.getrecursionlimit() < 900,
        "/tmp" in sys.path, len(sys.argv) != 1, "LEFT" in os.environ, os.getcwd() != "/box", os.umask(0) != 0o022,
        signal.getsignal(signal.SIGTERM) != signal.SIG_DFL, bool(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        signal.getitimer(signal.ITIMER_REAL) != (0.0, 0.0), not gc.isenabled(), threading.stack_size() != 0,
        sys.gettrace() is not None, json is None,
    ]
    print("held" if not any(faults) else faults)
"""

# What the two interpreters start from: fresh signal dispositions, and those a Python interpreter makes for itself.
STATE = """
import os, signal, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
# Signals 32 and 33 are the C library's own, which it ignores in what it spawns.
masks = {name: int(status[name], 16) & ~(3 << 31) for name in ("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt")}
bit = lambda *numbers: sum(1 << number - 1 for number in numbers)
wanted = {
    "SigPnd": 0, "ShdPnd": 0, "SigBlk": 0, "SigIgn": bit(signal.SIGPIPE, signal.SIGXFSZ), "SigCgt": bit(signal.SIGINT),
}
print("held" if masks == wanted else masks, flush=True)
"""

PENDING = """
import os, signal, sys
word = sys.stdin.readline().strip()
if word == "leave":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(50):
        try:
            os.kill(1, signal.SIGUSR1)
            os.kill(os.getppid(), signal.SIGCHLD)
        except PermissionError:
            pass
    if os.fork() == 0:
        print("held" if not signal.sigpending() else "escaped", flush=True)
        os._exit(0)
    os.wait()
else:
    print("held" if not signal.sigpending() else "escaped")
"""

# Inodes that other cells see too: a note in their times, modes or attributes would outlive this one.
SHARED = """
import os
shared = ["/", "/usr", "/usr/bin", "/usr/bin/python3", "/etc/passwd", "/rkgrade", "/rkgrade-enter", "/prog/main.py",
          "/proc/self/fd/0", *(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))]
attempts = {
    "times": lambda path: os.utime(path, (1, 1)), "now": os.utime,
    "attribute": lambda path: os.setxattr(path, "user.x", b""),
    "mode": lambda path: os.chmod(path, 0o777), "owner": lambda path: os.chown(path, 1000, 1000),
}
changed = []
for path in shared:
    for name, attempt in attempts.items():
        try:
            attempt(path)
            changed.append((path, name))
        except OSError:
            pass
print("held" if not changed else changed)
"""

# Longer output first: nothing of it may show behind the shorter one.
SHRINKING = """
import sys
word = sys.stdin.readline().strip()
if word == "long":
    print("x " * 100000)
else:
    print("held")
"""

SWEEP = Limits(cpu_s=20.0, wall_s=60.0, memory_bytes=256 * MB, output_bytes=MB)

LEAVE = Run(b"leave\n", Verdict.RUNTIME_ERROR, signal=9, name="leave")
LOOK = Run(b"look\n", name="look")

# Memory that the kernel frees in its own time: files in messages that nobody can receive, as the sockets lie there too.
IN_FLIGHT = b"""
import os, socket
for _ in range(40):
    one, other = socket.socketpair()
    held = os.memfd_create("left")
    os.write(held, bytes(2**20))
    socket.send_fds(one, [b"x"], [one.fileno(), other.fileno(), held])
    os.close(held)
    one.close()
    other.close()
print("held")
"""

CASES: list[Case] = [
    Case("every_shelf", "c", program("leave.c"), (LOOK, LEAVE, LOOK, LEAVE, LEAVE, LOOK), SWEEP),
    *in_pythons("files", FILES, Run(b"leave\n", name="leave"), LOOK, Run(b"leave\n", name="leave"), LOOK),
    *in_pythons("interpreter", INTERPRETER, LOOK, Run(b"leave\n", name="leave"), LOOK),
    *in_pythons("fresh_state", STATE, Run(), Run()),
    *in_pythons("shared_inodes", SHARED, Run()),
    Case("memory_in_flight", "python", IN_FLIGHT, (Run(),) * 8, replace(SWEEP, memory_bytes=64 * MB)),
    *in_pythons("pending_signals", PENDING, LOOK, Run(b"leave\n", name="leave"), LOOK),
    *in_pythons(
        "shrinking_output", SHRINKING, Run(b"long\n", Verdict.WRONG_ANSWER, name="long"), Run(b"short\n", name="short")
    ),
]
