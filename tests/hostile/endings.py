"""How programs end and what bytes they print: every exit status, every signal, output that is no clean text."""

from __future__ import annotations

import signal

from sandbox.problem import Limits
from sandbox.verdicts import Verdict
from tests.hostile.case import MB, PYTHONS, Case, Run, in_pythons

EXIT_C = b"""
#include <stdio.h>
#include <stdlib.h>
int main(void) { int status; scanf("%d", &status); puts("held"); exit(status); }
"""

EXIT_PYTHON = b"""
import sys
print("held")
sys.exit(int(input()))
"""

EXITS = tuple(
    Run(
        b"%d\n" % status,
        Verdict.RUNTIME_ERROR if status else Verdict.ACCEPTED,
        exit_code=status,
        name=f"exit {status}",
    )
    for status in range(256)
)

#: Python's own words for an exit: what is no number goes to stderr, with status 1.
EXIT_WORDS = """
import os, sys
print("held")
word = sys.stdin.readline().strip()
sys.stdout.flush()
exits = {
    "nothing": lambda: sys.exit(), "none": lambda: sys.exit(None), "true": lambda: sys.exit(True),
    "string": lambda: sys.exit("a message"), "empty_string": lambda: sys.exit(""), "float": lambda: sys.exit(3.5),
    "tuple": lambda: sys.exit((1, 2)), "minus_one": lambda: sys.exit(-1), "wraps": lambda: sys.exit(256),
    "builtin": lambda: exit(), "builtin_quit": lambda: quit(4), "builtin_string": lambda: exit("no"),
    "at_once": lambda: os._exit(5), "at_once_fine": lambda: os._exit(0), "abort": os.abort,
}
exits[word]()
"""

EXIT_WORD_CODES = {
    "nothing": 0, "none": 0, "true": 1, "string": 1, "empty_string": 1, "float": 1, "tuple": 1, "minus_one": 255,
    "wraps": 0, "builtin": 0, "builtin_quit": 4, "builtin_string": 1, "at_once": 5, "at_once_fine": 0,
}  # fmt: skip

RAISE_C = b"""
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(void) { int number; scanf("%d", &number); puts("held"); fflush(stdout); kill(getpid(), number); }
"""

RAISE_PYTHON = b"""
import os
number = int(input())
print("held", flush=True)
os.kill(os.getpid(), number)
"""

STOPPING = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
FATAL = [number for number in range(1, 65) if number not in STOPPING | HARMLESS | {32, 33}]


def dying(number: int) -> Run:
    # RLIMIT_FSIZE speaks through this one, and the kernel's word for it cannot be told from kill(2)'s.
    verdict = Verdict.OUTPUT_LIMIT if number == signal.SIGXFSZ else Verdict.RUNTIME_ERROR
    return Run(b"%d\n" % number, verdict, signal=number, name=f"signal {number}")


def surviving(number: int) -> Run:
    return Run(b"%d\n" % number, name=f"signal {number}")


#: A fresh interpreter ignores these two, and turns SIGINT into an exception.
PYTHON_IGNORES = {signal.SIGPIPE, signal.SIGXFSZ}

SIGNALS_C = (*map(dying, FATAL), *map(surviving, sorted(HARMLESS)))
SIGNALS_PYTHON = (
    *(dying(number) for number in FATAL if number not in PYTHON_IGNORES | {signal.SIGINT}),
    *map(surviving, sorted(HARMLESS | PYTHON_IGNORES)),
    Run(b"2\n", Verdict.RUNTIME_ERROR, name="signal 2"),
)

WRITES = """
import os, sys
data = bytes.fromhex(sys.stdin.readline())
while data:
    data = data[os.write(1, data):]
"""


def printing(name: str, output: bytes, expected: bytes, verdict: Verdict) -> Run:
    return Run(output.hex().encode() + b"\n", verdict, expected, name=name)


ACCEPTED, WRONG = Verdict.ACCEPTED, Verdict.WRONG_ANSWER

