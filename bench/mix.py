"""Programs of every sort, and the verdicts that each of them may get: right, wrong, too slow, crashing, hostile.

All read two numbers and have their sum to print.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trivial import SOURCES

MEMORY_BOMB = "x = []\nwhile True:\n    x.append(bytearray(1 << 20))\n"
SPIN = "int main() { for (volatile int i = 0;; i = 0); }\n"
FLOOD = "while True:\n    print('x' * 65536)\n"
SLEEPER = "import time\ntime.sleep(1000)\n"
FORK_BOMB = """import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
ORPHAN = """import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
os.wait()
print(sum(map(int, input().split())))
"""
LITTER = """import os
for directory in ("/tmp", "/box"):
    for number in range(50):
        os.makedirs(f"{directory}/{number}/inner", exist_ok=True)
        open(f"{directory}/{number}/file", "w").write("x" * 1000)
print(sum(map(int, input().split())))
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A program of the mix."""

    name: str
    language: str
    source: str
    verdicts: tuple[str, ...]
    """Any of these is right."""
    limits: tuple[tuple[str, float | int], ...] = ()
    share: int = 1
    """How often it comes in each round of the mix."""
    is_new: bool = True
    """Whether each time it is another text, with a number in a comment: compiled anew, where it is compiled at all."""

    def text(self, number: int) -> str:
        comment = "//" if self.language == "cpp" else "#"
        return f"{self.source}{comment} {number}\n" if self.is_new else self.source

    def request(self, problem_id: str, number: int) -> dict[str, Any]:
        """A GradeRequest; `number` tells it from the others."""
        return {
            "problem": problem_id,
            "language": self.language,
            "source": self.text(number),
            "limits": dict(self.limits),
            "stop": "first_failure",
        }


_SHORT = (("cpu_s", 0.1),)

#: What takes long is rare, so that tens of thousands of grades take no more than minutes of two cores.
MIX = (
    Entry("right", "python", SOURCES["python"], ("accepted",), share=16),
    Entry("right", "cpp", SOURCES["cpp"], ("accepted",), share=12, is_new=False),
    Entry(
        "right, compiled anew",
        "cpp",
        '#include <cstdio>\nint main() { long a, b; scanf("%ld %ld", &a, &b); printf("%ld\\n", a + b); }\n',
        ("accepted",),
    ),
    Entry("right, own interpreter", "python-exec", SOURCES["python"], ("accepted",)),
    Entry("wrong", "python", "print(0)\n", ("wrong_answer",), share=14),
    Entry("wrong", "cpp", '#include <cstdio>\nint main() { puts("0"); }\n', ("wrong_answer",), share=10, is_new=False),
    Entry("too slow", "python", "while True:\n    pass\n", ("time_limit",), _SHORT),
    Entry("too slow", "cpp", SPIN, ("time_limit",), _SHORT, is_new=False),
    Entry("sleeps", "python", SLEEPER, ("idle",), (("wall_s", 0.2),)),
    Entry("crashes", "python", "raise ValueError\n", ("runtime_error",), share=8),
    Entry("crashes", "cpp", "#include <cstdlib>\nint main() { std::abort(); }\n", ("runtime_error",), is_new=False),
    Entry("does not compile", "python", "print((\n", ("compile_error",), share=8),
    Entry("does not compile", "cpp", "int main() { return x; }\n", ("compile_error",), is_new=False),
    Entry("takes all memory", "python", MEMORY_BOMB, ("memory_limit",), (("memory_mb", 32),)),
    Entry("floods stdout", "python", FLOOD, ("output_limit",), (("output_mb", 1),)),
    Entry("fork bomb", "python", FORK_BOMB, ("time_limit",), (*_SHORT, ("processes", 16))),
    Entry("leaves a process", "python", ORPHAN, ("accepted",)),
    Entry("leaves files", "python", LITTER, ("accepted",)),
)


def spread(mix: Sequence[Entry] = MIX) -> list[Entry]:
    """One round of the mix, in which neither what is frequent nor what is rare comes in a row."""
    # Multiples of the golden ratio, less their whole parts, lie evenly wherever one stops.
    places = [
        ((turn + place * 0.618034 % 1) / entry.share, entry)
        for place, entry in enumerate(mix)
        for turn in range(entry.share)
    ]
    return [entry for _, entry in sorted(places, key=lambda place: place[0])]
