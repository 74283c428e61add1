"""What a program is graded against, as plain frozen values.

The sandbox's own view of a problem and of a submission: no wire format, no rewards. `service.grading` translates
from the wire contract; `rkgrade grade` builds these from a Kattis package through the same path.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sandbox.checkers.base import Checker, CheckerProgram
from sandbox.stdin import Stdin
from sandbox.verdicts import Verdict


class Stop(enum.StrEnum):
    """When the judge stops running further tests."""

    NEVER = "never"
    FIRST_FAILURE = "first_failure"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run. CPU time decides; wall time only ends sleepers."""

    cpu_s: float = 2.0
    wall_s: float | None = None
    """None means twice the CPU limit plus one second."""
    memory_bytes: int = 256 * 2**20
    output_bytes: int = 64 * 2**20
    """For stdout and for stderr, each."""
    processes: int = 64
    """Processes and threads together, alive at once."""

    @property
    def effective_wall_s(self) -> float:
        return 2 * self.cpu_s + 1 if self.wall_s is None else self.wall_s


@dataclass(frozen=True, slots=True)
class Test:
    """One input with what is expected of it."""

    index: int
    """Position in the problem as it was sent."""
    name: str | None
    input_length: int
    """In the unit the request asked for; decides the order of running."""
    stdin: Stdin
    expected: bytes


@dataclass(frozen=True, slots=True)
class Call:
    """How a program is called, where it is not run as a whole.

    A test's `stdin` is then no stdin but the arguments, a JSON array, and `expected` the JSON of the expected value,
    both without white space and with nothing escaped that may stand as it is; the problem's checker compares these.
    """

    function: str
    """"name", or "Class.method" of an instance made without arguments."""
    prelude: str
    """What the program finds imported: "none", "lcb" or "leetcode"."""


@dataclass(frozen=True, slots=True)
class Script:
    """That a test is Python code which runs beside the program and decides; a test's `stdin` is then that code."""

    runner: str
    """"exec", as a script, or "pytest", as a suite."""
    entry_point: str
    """The function that a script's `check` is given; empty where it names none."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """That the problem's checker talks with the program, as an interactor, rather than looking at what it wrote."""

    checker: CheckerProgram | None = None
    """Looks at what a testlib interactor left behind; None where the interactor's word is the last."""


@dataclass(frozen=True, slots=True)
class Problem:
    tests: tuple[Test, ...]
    checker: Checker | CheckerProgram
    ignore_exit_code: bool = False
    call: Call | None = None
    """None where the program is run as a whole."""
    script: Script | None = None
    """None where no test code runs; the checker is not asked then."""
    input_file: str | None = None
    """Name of the file that holds the input, one path component; stdin is empty then."""
    output_file: str | None = None
    """Name of the file that is checked in place of stdout, one path component."""
    dialogue: Dialogue | None = None
    """None where the program runs alone."""
    passes: int = 1
    """How often a Kattis validator may have the program run on one test, each time on an input of its making."""


@dataclass(frozen=True, slots=True)
class Submission:
    problem: Problem
    language: str
    source: bytes | Mapping[str, bytes]
    """One file, or several by their names."""
    limits: Limits = Limits()
    stop: Stop = Stop.NEVER
    compile_cpu_s: float | None = None
    """CPU time that a compiler has; None for what it usually has."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """What one test came to, with the figures behind it. Figures are None where the test did not run."""

    index: int
    name: str | None
    input_length: int
    verdict: Verdict
    cpu_s: float | None = None
    wall_s: float | None = None
    memory_bytes: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    score: float | None = None
    message: str = ""
    """For people; holds nothing of the test's data unless it came from the checker."""
    checker_message: str = ""
    """What the checker said; may quote the test's data."""
    provoked: bool = False
    """Of a `checker_error`: the jury's program failed on what this program gave it, and not on what is right."""
    by_clock: bool = False
    """A limit in time of somebody else's than the program decided, as that of test code on what the program gave it."""
    reruns: int = 0
    stdout_tail: bytes = b""
    stderr_tail: bytes = b""
    output_tail: bytes | None = None
    """Of what the checker looked at, where that is not stdout: the output file, or what a called function returned."""


@dataclass(frozen=True, slots=True)
class CompileResult:
    ok: bool
    cpu_s: float
    cached: bool
    message: str
    at_limit: bool = False
    """A limit ended the compiler: another time it may come to something else."""
    timed_out: bool = False
    """That limit was one on time."""
    shared: bool = False
    """Of a cached one: it came from the store that hosts share."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judge's whole word on one submission. Where `compile.ok` is false, `tests` is empty."""

    compile: CompileResult | None
    tests: tuple[TestResult, ...]
    """In the problem's own order."""
    limits: Limits
    """Those that the tests were run under."""
    language_version: str
    secure: bool
    compile_s: float
    """Wall seconds spent on compiling, cache look-up included."""
    run_s: float
    """Wall seconds spent on the tests."""


OnTest = Callable[[TestResult], None]
