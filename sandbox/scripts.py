"""Script problems: a Python program, and test code that runs beside it.

    program's cell                                     tester's cell
      the submission as a module,  ◀── requests ─────   the script, with stand-ins for what it names of the program
      served by `sandbox.jail.served`  ── answers ──▶   (`sandbox.jail.tester`)

Only the tester's word decides, by its exit status from its own cell. The program cannot reach the script's process: it
sees arguments, and answers with plain data or references to objects of its own. CPU time and memory of the program are
its own. Its wall limit (`idle`) is that of the pair, put off by what the tester computes; once the tester has ended, so
has the run.

A tester that runs into a limit of its own does so on what the program gave it, if that has answered anything or is
being read, and the test is then failed: no program can choose `checker_error` over a bad reward. Else the script is at
fault. Twice at a limit, and no further test of the submission is run: hundreds of tests could keep the judge for hours.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import os
from dataclasses import dataclass, replace

from sandbox.calls import LANGUAGES
from sandbox.cell import Cell
from sandbox.checkers.base import CheckerOutcome
from sandbox.errors import HostOutOfMemory, UnknownLanguage
from sandbox.jail import ends
from sandbox.languages import Language
from sandbox.languages.python import PYTHON
from sandbox.problem import Limits, Script, Test
from sandbox.program import Program, Workshop
from sandbox.run import Action, Output, RunRecord, RunRequest
from sandbox.starting import program_request
from sandbox.trials import DrivenTrial, Outcome
from sandbox.verdicts import Verdict, decide
from sandbox.watching import wait_for

#: Room for a hundred times what the program may send it, as that becomes objects.
MEMORY_BYTES = 2 * 2**30

OUTPUT_BYTES = 2**20

REPORT_BYTES = 32 * 1024

#: How often testers may run into limits of their own for one submission.
MOST_RUN_OUT = 2

#: For starting the tester, beyond all that its wall limit is made of.
START_S = 10.0

_IN_JAIL = 'import sys; sys.path[0] = "/rkgrade"; import {0}; {0}.main({1})'

_EXCEPTIONS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
)

_RUN_OUT = "the test ran into its own limits on what the program gave it"


class Bench:
    """The tester's cell at the service of one submission. `close` it.

    Stands where other problems have their checker; nothing is left to be checked once a script has run.
    """

    def __init__(self, workshop: Workshop) -> None:
        self._cells = workshop.cells
        self._cell: Cell | None = None
        self.cpu_s = workshop.config.checker_cpu_s
        self.given_up: Outcome | None = None
        """What every further test comes to, where none is run any more."""
        self._run_out = 0

    def ran_out(self, outcome: Outcome) -> None:
        """A tester has run into a limit of its own; `outcome` is what that came to."""
        self._run_out += 1
        if self._run_out == MOST_RUN_OUT:
            self.given_up = replace(outcome, message=f"not run: {outcome.message or outcome.checker_message}, twice")

    def prepare(self) -> None:
        """A script is looked at when it runs."""

    def check(self, test: Test, output: Output) -> CheckerOutcome:
        raise AssertionError("a script's word is the last")

    def cell(self) -> Cell:
        """Raises GraderFault."""
        if self._cell is None or not self._cell.usable:
            self.drop_cell()
            self._cell = self._cells.take_cell()
        return self._cell

    def drop_cell(self) -> None:
        if self._cell is not None:
            self._cells.give_back(self._cell)
            self._cell = None

    def close(self) -> None:
        self.drop_cell()


@dataclass(frozen=True, slots=True)
class ScriptTrials:
    script: Script
    language: Language
    limits: Limits
    bench: Bench
    zygote_argv: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises UnknownLanguage where the language has no modules to serve."""
        if self.language.id not in LANGUAGES:
            raise UnknownLanguage(f"script problems are for {', '.join(LANGUAGES)}, not for {self.language.id}")

    def trial(self, test: Test) -> DrivenTrial:
        return ScriptTrial(self, test)