BY_TOKENS = (
    printing("plain", b"1 2\n", b"1 2\n", ACCEPTED),
    printing("no newline", b"1 2", b"1 2\n", ACCEPTED),
    printing("carriage returns", b"1\r\n2\r\n", b"1\n2\n", ACCEPTED),
    # As testlib has it: a mark at the very start is no part of the first token.
    printing("byte order mark", b"\xef\xbb\xbf1 2\n", b"1 2\n", ACCEPTED),
    printing("byte order mark inside", b"1 \xef\xbb\xbf2\n", b"1 2\n", WRONG),
    printing("invalid UTF-8", b"1 2\xff\xfe\n", b"1 2\n", WRONG),
    printing("invalid UTF-8 wanted", b"\xff\xfe\n", b"\xff\xfe\n", ACCEPTED),
    printing("truncated UTF-8", b"\xe2\x82", b"\xe2\x82\xac", WRONG),
    printing("NUL inside", b"1\x002\n", b"1 2\n", WRONG),
    printing("NUL at the end", b"1 2\n\x00", b"1 2\n", WRONG),
    printing("NUL first", b"\x001 2\n", b"1 2\n", WRONG),
    printing("NULs wanted", b"\x00\x00\n", b"\x00\x00\n", ACCEPTED),
    printing("no output", b"", b"1 2\n", WRONG),
    printing("no output wanted", b"", b"", ACCEPTED),
    printing("blank output", b"\n \n", b"", ACCEPTED),
    printing("too much", b"1 2 3\n", b"1 2\n", WRONG),
    printing("too little", b"1\n", b"1 2\n", WRONG),
    printing("control bytes", b"1\x1b[2K2\n", b"1 2\n", WRONG),
    printing("wide space", b"1\xe3\x80\x802\n", b"1 2\n", WRONG),
    printing("no-break space", b"1\xc2\xa02\n", b"1 2\n", WRONG),
    printing("lone surrogate", b"\xed\xa0\x80", b"?", WRONG),
)

EXACTLY = (
    printing("plain", b"1 2\n", b"1 2\n", ACCEPTED),
    printing("no newline", b"1 2", b"1 2\n", WRONG),
    printing("carriage returns", b"1 2\r\n", b"1 2\n", WRONG),
    printing("byte order mark", b"\xef\xbb\xbf1 2\n", b"1 2\n", WRONG),
    printing("NUL at the end", b"1 2\n\x00", b"1 2\n", WRONG),
    printing("every byte", bytes(range(256)), bytes(range(256)), ACCEPTED),
)

QUICK = Limits(cpu_s=2.0, wall_s=20.0, memory_bytes=128 * MB, output_bytes=MB)

CASES: list[Case] = [
    Case("exits", "c", EXIT_C, EXITS, QUICK),
    *(Case("exits", language, EXIT_PYTHON, EXITS[:4] + EXITS[-4:], QUICK) for language in PYTHONS[1:]),
    Case("exits", "python", EXIT_PYTHON, EXITS, QUICK),
    Case(
        "exits_ignored",
        "c",
        EXIT_C,
        (Run(b"3\n", exit_code=3), Run(b"3\n", WRONG, expected=b"other\n", exit_code=3)),
        QUICK,
        ignore_exit_code=True,
    ),
    # A death by signal is no exit status.
    Case("death_not_ignored", "c", RAISE_C, (dying(signal.SIGSEGV),), QUICK, ignore_exit_code=True),
    *in_pythons(
        "exit_words",
        EXIT_WORDS,
        *(
            Run(word.encode() + b"\n", Verdict.RUNTIME_ERROR if code else ACCEPTED, exit_code=code, name=word)
            for word, code in EXIT_WORD_CODES.items()
        ),
        Run(b"abort\n", Verdict.RUNTIME_ERROR, signal=signal.SIGABRT, name="abort"),
    ),
    Case("signals", "c", RAISE_C, SIGNALS_C, QUICK),
    *in_pythons("signals", RAISE_PYTHON, *SIGNALS_PYTHON, limits=QUICK),
    Case("output_bytes", "python", WRITES.encode(), BY_TOKENS, QUICK),
    Case("output_bytes_exactly", "python", WRITES.encode(), EXACTLY, QUICK, checker="exact"),
]
