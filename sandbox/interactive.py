"""Interactive problems, and Kattis problems of several passes: tests that are more than one run of one program.

    program's cell                            interactor's cell
      stdin  <─────────── pipe ───────────────  stdout           its own files: input, answer, feedback or tout
      stdout ──────────── pipe ──────────────▶  stdin

Both cells are this judge's, on its core; the judge closes its copies of the pipes' ends as soon as both programs run,
so that each sees when the other has gone. All but one: an interactor must not die of SIGPIPE over last words that the
program did not wait for, so what is still said to a program that has ended is read, up to a bound, and forgotten.

Limits are each program's own: what the interactor computes is no part of the submission's time. The submission's wall
limit is that of the pair, which ends a deadlock in `idle`; the interactor may then still compute for as long as its own
CPU limit lets it. How the two ends make a verdict is `sandbox.conversation`; the jury's side is `sandbox.referee`.

A Kattis validator may ask for another pass (`nextpass.in` beside its 42): the program is then run anew on that input,
and the validator finds its feedback folder as it left it. Each pass has a new cell: what one knows may be what the next
is not to be told, and a cell remembers more than files, such as how many inodes were made on its scratch disks.

What goes wrong on the interactor's side is looked into once more from the first pass on, in a new cell. What the
program says is then counted on its way, and its end is kept back until the interactor waits for more: what that does
afterwards it does over the end. What goes wrong again is `checker_error`.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace

from sandbox.cell import Cell
from sandbox.checkers.programs import MESSAGE_BYTES, NEXT_PASS
from sandbox.checking import read_only
from sandbox.conversation import (
    First,
    InteractorEnd,
    ProgramEnd,
    lost_program,
    read_past_end,
    settle,
    who_was_first,
    wrote_to_nobody,
)
from sandbox.jury import most_taken_bytes
from sandbox.languages import Language
from sandbox.problem import Limits, Problem, Test
from sandbox.program import Program
from sandbox.pumps import new_pipe, new_pump
from sandbox.referee import TOUT, Feedback, Referee, spun_at_end
from sandbox.run import Output, RunRecord
from sandbox.starting import program_request
from sandbox.stdin import Stdin
from sandbox.trials import DrivenTrial, Outcome, failure_message
from sandbox.verdicts import Verdict, decide
from sandbox.watching import ActiveRun, wait_for

#: What an interactor may still say to a program that has gone, before it is taken for one that never stops.
MOST_LAST_WORDS_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class RefereedTrials:
    """Tests of an interactive problem, or of one with several passes."""

    problem: Problem
    language: Language
    limits: Limits
    referee: Referee
    zygote_argv: tuple[str, ...] = ()

    def trial(self, test: Test) -> DrivenTrial:
        return RefereedTrial(self, test)


@dataclass(frozen=True, slots=True)
class _Pass:
    """What one pass came to."""

    record: RunRecord
    """The program's."""
    outcome: Outcome
    next_input: Stdin | None = None
    out_of_time: bool = False
    """Whether the interactor or validator was."""
    spun_at_end: bool = False
    """Whether it was so over the program's end."""


