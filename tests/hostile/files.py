"""Programs that attack the way by which input and output travel as files.

The expected output is what an attack would have to smuggle in: most of these must be wrong answers.
"""

from __future__ import annotations

from sandbox.verdicts import Verdict
from tests.hostile.case import Case, Run, in_pythons

FILES = {"input_file": "input.txt", "output_file": "output.txt"}

# Whatever stands at the output's name and is no plain file of the program's own is no output, wherever it leads.
LINKS = """
import os, socket
word = open("input.txt").read().strip()
links = {
    "source": "/prog/main.py",
    "stdin": "/dev/stdin",
    "input": "input.txt",
    "descriptor": "/proc/self/fd/4",
    "system": "/etc/ld.so.cache",
    "own": "other.txt",
    "itself": "output.txt",
    "parent": "..",
    "nowhere": "nowhere",
}
with open("other.txt", "w") as file:
    file.write("held\\n")
try:
    if word in links:
        os.symlink(links[word], "output.txt")
    elif word == "hard link":
        os.link("/prog/main.py", "output.txt")
    elif word == "hard link to input":
        os.link("input.txt", "output.txt")
    elif word == "hard link to link":
        os.link("input.txt", "output.txt", follow_symlinks=False)
    elif word == "fifo":
        os.mkfifo("output.txt")
    elif word == "socket":
        socket.socket(socket.AF_UNIX).bind("output.txt")
    elif word == "directory":
        os.mkdir("output.txt")
        os.rename("other.txt", "output.txt/output.txt")
    elif word == "closed":
        os.rename("other.txt", "output.txt")
        os.chmod("output.txt", 0)
except OSError:
    pass
"""
LINKED = (
    Run(b"source\n", Verdict.WRONG_ANSWER, LINKS.encode(), name="source"),
    Run(b"hard link\n", Verdict.WRONG_ANSWER, LINKS.encode(), name="hard link"),
    *(
        Run(word.encode(), Verdict.WRONG_ANSWER, word.encode(), name=word)
        for word in ("stdin", "input", "descriptor", "hard link to input", "hard link to link")
    ),
    *(
        Run(word.encode(), Verdict.WRONG_ANSWER, name=word)
        for word in ("system", "own", "itself", "parent", "nowhere", "fifo", "socket", "directory", "closed", "nothing")
    ),
)

# The second run would be right by what the first one left, in whatever place.
LEFT = """
import os
if open("input.txt").read().strip() == "leave":
    for directory in (".", "/tmp"):
        with open(f"{directory}/output.txt", "w") as file:
            file.write("held\\n")
    os.link("output.txt", "copy.txt")
    held = open("output.txt")
    os.chmod("output.txt", 0o444)
    if os.fork() == 0:
        os.setsid()
        while True:
            held.read()
"""

# Written by a process that outlives the first one: too late.
LATE = """
import os, time
if os.fork() == 0:
    os.setsid()
    os.close(1)
    time.sleep(1)
    with open("output.txt", "w") as file:
        file.write("held\\n")
    time.sleep(60)
"""

# The input is one sealed memory for all submissions: nothing done to it may reach the next run.
CHANGED_INPUT = """
import fcntl, mmap, os
kept = open("input.txt").read()
faults = []
def attack(name, act):
    try:
        act()
    except (OSError, ValueError):
        return
    faults.append(name)
attack("write", lambda: open("input.txt", "w").write("x"))
attack("append", lambda: (lambda f: (f.write("x"), f.flush()))(open("input.txt", "a")))
attack("update", lambda: os.write(os.open("input.txt", os.O_RDWR), b"x"))
attack("descriptor", lambda: os.write(4, b"x"))
attack("truncate", lambda: os.truncate("input.txt", 0))
attack("grow", lambda: os.truncate("input.txt", 1 << 20))
attack("chmod", lambda: os.chmod("input.txt", 0))
attack("chown", lambda: os.chown("input.txt", os.getuid(), os.getgid()))
attack("seal", lambda: fcntl.fcntl(4, 1033, 0x10))
attack("map", lambda: mmap.mmap(4, 0, prot=mmap.PROT_READ | mmap.PROT_WRITE))
attack("attribute", lambda: os.setxattr("input.txt", "user.x", b"x"))
attack("times", lambda: os.utime("input.txt"))
if open("input.txt").read() != kept or not kept.startswith("true"):
    faults.append("changed")
os.remove("input.txt")
with open("input.txt", "w") as file:
    file.write("another input")
with open("output.txt", "w") as file:
    file.write("escaped\\n" if faults else "held\\n")
print(faults)
"""

FLOOD = """
with open("output.txt", "wb", buffering=0) as file:
    while True:
        file.write(b"held\\n" * 100_000)
"""

# A file that claims a size far beyond what it holds.
SPARSE = """
import os
open("output.txt", "w").close()
for size in (1 << 40, (4 << 20) + 2):
    try:
        os.truncate("output.txt", size)
        os._exit(1)
    except OSError:
        pass
with open("output.txt", "w") as file:
    file.write("held\\n")
"""
SPARSE_IN_C = b"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
    signal(SIGXFSZ, SIG_IGN);
    int fd = open("output.txt", O_CREAT | O_RDWR, 0600);
    if (ftruncate(fd, 1LL << 40) == 0 || fallocate(fd, 0, 0, 1LL << 40) == 0) return 1;
    if (ftruncate(fd, 4 << 20) != 0 || pwrite(fd, "held\\n", 5, 0) != 5) return 2;
    return 0;
}
"""

CASES = [
    *in_pythons("output_links", LINKS, *LINKED, **FILES),
    *in_pythons("output_left_over", LEFT, Run(b"leave"), Run(b"look", Verdict.WRONG_ANSWER), **FILES),
    *in_pythons("output_too_late", LATE, Run(verdict=Verdict.WRONG_ANSWER), **FILES),
    *in_pythons("input_changed", CHANGED_INPUT, Run(b"true input\n"), Run(b"true too\n"), **FILES),
    *in_pythons("output_file_flood", FLOOD, Run(verdict=Verdict.OUTPUT_LIMIT), **FILES),
    *in_pythons("output_file_sparse", SPARSE, Run(), **FILES),
    # Sparse up to the limit is allowed, and a plain wrong answer: what follows the word is 4 MiB of NUL.
    Case("output_file_sparse", "c", SPARSE_IN_C, (Run(verdict=Verdict.WRONG_ANSWER, exit_code=0),), **FILES),  # type: ignore[arg-type]
]
