"""One test of a submission, from what its run is given to what came of it.

The seam between the judge's loop, which is the same for every problem whose tests are one run of one program each, and
the kinds of problems: how such a run is asked for, and how its end is read. Knows nothing of cells, pressure or
repeats.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Protocol

from sandbox.checking import Checking
from sandbox.languages import Language
from sandbox.problem import Limits, Problem, Test
from sandbox.run import RunRecord, RunRequest
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

    def close(self) -> None: ...


class Trials(Protocol):
    """The trials of one submission."""

    @property
    def zygote_argv(self) -> tuple[str, ...]:
        """What a zygote must know beside the source to be ready for these trials."""
        ...

    def trial(self, test: Test) -> Trial:
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
        name = self.problem.output_file
        if name is not None and name not in record.collected:
            return Outcome(Verdict.WRONG_ANSWER, f"left no plain, readable file {name}")
        checked = self.checking.check(self.test, record.stdout if name is None else record.collected[name])
        return Outcome(checked.verdict, checker_message=checked.message, score=checked.score)

    def close(self) -> None:
        for fd in (self.request.stdin_fd, *self.request.extra_fds):
            os.close(fd)
