"""One test of a submission, from what its run is given to what came of it.

The seam between the judge's loop, which is the same for every problem, and the kinds of problems: how a test's run is
asked for, or a test of several runs driven, and how its end is read. Knows nothing of pressure or repeats.
"""

from __future__ import annotations

import os
import signal
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Protocol

from sandbox.checkers.base import CheckerOutcome
from sandbox.checking import Checking
from sandbox.jury import most_taken_bytes
from sandbox.languages import Language
from sandbox.problem import Limits, Problem, Test
from sandbox.program import Program
from sandbox.run import Output, RunRecord, RunRequest
from sandbox.starting import program_request
from sandbox.stdin import Stdin
from sandbox.verdicts import Verdict, decide


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one test came to."""

    verdict: Verdict
    message: str = ""
    """For people; holds nothing of the test's data. Empty where the kernel's account says it all."""
    checker_message: str = ""
    """May quote the test's data."""
    score: float | None = None
    provoked: bool = False
    """As of `CheckerOutcome`."""
    by_clock: bool = False
    """As of `TestResult`."""

    @classmethod
    def of(cls, said: CheckerOutcome) -> Outcome:
        """What a checker said."""
        return cls(said.verdict, checker_message=said.message, score=said.score, provoked=said.provoked)

    def on(self, test: Test, output: Output) -> Outcome:
        """As it holds for a program's output: a checker that failed on more than it could be expected to take, and on
        nothing else, has found a program over its output limit."""
        if not self.provoked or len(output) <= (most_bytes := most_taken_bytes(test)):
            return self
        wrote = f"wrote more than {most_bytes / 2**20:.4g} MiB, which the checker could not take"
        return Outcome(Verdict.OUTPUT_LIMIT, wrote, self.checker_message)


class Trial(Protocol):
    """One test about to be run. Close it to free its descriptors."""

    @property
    def request(self) -> RunRequest: ...

    def verdict(self, record: RunRecord) -> Verdict | None:
        """The run's failure, or None where it was clean, so that `outcome` has the last word."""
        ...

    def outcome(self, record: RunRecord, verdict: Verdict | None) -> Outcome:
        """What the test came to, given `verdict`'s answer."""
        ...

    def judged(self, record: RunRecord) -> Output | None:
        """What the checker looks at, where that is not stdout; None also where nothing was left for it."""
        ...

    def close(self) -> None: ...


class DrivenTrial(ABC):
    """A test that is more than one run of one program: it drives the runs itself. Close it as any trial."""

    @abstractmethod
    def run(self, program: Program, cancel_fd: int | None) -> RunRecord:
        """All of it; the record is that of the program's last run, with the most that any of them used.

        `program` is the submission's; its cell is to be asked for before each run. Raises GraderFault, Cancelled.
        """

    @abstractmethod
    def verdict(self, record: RunRecord) -> Verdict | None:
        """As `Trial.verdict`."""

    @abstractmethod
    def outcome(self, record: RunRecord, verdict: Verdict | None) -> Outcome:
        """As `Trial.outcome`."""

    def judged(self, record: RunRecord) -> Output | None:
        """As `Trial.judged`."""
        return None

    @abstractmethod
    def close(self) -> None: ...


class Trials(Protocol):
    """The trials of one submission."""

    @property
    def zygote_argv(self) -> tuple[str, ...]:
        """What a zygote must know beside the source to be ready for these trials."""
        ...

    def trial(self, test: Test) -> Trial | DrivenTrial:
        """Raises OSError where this host refuses a descriptor."""
        ...


@dataclass(frozen=True, slots=True)
class StdioTrials:
    """Input on stdin or in a file, an answer on stdout or in a file.

    An input file is a link to the same sealed memory that stdin would be; an output file is taken from the scratch
    disk once nothing of the program is alive.
    """

    problem: Problem
    language: Language
    limits: Limits
    checking: Checking
    zygote_argv: tuple[str, ...] = ()
    no_input: Stdin = field(default_factory=lambda: Stdin(b""))

    def trial(self, test: Test) -> Trial:
        input_file, output_file = self.problem.input_file, self.problem.output_file
        stdin = test.stdin if input_file is None else self.no_input
        request = program_request(self.language, stdin.open(), self.limits)
        if output_file is not None:
            request = replace(request, collect=(output_file,))
        if input_file is not None:
            try:
                request = replace(request, extra_fds=(test.stdin.open(),), links={input_file: 0})
            except OSError:
                os.close(request.stdin_fd)
                raise
        return StdioTrial(self.problem, test, request, self.checking)


@dataclass(frozen=True, slots=True)
class StdioTrial:
    problem: Problem
    test: Test
    request: RunRequest
    checking: Checking

    def verdict(self, record: RunRecord) -> Verdict | None:
        return decide(record.evidence, ignore_exit_code=self.problem.ignore_exit_code)

    def outcome(self, record: RunRecord, verdict: Verdict | None) -> Outcome:
        if verdict is not None:
            return Outcome(verdict)
        output = record.stdout if self.problem.output_file is None else self.judged(record)
        if output is None:
            return Outcome(Verdict.WRONG_ANSWER, f"left no plain, readable file {self.problem.output_file}")
        return Outcome.of(self.checking.check(self.test, output)).on(self.test, output)

    def judged(self, record: RunRecord) -> Output | None:
        name = self.problem.output_file
        return None if name is None else record.collected.get(name)

    def close(self) -> None:
        for fd in (self.request.stdin_fd, *self.request.extra_fds):
            os.close(fd)


def failure_message(verdict: Verdict, record: RunRecord) -> str:
    """One sentence on a failed run, from the kernel's account alone."""
    limits = record.limits
    match verdict:
        case Verdict.MEMORY_LIMIT:
            return f"needed more than {limits.memory_bytes / 2**20:g} MiB"
        case Verdict.TIME_LIMIT:
            return f"used more than {limits.cpu_s:g} s of CPU time"
        case Verdict.IDLE:
            return f"used {record.cpu_s:.3g} s of CPU time and had not ended after {limits.effective_wall_s:g} s"
        case Verdict.OUTPUT_LIMIT:
            return f"wrote more than {limits.output_bytes / 2**20:g} MiB"
        case Verdict.RUNTIME_ERROR if record.evidence.signal is not None:
            return f"died of {_signal_name(record.evidence.signal)}"
        case Verdict.RUNTIME_ERROR:
            return f"exited with status {record.evidence.exit_code}"
    return ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
