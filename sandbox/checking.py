"""What the judge asks about the output of a clean run: the problem's checker, be it a text comparison or a program.

A checker that is a program runs once a test, in a cell of its own, under limits of its own. It gets the test's input,
the output and the answer as descriptors, read-only, never as copies or arguments. A fault of it is looked into once
more in a new cell, and is then `checker_error`. Knows nothing of how the submission was run.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass, replace
from typing import Protocol

from sandbox.checkers import programs
from sandbox.checkers.base import Checker, CheckerOutcome, CheckerProgram
from sandbox.checkers.programs import MESSAGE_BYTES, CheckerRun, Places
from sandbox.config import SandboxConfig
from sandbox.jury import Jury, Workshop
from sandbox.problem import Limits, Test
from sandbox.run import FIRST_EXTRA_FD, Output, RunRecord
from sandbox.stdin import Stdin
from sandbox.verdicts import Verdict

#: Half of what the ICPC package format gives a validator.
MEMORY_BYTES = 2**30

#: How large each file that a checker writes may be, feedback too, beyond the size of the output it looks at: one that
#: quotes a huge token is not at fault, or whoever prints one could choose to have no reward rather than a bad one.
OUTPUT_BYTES = 2**20

#: Where a checker finds what it is given: three descriptors, in the order of `extra_fds`.
_PLACES = Places(
    input=f"/dev/fd/{FIRST_EXTRA_FD}",
    output=f"/dev/fd/{FIRST_EXTRA_FD + 1}",
    answer=f"/dev/fd/{FIRST_EXTRA_FD + 2}",
    feedback=f"/box/{programs.FEEDBACK}/",
)


class Checking(Protocol):
    """The checker of one submission's problem. `close` it."""

    def prepare(self) -> None:
        """Raises CheckerRefused where the checker is of no use, GraderFault, Cancelled."""
        ...

    def check(self, test: Test, output: Output) -> CheckerOutcome:
        """What the checker says of the output. Raises GraderFault, Cancelled."""
        ...

    def close(self) -> None: ...


def checking(checker: Checker | CheckerProgram, workshop: Workshop, cancel_fd: int | None) -> Checking:
    """Raises CheckerRefused."""
    if isinstance(checker, CheckerProgram):
        return ProgramChecking(checker, workshop, cancel_fd)
    return TextChecking(checker)


@dataclass(frozen=True, slots=True)
class TextChecking:
    checker: Checker

    def prepare(self) -> None:
        """A text comparison is ready as it is."""

    def check(self, test: Test, output: Output) -> CheckerOutcome:
        with output.view() as text:
            return self.checker.check(text, test.expected)

    def close(self) -> None:
        """It holds nothing."""


class ProgramChecking:
    def __init__(self, checker: CheckerProgram, workshop: Workshop, cancel_fd: int | None) -> None:
        """Raises CheckerRefused."""
        self._protocol = checker.protocol
        self._rules = programs.RULES[checker.protocol]
        self._flags = checker.flags
        self._scoring = checker.scoring
        self._jury = Jury(checker.program, workshop, limits(workshop.config), cancel_fd)
        self._nothing = Stdin(b"")
        self._given_up: CheckerOutcome | None = None

    def prepare(self) -> None:
        self._jury.prepare()

    def check(self, test: Test, output: Output) -> CheckerOutcome:
        if self._given_up is not None:
            return self._given_up
        outcome, out_of_time = self._once(test, output)
        if outcome.verdict is Verdict.CHECKER_ERROR:
            self._jury.drop_cell()
            outcome, out_of_time = self._once(test, output)
        if outcome.verdict is Verdict.CHECKER_ERROR and out_of_time:
            # There is no reward to be had any more, and hundreds of tests could keep the judge for hours.
            self._given_up = CheckerOutcome(
                Verdict.CHECKER_ERROR, f"not asked: on test {test.index} {outcome.message}, twice"
            )
        return outcome

    def close(self) -> None:
        self._jury.close()

    def _once(self, test: Test, output: Output) -> tuple[CheckerOutcome, bool]:
        """What one run of the checker says, and whether it ran out of time."""
        with contextlib.ExitStack() as stack:

            def opened(fd: int) -> int:
                stack.callback(os.close, fd)
                return fd

            given, answer = opened(test.stdin.open()), opened(Stdin(test.expected).open())
            written = opened(read_only(output))
            stdin = opened(read_only(output) if self._rules.output_on_stdin else self._nothing.open())
            request = self._jury.request(stdin, (*self._rules.arguments(_PLACES), *self._flags))
            limits = replace(request.limits, output_bytes=OUTPUT_BYTES + len(output))
            request = replace(
                request,
                limits=limits,
                extra_fds=(given, written, answer),
                directories=self._rules.directories,
                collect=self._rules.collect,
            )
            record = self._jury.run(request)
        try:
            outcome = programs.outcome(self._protocol, _account(record, limits), self._scoring)
            return outcome, record.evidence.over_cpu or record.evidence.over_wall
        finally:
            record.close()


def limits(config: SandboxConfig) -> Limits:
    """Of each run of a checker."""
    return Limits(cpu_s=config.checker_cpu_s, memory_bytes=MEMORY_BYTES, output_bytes=OUTPUT_BYTES, processes=64)


def read_only(output: Output) -> int:
    """A new descriptor of the output at offset 0, through which, and by whose path, nothing can be written."""
    os.fchmod(output.fd, stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    return os.open(f"/proc/self/fd/{output.fd}", os.O_RDONLY | os.O_CLOEXEC)


def _account(record: RunRecord, limits: Limits) -> CheckerRun:
    return CheckerRun(
        record.evidence,
        limits,
        record.stdout.head(MESSAGE_BYTES),
        record.stderr.head(MESSAGE_BYTES),
        {name: output.head(MESSAGE_BYTES) for name, output in record.collected.items()},
    )
