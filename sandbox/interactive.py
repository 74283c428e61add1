"""Interactive problems, and Kattis problems of several passes: tests that are more than one run of one program.

    program's cell                            interactor's cell
      stdin  <─────────── pipe ───────────────  stdout           its own files: input, answer, feedback or tout
      stdout ──────────── pipe ──────────────▶  stdin

Both cells are this judge's, on its core; the judge closes its copies of the pipes' ends as soon as both programs run,
so that each sees when the other has gone. All but one: an interactor must not die of SIGPIPE over last words that the
program did not wait for, so what is still said to a program that has ended is read, up to a bound, and forgotten.

Limits are each program's own: what the interactor computes is no part of the submission's time. The submission's wall
limit is that of the pair, which ends a deadlock in `idle`; the interactor may then still compute for as long as its own
CPU limit lets it. How the two ends make a verdict is `sandbox.conversation`.

A Kattis validator may ask for another pass (`nextpass.in` beside its 42): the program is then run anew on that input,
and the validator finds its feedback folder as it left it. What goes wrong on the interactor's side is looked into once
more from the first pass on, in a new cell, and is then `checker_error`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from sandbox.cell import Cell
from sandbox.checkers import programs
from sandbox.checkers.base import CheckerOutcome, CheckerProgram
from sandbox.checkers.programs import FEEDBACK, MESSAGE_BYTES, CheckerRun, Places
from sandbox.checking import Checking, checking, read_only
from sandbox.checking import limits as checker_limits
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
from sandbox.jury import Jury, Workshop
from sandbox.languages import Language
from sandbox.problem import Limits, Problem, Test
from sandbox.run import FIRST_EXTRA_FD, ActiveRun, Output, Remains, RunRecord, RunRequest, wait_for
from sandbox.scripts import Bench
from sandbox.starting import program_request
from sandbox.stdin import Stdin
from sandbox.trials import DrivenTrial, Outcome, failure_message
from sandbox.verdicts import Evidence, Verdict, decide

#: What testlib interactors leave for the checker.
TOUT = "tout"

#: What an interactor may write to one file.
OUTPUT_BYTES = 64 * 2**20

#: What an interactor may still say to a program that has gone, before it is taken for one that never stops.
MOST_LAST_WORDS_BYTES = 2**20

#: Where a validator leaves the input of the next pass.
NEXT_PASS = f"{FEEDBACK}/nextpass.in"

#: Files that a validator may keep in its feedback folder from pass to pass, and how they may be called.
MOST_KEPT_FILES = 16
_KEPT_NAME = re.compile(rf"{FEEDBACK}/[A-Za-z0-9_.][A-Za-z0-9_.-]*")

_PLACES = Places(
    input=f"/dev/fd/{FIRST_EXTRA_FD}",
    answer=f"/dev/fd/{FIRST_EXTRA_FD + 1}",
    output=f"/box/{TOUT}",
    feedback=f"/box/{FEEDBACK}/",
)


class Referee:
    """A problem's interactor, or its validator of several passes, at the service of one submission. `close` it.

    Stands where other problems have the checker alone; the checker of what an interactor leaves is asked through it.
    """

    def __init__(self, problem: Problem, workshop: Workshop, limits: Limits, cancel_fd: int | None) -> None:
        """`limits` are the submission's. Raises CheckerRefused."""
        assert isinstance(problem.checker, CheckerProgram)
        self.program = problem.checker
        self.given_up = ""
        """Why it is not asked any more: twice on one test it ran out of time."""
        own = replace(checker_limits(workshop.config), output_bytes=OUTPUT_BYTES)
        if problem.dialogue is not None:
            own = replace(own, wall_s=limits.effective_wall_s + own.cpu_s)
        self.jury = Jury(self.program.program, workshop, own, cancel_fd)
        self._checking: Checking | None = None
        if problem.dialogue is not None and problem.dialogue.checker is not None:
            self._checking = checking(problem.dialogue.checker, workshop, cancel_fd)

    @property
    def has_checker(self) -> bool:
        return self._checking is not None

    def prepare(self) -> None:
        """Raises CheckerRefused, GraderFault, Cancelled."""
        self.jury.prepare()
        if self._checking is not None:
            self._checking.prepare()

    def check(self, test: Test, output: Output) -> CheckerOutcome:
        """What the checker says of what the interactor left. Raises GraderFault, Cancelled."""
        assert self._checking is not None
        return self._checking.check(test, output)

    def close(self) -> None:
        self.jury.close()
        if self._checking is not None:
            self._checking.close()


def deciding(problem: Problem, workshop: Workshop, limits: Limits, cancel_fd: int | None) -> Checking:
    """What decides on a submission that runs under such limits. Raises CheckerRefused."""
    if problem.script is not None:
        return Bench(workshop)
    if problem.dialogue is not None or problem.passes > 1:
        return Referee(problem, workshop, limits, cancel_fd)
    return checking(problem.checker, workshop, cancel_fd)


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