class ScriptTrial(DrivenTrial):
    def __init__(self, trials: ScriptTrials, test: Test) -> None:
        self._script = trials.script
        self._language = trials.language
        self._limits = trials.limits
        self._bench = trials.bench
        self._test = test
        self._outcome = Outcome(Verdict.INTERNAL_ERROR)

    def run(self, program: Program, cancel_fd: int | None) -> RunRecord:
        record, self._outcome = self._once(program, cancel_fd)
        if self._outcome.verdict is Verdict.CHECKER_ERROR:
            record.close()
            self._bench.drop_cell()
            record, self._outcome = self._once(program, cancel_fd)
        return record

    def verdict(self, record: RunRecord) -> Verdict | None:
        return None if self._outcome.verdict is Verdict.ACCEPTED else self._outcome.verdict

    def outcome(self, record: RunRecord, verdict: Verdict | None) -> Outcome:
        return self._outcome

    def close(self) -> None:
        """It holds nothing between runs."""

    def _once(self, program: Program, cancel_fd: int | None) -> tuple[RunRecord, Outcome]:
        cell, own_cell = program.cell(), self._bench.cell()
        with contextlib.ExitStack() as stack:
            report = Output.new("report")
            stack.callback(report.close)
            nothing = [_kept(stack, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)) for _ in range(2)]
            script = _kept(stack, self._test.stdin.open())
            with contextlib.ExitStack() as pipes:
                requests, asks = (_kept(pipes, fd) for fd in os.pipe())
                answers, says = (_kept(pipes, fd) for fd in os.pipe())
                testing = own_cell.start(self._tester(nothing[0], (script, answers, asks, report.fd), report))
                try:
                    serving = cell.start(self._program(nothing[1], (requests, says)))
                except BaseException:
                    testing.abandon()
                    raise
            serving.leader = testing
            record, other = wait_for([serving, testing], cancel_fd)
            try:
                return record, self._settled(record, other, report)
            except BaseException:
                record.close()
                raise
            finally:
                other.close()

    def _program(self, stdin_fd: int, fds: tuple[int, ...]) -> RunRequest:
        request = program_request(self._language, stdin_fd, self._limits)
        return replace(request, action=Action.EXEC, argv=(PYTHON, "-c", _IN_JAIL.format("served", "")), extra_fds=fds)

    def _tester(self, stdin_fd: int, fds: tuple[int, ...], report: Output) -> RunRequest:
        arguments = f"{self._script.runner!r}, {self._script.entry_point!r}"
        wall_s = self._limits.effective_wall_s + self._bench.cpu_s + START_S
        limits = Limits(self._bench.cpu_s, wall_s, MEMORY_BYTES, OUTPUT_BYTES)
        return RunRequest(
            Action.EXEC,
            stdin_fd,
            limits,
            (PYTHON, "-c", _IN_JAIL.format("tester", arguments)),
            extra_fds=fds,
            output_fds=(report.fd,),
        )

    def _settled(self, record: RunRecord, other: RunRecord, report: Output) -> Outcome:
        """The program's limits first, then the tester's word. Raises HostOutOfMemory."""
        limit = decide(replace(record.evidence, exit_code=0, signal=None), ignore_exit_code=True)
        if limit is not None:
            return Outcome(limit)
        if other.killed_by_host:
            raise HostOutOfMemory("this host ran out of memory")
        answered, public, detail = _words(report)
        failure = decide(other.evidence, ignore_exit_code=True)
        if failure is not None:
            said = f"the test script came to {failure.value}"
            outcome = Outcome(Verdict.CHECKER_ERROR, checker_message=said, provoked=answered)
            if failure is not Verdict.RUNTIME_ERROR:
                outcome = Outcome(Verdict.WRONG_ANSWER, _RUN_OUT, by_clock=True) if answered else outcome
                self._bench.ran_out(outcome)
            return outcome
        match other.evidence.exit_code:
            case ends.PASSED:
                return Outcome(Verdict.ACCEPTED)
            case ends.FAILED:
                return Outcome(Verdict.WRONG_ANSWER, public, detail)
            case ends.RAISED:
                named = public if public.removeprefix("raised ") in _EXCEPTIONS else "raised an exception"
                return Outcome(Verdict.RUNTIME_ERROR, named, detail)
            case ends.MISSING:
                return Outcome(Verdict.RUNTIME_ERROR, public, detail)
            case ends.LOST:
                # Its own exit status says more, where it is one of failure.
                failed = record.evidence.signal is not None or record.evidence.exit_code not in (0, None)
                return Outcome(Verdict.RUNTIME_ERROR, "" if failed else "ended before the test did")
            case ends.OUTSIDE:
                return Outcome(Verdict.RUNTIME_ERROR, "answered outside the protocol", detail)
            case ends.FLOOD:
                sent = ends.MAX_BYTES // 2**20
                return Outcome(Verdict.OUTPUT_LIMIT, f"gave the test more than {sent} MiB")
            case ends.BROKEN:
                return Outcome(Verdict.CHECKER_ERROR, public, detail, provoked=answered)
            case status:
                said = f"the test script exited with status {status}"
                return Outcome(Verdict.CHECKER_ERROR, checker_message=said, provoked=answered)


def _words(report: Output) -> tuple[bool, str, str]:
    """Whether the program has answered anything, or what it said was being read; what may be told, and what may quote
    the test."""
    text = report.head(REPORT_BYTES)
    try:
        words = json.loads(text)
        return text[:1] == b"\n", _text(words["public"]), _text(words["detail"])
    except (ValueError, KeyError, TypeError):
        return text[:1] == b"\n", "", ""


def _text(words: object) -> str:
    """What a result can be made of: half a surrogate pair, as a program may put into an exception, is no text."""
    return str(words).encode("utf-8", "replace").decode()


def _kept(stack: contextlib.ExitStack, fd: int) -> int:
    stack.callback(os.close, fd)
    return fd