class RefereedTrial(DrivenTrial):
    def __init__(self, trials: RefereedTrials, test: Test) -> None:
        self._problem = trials.problem
        self._language = trials.language
        self._limits = trials.limits
        self._referee = trials.referee
        self._test = test
        self._outcome = Outcome(Verdict.INTERNAL_ERROR)
        self._tout: Output | None = None

    # -- as the judge asks

    def run(self, program: Program, cancel_fd: int | None) -> RunRecord:
        done = self._all_passes(program, cancel_fd)
        if done.outcome.verdict is Verdict.CHECKER_ERROR:
            done.record.close()
            self._referee.jury.drop_cell()
            done = self._all_passes(program, cancel_fd, counted=True)
        self._outcome = done.outcome
        if done.outcome.verdict is Verdict.CHECKER_ERROR:
            try:
                self._outcome = self._attributed(done)
            except BaseException:
                done.record.close()
                raise
        return done.record

    def _attributed(self, done: _Pass) -> Outcome:
        """A fault with who brought it about; and, where it takes long to see it, the end of all asking."""
        referee = self._referee
        outcome = replace(done.outcome, provoked=done.spun_at_end or referee.stands_silence(self._test))
        if self._problem.dialogue is None:
            outcome = outcome.on(self._test, done.record.stdout)
        if done.out_of_time and outcome.verdict is Verdict.CHECKER_ERROR:
            # There is no reward to be had any more, and hundreds of tests could keep the judge for hours.
            why = f"not asked: on test {self._test.index} {outcome.checker_message}, twice"
            referee.given_up = replace(outcome, message="", checker_message=why)
        return outcome

    def verdict(self, record: RunRecord) -> Verdict | None:
        return None if self._outcome.verdict is Verdict.ACCEPTED else self._outcome.verdict

    def outcome(self, record: RunRecord, verdict: Verdict | None) -> Outcome:
        if verdict is not None or not self._referee.has_checker:
            return self._outcome
        if self._tout is None:
            return Outcome(Verdict.CHECKER_ERROR, f"the interactor accepted and left no {TOUT}")
        return Outcome.of(self._referee.check(self._test, self._tout))

    def close(self) -> None:
        if self._tout is not None:
            self._tout.close()
            self._tout = None

    # -- passes

    def _all_passes(self, program: Program, cancel_fd: int | None, *, counted: bool = False) -> _Pass:
        """The last pass; its record holds the most that any of them used."""
        self.close()
        one_pass = self._validate if self._problem.dialogue is None else self._converse
        given = self._test.stdin
        before: RunRecord | None = None
        with contextlib.closing(Feedback()) as feedback:
            for _ in range(self._problem.passes):
                try:
                    done = one_pass(program.cell(), cancel_fd, given, feedback, counted)
                finally:
                    if self._problem.passes > 1:
                        program.drop_cell()
                    if before is not None:
                        before.close()
                if before is not None:
                    done = replace(done, record=_with_most(done.record, before))
                if done.outcome.verdict is not Verdict.ACCEPTED or done.next_input is None:
                    return done
                given, before = done.next_input, done.record
        most = self._problem.passes
        asked = f"the validator asked for more than {'one pass' if most == 1 else f'{most} passes'}"
        return replace(done, outcome=Outcome(Verdict.CHECKER_ERROR, asked, asked))

    def _converse(self, cell: Cell, cancel_fd: int | None, given: Stdin, feedback: Feedback, counted: bool) -> _Pass:
        """One run of the program beside its interactor; `counted`: what the program says passes through the judge."""
        referee = self._referee
        jury_cell = referee.jury.cell()
        limits = self._limits
        with contextlib.ExitStack() as stack, contextlib.ExitStack() as pipes:
            to_program, from_interactor = new_pipe(pipes)
            to_interactor, says = new_pipe(pipes)
            most_said_bytes = referee.most_said_bytes(self._test)
            taken_bytes = most_said_bytes if counted else 0
            asks = referee.asked(stack, to_interactor, self._test, given, feedback, taken_bytes)
            asks = replace(asks, stdout_fd=from_interactor)
            pump = None
            if counted:
                on_to_interactor = says
                heard, says = new_pipe(pipes)
                pump = new_pump(stack, heard, most_said_bytes, on_to_interactor, withholds_end=True)
                # A third process takes part in each exchange, which is none of the program's idling.
                limits = replace(limits, wall_s=2 * limits.effective_wall_s)
                own_wall_s = asks.limits.effective_wall_s + self._limits.effective_wall_s
                asks = replace(asks, limits=replace(asks.limits, wall_s=own_wall_s))
            answers = replace(program_request(self._language, to_program, limits), stdout_fd=says)
            interactor = jury_cell.start(asks)
            try:
                program = cell.start(answers)
            except BaseException:
                interactor.abandon()
                raise
            program.beside = interactor
            program.pump = pump
            interactor.hears = pump
            last_words = new_pump(stack, to_program, MOST_LAST_WORDS_BYTES)
            pipes.close()
            record, other = wait_for([program, interactor], cancel_fd, {program: last_words})
        try:
            return self._settled(program, record, interactor, other, feedback)
        except BaseException:
            record.close()
            raise
        finally:
            other.close()

    def _validate(self, cell: Cell, cancel_fd: int | None, given: Stdin, feedback: Feedback, counted: bool) -> _Pass:
        """One run of the program, then one of the validator on what it wrote, which is counted in any case."""
        referee = self._referee
        with contextlib.ExitStack() as stack:
            stdin = _opened(stack, given.open())
            record = cell.run(program_request(self._language, stdin, self._limits), cancel_fd)
            try:
                failure = decide(record.evidence, ignore_exit_code=self._problem.ignore_exit_code)
                if failure is not None:
                    return _Pass(record, Outcome(failure))
                written = _opened(stack, read_only(record.stdout))
                taken_bytes = min(len(record.stdout), most_taken_bytes(self._test))
                request = referee.asked(stack, written, self._test, given, feedback, taken_bytes)
                validator = referee.jury.run(request)
                stack.callback(validator.close)
                return self._maybe_another(record, Outcome.of(referee.said(validator, feedback)), validator)
            except BaseException:
                record.close()
                raise

    def _maybe_another(self, record: RunRecord, outcome: Outcome, other: RunRecord) -> _Pass:
        asked = other.collected.get(NEXT_PASS) if outcome.verdict is Verdict.ACCEPTED else None
        # A copy: the original is the validator's to change.
        next_input = None if asked is None else Stdin(asked.head(len(asked)))
        return _Pass(record, outcome, next_input, other.evidence.over_cpu or other.evidence.over_wall)

    def _settled(
        self, program: ActiveRun, record: RunRecord, interactor: ActiveRun, other: RunRecord, feedback: Feedback
    ) -> _Pass:
        """What a conversation that is over came to."""
        said = self._referee.said(other, feedback)
        failure = decide(record.evidence, ignore_exit_code=self._problem.ignore_exit_code)
        failed = failure is Verdict.RUNTIME_ERROR
        words, other_words = record.stderr.tail(MESSAGE_BYTES), other.stderr.tail(MESSAGE_BYTES)
        limited = other.evidence.over_a_limit
        faulty = said.verdict is Verdict.CHECKER_ERROR
        program_end = ProgramEnd(
            failure,
            program.ended_at,
            program.stopped_at,
            wrote_to_nobody=failed and wrote_to_nobody(record.evidence, words),
            read_past_end=failed and read_past_end(record.evidence, words),
        )
        interactor_end = InteractorEnd(
            said.verdict,
            interactor.ended_at,
            over_limit=limited,
            lost_program=faulty and not limited and (interactor.told_end or lost_program(other.evidence, other_words)),
        )
        verdict = settle(program_end, interactor_end)
        message = ""
        if verdict is not Verdict.ACCEPTED:
            did = "ended" if failure is None else failure_message(failure, record)
            if program.pump is not None and program.pump.over:
                did = f"wrote more than {self._referee.most_said_bytes(self._test) / 2**20:.4g} MiB to the interactor"
            message = _account(who_was_first(program_end, interactor_end), did, self._referee.did(said, other))
        elif TOUT in other.collected:
            self._tout = Output(os.dup(other.collected[TOUT].fd))
        score = said.score if verdict is said.verdict else None
        done = self._maybe_another(record, Outcome(verdict, message, said.message, score), other)
        return replace(done, spun_at_end=spun_at_end(interactor, other))


def _opened(stack: contextlib.ExitStack, fd: int) -> int:
    stack.callback(os.close, fd)
    return fd


def _with_most(record: RunRecord, before: RunRecord) -> RunRecord:
    return replace(
        record,
        cpu_s=max(record.cpu_s, before.cpu_s),
        wall_s=max(record.wall_s, before.wall_s),
        memory_bytes=max(record.memory_bytes, before.memory_bytes),
    )


def _account(first: First, program_did: str, interactor_did: str) -> str:
    """Who ended first, and how, in one sentence."""
    program, interactor = f"the program {program_did}", f"the interactor {interactor_did}"
    match first:
        case First.PROGRAM:
            return f"{program}, then {interactor}"
        case First.INTERACTOR:
            return f"{interactor}, then {program}"
        case First.NEITHER:
            return f"{program} as {interactor}"