class RefereedTrial(DrivenTrial):
    def __init__(self, trials: RefereedTrials, test: Test) -> None:
        self._problem = trials.problem
        self._language = trials.language
        self._limits = trials.limits
        self._referee = trials.referee
        self._jury = trials.referee.jury
        self._program = trials.referee.program
        self._test = test
        self._outcome = Outcome(Verdict.INTERNAL_ERROR)
        self._tout: Output | None = None

    # -- as the judge asks

    def run(self, ready_cell: Callable[[], Cell], cancel_fd: int | None) -> RunRecord:
        done = self._all_passes(ready_cell, cancel_fd)
        if done.outcome.verdict is Verdict.CHECKER_ERROR:
            done.record.close()
            self._jury.drop_cell()
            done = self._all_passes(ready_cell, cancel_fd)
            if done.outcome.verdict is Verdict.CHECKER_ERROR and done.out_of_time:
                # There is no reward to be had any more, and hundreds of tests could keep the judge for hours.
                self._referee.given_up = f"not asked: on test {self._test.index} {done.outcome.checker_message}, twice"
        self._outcome = done.outcome
        return done.record

    def verdict(self, record: RunRecord) -> Verdict | None:
        return None if self._outcome.verdict is Verdict.ACCEPTED else self._outcome.verdict

    def outcome(self, record: RunRecord, verdict: Verdict | None) -> Outcome:
        if verdict is not None or not self._referee.has_checker:
            return self._outcome
        if self._tout is None:
            return Outcome(Verdict.CHECKER_ERROR, f"the interactor accepted and left no {TOUT}")
        checked = self._referee.check(self._test, self._tout)
        return Outcome(checked.verdict, checker_message=checked.message, score=checked.score)

    def close(self) -> None:
        if self._tout is not None:
            self._tout.close()
            self._tout = None

    # -- passes

    def _all_passes(self, ready_cell: Callable[[], Cell], cancel_fd: int | None) -> _Pass:
        """The last pass; its record holds the most that any of them used."""
        self.close()
        one_pass = self._validate if self._problem.dialogue is None else self._converse
        given = self._test.stdin
        before: RunRecord | None = None
        with contextlib.closing(_Feedback()) as feedback:
            for _ in range(self._problem.passes):
                try:
                    done = one_pass(ready_cell(), cancel_fd, given, feedback)
                finally:
                    if before is not None:
                        before.close()
                if before is not None:
                    done = replace(done, record=_with_most(done.record, before))
                if done.outcome.verdict is not Verdict.ACCEPTED or done.next_input is None:
                    return done
                given, before = done.next_input, done.record
        asked = f"the validator asked for more than {self._problem.passes} passes"
        return replace(done, outcome=Outcome(Verdict.CHECKER_ERROR, asked, asked))

    def _converse(self, cell: Cell, cancel_fd: int | None, given: Stdin, feedback: _Feedback) -> _Pass:
        """One run of the program beside its interactor."""
        jury_cell = self._jury.cell()
        with contextlib.ExitStack() as stack, contextlib.ExitStack() as pipes:
            to_program, from_interactor = _pipe(pipes)
            to_interactor, from_program = _pipe(pipes)
            asks = replace(self._asked(stack, to_interactor, given, feedback), stdout_fd=from_interactor)
            answers = replace(program_request(self._language, to_program, self._limits), stdout_fd=from_program)
            interactor = jury_cell.start(asks)
            try:
                program = cell.start(answers)
            except BaseException:
                interactor.abandon()
                raise
            program.beside = interactor
            remains = Remains(os.dup(to_program), program, MOST_LAST_WORDS_BYTES)
            pipes.close()
            with contextlib.closing(remains):
                record, other = wait_for([program, interactor], cancel_fd, remains)
        try:
            return self._settled(program, record, interactor, other, feedback)
        except BaseException:
            record.close()
            raise
        finally:
            other.close()

    def _validate(self, cell: Cell, cancel_fd: int | None, given: Stdin, feedback: _Feedback) -> _Pass:
        """One run of the program, then one of the validator on what it wrote."""
        with contextlib.ExitStack() as stack:
            stdin = _opened(stack, given.open())
            record = cell.run(program_request(self._language, stdin, self._limits), cancel_fd)
            try:
                failure = decide(record.evidence, ignore_exit_code=self._problem.ignore_exit_code)
                if failure is not None:
                    return _Pass(record, Outcome(failure))
                written = _opened(stack, read_only(record.stdout))
                validator = self._jury.run(self._asked(stack, written, given, feedback))
                stack.callback(validator.close)
                said = self._said(validator, feedback)
                outcome = Outcome(said.verdict, checker_message=said.message, score=said.score)
                return self._maybe_another(record, outcome, validator)
            except BaseException:
                record.close()
                raise

    # -- the jury's program

    def _asked(self, stack: contextlib.ExitStack, stdin_fd: int, given: Stdin, feedback: _Feedback) -> RunRequest:
        """A run of it; `stack` closes what is opened for it."""
        rules = programs.RULES[self._program.protocol]
        own = [_opened(stack, given.open()), _opened(stack, Stdin(self._test.expected).open())]
        kept = feedback.files
        collect = (TOUT,) if self._referee.has_checker else rules.collect
        if self._problem.passes > 1:
            collect = (f"{FEEDBACK}/",)
        return replace(
            self._jury.request(stdin_fd, (*rules.arguments(_PLACES), *self._program.flags)),
            extra_fds=(*own, *(output.fd for output in kept.values())),
            links={name: len(own) + position for position, name in enumerate(kept)},
            directories=rules.directories,
            collect=collect,
        )

    def _said(self, record: RunRecord, feedback: _Feedback) -> CheckerOutcome:
        """What its end means."""
        kind = "validator" if self._problem.dialogue is None else "interactor"
        if self._problem.passes > 1 and (fault := feedback.take(record)):
            return CheckerOutcome(Verdict.CHECKER_ERROR, f"the {kind} {fault}")
        files = {**feedback.files, **record.collected}
        said = programs.outcome(
            self._program.protocol,
            CheckerRun(
                record.evidence,
                self._jury.limits,
                stderr=record.stderr.head(MESSAGE_BYTES),
                files={name: output.head(MESSAGE_BYTES) for name, output in files.items()},
            ),
            self._program.scoring,
        )
        if said.verdict is Verdict.CHECKER_ERROR:
            return replace(said, message=said.message.replace("the checker", f"the {kind}", 1))
        if said.verdict is not Verdict.ACCEPTED and NEXT_PASS in record.collected:
            return CheckerOutcome(Verdict.CHECKER_ERROR, f"the {kind} rejected and asked for another pass")
        return said

    def _maybe_another(self, record: RunRecord, outcome: Outcome, other: RunRecord) -> _Pass:
        asked = other.collected.get(NEXT_PASS) if outcome.verdict is Verdict.ACCEPTED else None
        # A copy: the original is the validator's to change.
        next_input = None if asked is None else Stdin(asked.head(len(asked)))
        return _Pass(record, outcome, next_input, other.evidence.over_cpu or other.evidence.over_wall)

    def _settled(
        self, program: ActiveRun, record: RunRecord, interactor: ActiveRun, other: RunRecord, feedback: _Feedback
    ) -> _Pass:
        """What a conversation that is over came to."""
        said = self._said(other, feedback)
        failure = decide(record.evidence, ignore_exit_code=self._problem.ignore_exit_code)
        failed = failure is Verdict.RUNTIME_ERROR
        words, other_words = record.stderr.tail(MESSAGE_BYTES), other.stderr.tail(MESSAGE_BYTES)
        limited = _over_a_limit(other.evidence)
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
            lost_program=faulty and not limited and lost_program(other.evidence, other_words),
        )
        verdict = settle(program_end, interactor_end)
        message = ""
        if verdict is not Verdict.ACCEPTED:
            did = failure_message(failure, record, self._limits) if failure is not None else "ended"
            message = _account(who_was_first(program_end, interactor_end), did, self._did(said, other))
        elif TOUT in other.collected:
            self._tout = Output(os.dup(other.collected[TOUT].fd))
        score = said.score if verdict is said.verdict else None
        return self._maybe_another(record, Outcome(verdict, message, said.message, score), other)

    def _did(self, said: CheckerOutcome, record: RunRecord) -> str:
        """What the interactor did, without a word of its own, which might quote the test."""
        if said.verdict is Verdict.ACCEPTED:
            return "accepted"
        if said.verdict is Verdict.WRONG_ANSWER:
            return "rejected"
        failure = decide(record.evidence, ignore_exit_code=False)
        if failure is None:
            return "exited with status 0"
        return failure_message(failure, record, self._jury.limits)


