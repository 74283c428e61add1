"""What Python programs rely on, and what they do to their interpreter: both ways to run Python must agree.

Every program was held against a bare `python3 main.py` of Debian 12, which ends as its row says.
"""

from __future__ import annotations

from collections.abc import Iterator

from sandbox.problem import Limits
from sandbox.verdicts import Verdict
from tests.hostile.case import MB, Case, Run, in_pythons, program

INPUT = b"3\n1 2 3\nrest\nof it\n"
LIMITS = Limits(cpu_s=5.0, wall_s=20.0, memory_bytes=128 * MB, output_bytes=MB)


def sections(name: str) -> Iterator[tuple[list[str], str]]:
    """Programs of a file that holds many: the words of each heading, and the text below it."""
    for section in program(name).decode().split("=== ")[1:]:
        heading, _, source = section.partition("\n")
        yield heading.split(), source


CASES: list[Case] = []
# Print "held" and exit with 0.
for (_name,), _source in sections("python_fine.txt"):
    CASES += in_pythons(f"fine_{_name}", _source, Run(INPUT), limits=LIMITS)
# Print the right answer, and fail all the same: with the exit status in the heading.
for (_name, _code), _source in sections("python_failing.txt"):
    run = Run(INPUT, Verdict.RUNTIME_ERROR, exit_code=int(_code))
    CASES += in_pythons(f"failing_{_name}", _source, run, limits=LIMITS)
# Print the right answer, and die of the signal in the heading.
for (_name, _signal), _source in sections("python_dying.txt"):
    run = Run(INPUT, Verdict.RUNTIME_ERROR, signal=int(_signal))
    CASES += in_pythons(f"dying_{_name}", _source, run, limits=LIMITS)
# End well, but the answer never came out, or came too late.
for (_name,), _source in sections("python_silent.txt"):
    CASES += in_pythons(f"silent_{_name}", _source, Run(INPUT, Verdict.WRONG_ANSWER), limits=LIMITS)
