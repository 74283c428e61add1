"""The jury's side of a test of several runs: the interactor, or the validator of several passes, and what it says.

What the program does meanwhile, and how the two ends make a verdict, is `sandbox.interactive`.

A program could bring its interactor down, and would then have no reward where it deserved a bad one. Two things stand
against that. What it may say is bounded, as all its output is, by what an interactor that keeps all of it has room for:
nobody counts while all goes well, for the bytes then pass through nobody's hands; but where the interactor failed, the
test is run once more with the judge in between, who counts. And where the fault remains, the interactor is asked once
more beside a program that says nothing: one that stands that, or waits for a word until it is told that there will be
none, was brought down by what this program said (`provoked`).
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import replace

from sandbox.checkers import programs
from sandbox.checkers.base import CheckerOutcome, CheckerProgram
from sandbox.checkers.programs import FEEDBACK, MESSAGE_BYTES, NEXT_PASS, CheckerRun, Places
from sandbox.checking import Checking, checking, too_much_feedback
from sandbox.checking import limits as checker_limits
from sandbox.conversation import lost_program
from sandbox.jury import Jury, most_taken_bytes
from sandbox.problem import Limits, Problem, Test
from sandbox.program import Workshop
from sandbox.pumps import new_pipe, new_pump
from sandbox.run import FIRST_EXTRA_FD, Output, RunRecord, RunRequest
from sandbox.stdin import Stdin
from sandbox.trials import Outcome, failure_message
from sandbox.verdicts import Verdict, decide
from sandbox.watching import ActiveRun

#: What testlib interactors leave for the checker.
TOUT = "tout"

#: What an interactor may write to one file, and leave as feedback in all.
OUTPUT_BYTES = 64 * 2**20

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
        self._program = problem.checker
        self._passes = problem.passes
        self._kind = "validator" if problem.dialogue is None else "interactor"
        self.given_up: Outcome | None = None
        """What every further test comes to, where it is not asked any more: twice on one test it ran out of time."""
        own = replace(checker_limits(workshop.config), output_bytes=OUTPUT_BYTES)
        if problem.dialogue is not None:
            own = replace(own, wall_s=limits.effective_wall_s + own.cpu_s)
        self.jury = Jury(self._program.program, workshop, own, cancel_fd)
        self._output_bytes = limits.output_bytes
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

    def most_said_bytes(self, test: Test) -> int:
        """How much a program may say to an interactor before it is over its output limit."""
        return min(self._output_bytes, most_taken_bytes(test))

    # -- one run of the jury's program

    def asked(
        self,
        stack: contextlib.ExitStack,
        stdin_fd: int,
        test: Test,
        given: Stdin,
        feedback: Feedback,
        taken_bytes: int = 0,
    ) -> RunRequest:
        """A run of it, that is to take so much of the program's; `stack` closes what is opened for it."""
        rules = programs.RULES[self._program.protocol]
        own = [given.open(), Stdin(test.expected).open()]
        for fd in own:
            stack.callback(os.close, fd)
        kept = feedback.files
        collect = (TOUT,) if self.has_checker else tuple(f"{folder}/" for folder in rules.directories)
        return replace(
            self.jury.request(stdin_fd, (*rules.arguments(_PLACES), *self._program.flags), taken_bytes),
            extra_fds=(*own, *(output.fd for output in kept.values())),
            links={name: len(own) + position for position, name in enumerate(kept)},
            directories=rules.directories,
            collect=collect,
        )

    def said(self, record: RunRecord, feedback: Feedback) -> CheckerOutcome:
        """What its end means."""
        if self._passes > 1 and (fault := feedback.take(record)):
            return CheckerOutcome(Verdict.CHECKER_ERROR, f"the {self._kind} {fault}")
        files = {**feedback.files, **record.collected}
        said = programs.outcome(
            self._program.protocol,
            CheckerRun(
                record.evidence,
                record.limits,
                stderr=record.stderr.head(MESSAGE_BYTES),
                files={name: output.head(MESSAGE_BYTES) for name, output in files.items()},
            ),
            self._program.scoring,
        )
        if said.verdict is Verdict.CHECKER_ERROR:
            return replace(said, message=said.message.replace("the checker", f"the {self._kind}", 1))
        if not self.has_checker and (fault := too_much_feedback(files, OUTPUT_BYTES)):
            return CheckerOutcome(Verdict.CHECKER_ERROR, f"the {self._kind} {fault}")
        if said.verdict is not Verdict.ACCEPTED and NEXT_PASS in record.collected:
            return CheckerOutcome(Verdict.CHECKER_ERROR, f"the {self._kind} rejected and asked for another pass")
        return said

    def did(self, said: CheckerOutcome, record: RunRecord) -> str:
        """What it did, without a word of its own, which might quote the test."""
        if said.verdict is Verdict.ACCEPTED:
            return "accepted"
        if said.verdict is Verdict.WRONG_ANSWER:
            return "rejected"
        failure = decide(record.evidence, ignore_exit_code=False)
        return "exited with status 0" if failure is None else failure_message(failure, record)

    def stands_silence(self, test: Test) -> bool:
        """Whether it ends as its protocol foresees where a program says nothing at all, on as many passes as it asks
        for, or waits for a word and fails only once it learns that there will be none.

        Raises GraderFault, Cancelled.
        """
        given = test.stdin
        with contextlib.closing(Feedback()) as feedback:
            for _ in range(self._passes):
                with contextlib.ExitStack() as stack:
                    run, record = self._beside_silence(stack, test, given, feedback)
                    said = self.said(record, feedback)
                    if said.verdict is Verdict.CHECKER_ERROR:
                        lost = lost_program(record.evidence, record.stderr.tail(MESSAGE_BYTES))
                        return spun_at_end(run, record) or (not record.evidence.over_a_limit and (run.told_end or lost))
                    asked = record.collected.get(NEXT_PASS) if said.verdict is Verdict.ACCEPTED else None
                    if asked is None:
                        return True
                    given = Stdin(asked.head(len(asked)))
        return False

    def _beside_silence(
        self, stack: contextlib.ExitStack, test: Test, given: Stdin, feedback: Feedback
    ) -> tuple[ActiveRun, RunRecord]:
        """A run of it beside a program that says nothing; `stack` closes the record."""
        with contextlib.ExitStack() as pipes:
            stdin, on_to_it = new_pipe(pipes)
            nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            pipes.callback(os.close, nothing)
            silence = new_pump(stack, nothing, 0, on_to_it, withholds_end=True)
            run = self.jury.start(self.asked(stack, stdin, test, given, feedback))
            run.hears = silence
        record = self.jury.wait_for(run)
        stack.callback(record.close)
        return run, record


def spun_at_end(run: ActiveRun, record: RunRecord) -> bool:
    """Whether it waited for more, learned that there would be none, and ran out of CPU time over that: as a loop does
    that reads until it has read what it looks for. Not so of other limits: one that sleeps on may never have waited."""
    return run.told_end and record.evidence.over_cpu


class Feedback:
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