class _Feedback:
    """What a validator keeps in its feedback folder from one pass to the next. `close` it.

    The files themselves, not copies: the next run finds links to them, through which it may go on writing.
    """

    def __init__(self) -> None:
        self.files: dict[str, Output] = {}

    def take(self, record: RunRecord) -> str:
        """Keep what a run left; says what is wrong where not all of it can be kept."""
        for name, output in record.collected.items():
            if name == NEXT_PASS:
                continue
            if not _KEPT_NAME.fullmatch(name):
                return "left a feedback file whose name is none that could be kept for the next pass"
            if (old := self.files.pop(name, None)) is not None:
                old.close()
            self.files[name] = Output(os.dup(output.fd))
        if len(self.files) > MOST_KEPT_FILES:
            return f"left more than {MOST_KEPT_FILES} feedback files"
        return ""

    def close(self) -> None:
        for output in self.files.values():
            output.close()
        self.files.clear()


def _pipe(stack: contextlib.ExitStack) -> tuple[int, int]:
    """A pipe's ends to read and to write, for programs of other users."""
    reader, writer = os.pipe()
    stack.callback(os.close, reader)
    stack.callback(os.close, writer)
    # Some open /dev/stdin or /dev/stdout, which opens the pipe anew, by its rights.
    os.fchmod(reader, 0o666)
    return reader, writer


def _opened(stack: contextlib.ExitStack, fd: int) -> int:
    stack.callback(os.close, fd)
    return fd


def _over_a_limit(evidence: Evidence) -> bool:
    return evidence.over_cpu or evidence.over_wall or evidence.over_memory or evidence.over_output


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
