"""What the judge asks about the output of a clean run: the problem's checker, be it a text comparison or a program.

A checker that is a program runs once a test, in a cell of its own, under limits of its own. It gets the test's input,
the output and the answer as descriptors, read-only, never as copies or arguments. A fault of it is looked into once
more in a new cell, and is then `checker_error`; the checker is then asked about the expected answer in the output's
place, which tells a broken checker from one that this output broke (`provoked`). Where the answer is blank, as where a
test's input says all that a checker needs, it is no output that a checker would have to stand: others are tried then.
Knows nothing of how the submission was run.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from sandbox.checkers import programs
from sandbox.checkers.base import Checker, CheckerOutcome, CheckerProgram
from sandbox.checkers.programs import MESSAGE_BYTES, CheckerRun, Places
from sandbox.config import SandboxConfig
from sandbox.jury import Jury, most_taken_bytes
from sandbox.problem import Limits, Test
from sandbox.program import Workshop
from sandbox.run import FIRST_EXTRA_FD, Output, RunRecord
from sandbox.stdin import Stdin
from sandbox.verdicts import Verdict

#: Half of what the ICPC package format gives a validator.
MEMORY_BYTES = 2**30

#: How large each file that a checker writes may be, feedback too, beyond the size of the output it looks at: one that
#: quotes a huge token is not at fault, or whoever prints one could choose to have no reward rather than a bad one.
OUTPUT_BYTES = 2**20

#: How many files a checker may leave in its feedback folder, fewer than a warden hands out at once; and how large they
#: may be together, in what each of them may be: some quote the output in a message for each of several readers.
MOST_FEEDBACK_FILES = 32
MOST_FEEDBACK_SHARES = 4

#: What programs print where nothing is known of what they should: a number, several, a word.
_PLAUSIBLE = (b"1\n", b"1 1\n1 1\n", b"YES\n")

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
        self._given_up: dict[bool, CheckerOutcome] = {}
        """What is not asked any more: whether of outputs larger than a checker is expected to take, or of others."""

    def prepare(self) -> None:
        self._jury.prepare()

    def check(self, test: Test, output: Output) -> CheckerOutcome:
        large = len(output) > most_taken_bytes(test)
        if large in self._given_up:
            return self._given_up[large]
        outcome, _ = self._once(test, output)
        if outcome.verdict is not Verdict.CHECKER_ERROR:
            return outcome
        self._jury.drop_cell()
        outcome, out_of_time = self._once(test, output)
        if outcome.verdict is not Verdict.CHECKER_ERROR:
            return outcome
        provoked, slow_to_tell = self._takes_another(test)
        outcome = replace(outcome, provoked=provoked)
        if out_of_time or slow_to_tell:
            # There is no reward to be had any more, and hundreds of tests could keep the judge for hours.
            why = f"not asked: on test {test.index} {outcome.message}, twice"
            self._given_up[large] = replace(outcome, message=why)
        return outcome

    def _takes_another(self, test: Test) -> tuple[bool, bool]:
        """Whether the checker is not at fault where it looks at the expected answer, or, if that says nothing, at some
        other output; whether it ran out of time."""
        out_of_time = False
        for other in (test.expected,) if test.expected.strip() else (test.expected, *_PLAUSIBLE):
            with contextlib.closing(Output.new("answer")) as output:
                output.write(other)
                outcome, out_of_time = self._once(test, output)
            if outcome.verdict is not Verdict.CHECKER_ERROR:
                return True, out_of_time
            if out_of_time:
                break
        return False, out_of_time

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
            taken_bytes = min(len(output), most_taken_bytes(test))
            request = self._jury.request(stdin, (*self._rules.arguments(_PLACES), *self._flags), taken_bytes)
            request = replace(
                request,
                limits=replace(request.limits, output_bytes=OUTPUT_BYTES + len(output)),
                extra_fds=(given, written, answer),
                directories=self._rules.directories,
                collect=tuple(f"{folder}/" for folder in self._rules.directories),
            )
            record = self._jury.run(request)
        try:
            outcome = programs.outcome(self._protocol, _account(record), self._scoring)
            if outcome.verdict is not Verdict.CHECKER_ERROR and (fault := _fault_of_feedback(record)):
                outcome = CheckerOutcome(Verdict.CHECKER_ERROR, f"the checker {fault}")
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


def too_much_feedback(files: Mapping[str, Output], most_bytes: int) -> str:
    """What is wrong with the feedback as a whole, each file being within its limit; empty where nothing is."""
    if len(files) > MOST_FEEDBACK_FILES:
        return f"left more than {MOST_FEEDBACK_FILES} feedback files"
    if sum(map(len, files.values())) > most_bytes:
        return f"left more than {most_bytes / 2**20:.4g} MiB of feedback"
    return ""


def _fault_of_feedback(record: RunRecord) -> str:
    if programs.NEXT_PASS in record.collected:
        return "asked for another pass, and the problem has one"
    return too_much_feedback(record.collected, MOST_FEEDBACK_SHARES * record.limits.output_bytes)


def _account(record: RunRecord) -> CheckerRun:
    return CheckerRun(
        record.evidence,
        record.limits,
        record.stdout.head(MESSAGE_BYTES),
        record.stderr.head(MESSAGE_BYTES),
        {name: output.head(MESSAGE_BYTES) for name, output in record.collected.items()},
    )
