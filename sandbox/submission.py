"""One submission on its way through: prepared, then run test by test, in ascending input length.

A test's run may be repeated: once in a new cell after a fault of ours, once more with nobody beside it where a limit
failure may be the host's. Knows nothing of how cells are made and given back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sandbox.errors import GraderFault, HostOutOfMemory, HostRefused
from sandbox.kinds import deciding, trials
from sandbox.languages import Language
from sandbox.pressure import CoreTime, Turn, core_time, taken_by_others
from sandbox.problem import CompileResult, OnTest, Stop, Submission, Test, TestResult
from sandbox.program import Program, Workshop
from sandbox.referee import Referee
from sandbox.run import RunRecord
from sandbox.scripts import Bench
from sandbox.single import SingleTrials
from sandbox.tally import Tally
from sandbox.trials import DrivenTrial, Trial, Trials, failure_message
from sandbox.verdicts import Verdict

T = TypeVar("T")

TAIL_BYTES = 4 * 1024

#: How old a reading of the host's pressure may be at the start of a test. Limits that matter are longer.
RECENT_S = 0.3

#: Tests of one submission that may have the host to themselves: each stops all others.
MAX_RERUNS = 2


@dataclass(slots=True)
class _Attempt:
    """A run with its verdict; trial and record still hold what the program was given and what it wrote."""

    trial: Trial | DrivenTrial
    record: RunRecord
    verdict: Verdict | None

    def close(self) -> None:
        self.trial.close()
        self.record.close()


class SubmissionRun:
    """One submission on its way through its tests. Leave it as a context."""

    def __init__(
        self,
        submission: Submission,
        language: Language,
        workshop: Workshop,
        turn: Turn,
        tally: Tally,
        cancel_fd: int | None,
        on_test: OnTest | None,
        single: SingleTrials | None = None,
    ) -> None:
        """`single`: in place of the trials that the problem's kind has. Raises CheckerRefused, UnknownLanguage."""
        problem, limits = submission.problem, submission.limits
        self._submission = submission
        self._cells = workshop.cells
        self._turn = turn
        self._tally = tally
        self._cancel_fd = cancel_fd
        self._on_test = on_test
        self._checking = deciding(problem, workshop, limits, cancel_fd)
        self._trials: Trials = single or trials(problem, language, limits, self._checking)
        zygote_argv = self._trials.zygote_argv
        self._program = Program(
            language,
            submission.source,
            workshop,
            limits.memory_bytes,
            cancel_fd,
            zygote_argv,
            runs_once=single is not None,
            compile_cpu_s=submission.compile_cpu_s,
        )
        self._reading: CoreTime | None = None
        self._reruns_left = MAX_RERUNS

    def __enter__(self) -> SubmissionRun:
        return self

    def __exit__(self, *_: object) -> None:
        self._checking.close()
        self._program.close()

    def prepare(self) -> CompileResult | None:
        """Compile, or check, the source; None for a language that does neither. Raises CheckerRefused first."""
        twice(self._checking.prepare, self._tally)
        before, used_s = self._recent_reading(), self._cells.used_s
        started_s = time.monotonic()
        earlier_s = started_s - before.at_s
        compiled = twice(self._program.compile, self._tally)
        if compiled is None or not compiled.timed_out:
            return compiled
        # As of tests: a compiler that others kept from its core may try once more, alone.
        own_s, wall_s = earlier_s + self._cells.used_s - used_s, time.monotonic() - started_s
        if taken_by_others(before, core_time(), own_s=own_s, cpu_s=compiled.cpu_s, wall_s=wall_s, idle=False):
            with self._turn.alone():
                compiled = twice(lambda: self._program.compile(alone=True), self._tally)
        return compiled

    def all_tests(self) -> tuple[TestResult, ...]:
        """Every test's result, in the problem's order; run in ascending input length, ties by index."""
        tests = self._submission.problem.tests
        results: dict[int, TestResult] = {}
        failed = False
        for test in sorted(tests, key=lambda test: (test.input_length, test.index)):
            if failed and self._submission.stop is Stop.FIRST_FAILURE:
                result = TestResult(test.index, test.name, test.input_length, Verdict.SKIPPED)
            else:
                result = self._one_test(test)
            failed = failed or result.verdict is not Verdict.ACCEPTED
            results[test.index] = result
            if self._on_test is not None:
                self._on_test(result)
        return tuple(results[test.index] for test in tests)

    def _one_test(self, test: Test) -> TestResult:
        if isinstance(self._checking, (Bench, Referee)) and (given_up := self._checking.given_up):
            return TestResult(
                test.index,
                test.name,
                test.input_length,
                given_up.verdict,
                message=given_up.message,
                checker_message=given_up.checker_message,
                provoked=given_up.provoked,
                by_clock=given_up.by_clock,
            )
        try:
            return twice(lambda: self._attempt_and_rerun(test), self._tally)
        except GraderFault as fault:
            self._program.drop_cell()
            return TestResult(test.index, test.name, test.input_length, Verdict.INTERNAL_ERROR, message=str(fault))

    def _attempt_and_rerun(self, test: Test) -> TestResult:
        """A limit failure while others had the core counts only if the program, alone on the host, fails again."""
        with self._turn.shared():
            before = self._recent_reading()
            # What was done since then was mostly this judge's, its wardens' work included.
            earlier_s, used_s = time.monotonic() - before.at_s, self._cells.used_s
            attempt = self._attempt(test)
        reruns = 0
        own_s = earlier_s + self._cells.used_s - used_s
        if self._reruns_left and _others_had_the_core(attempt, before, own_s):
            attempt.close()
            self._reruns_left -= 1
            reruns = 1
            with self._turn.alone():
                attempt = self._attempt(test)
        try:
            return self._result(test, attempt, reruns)
        finally:
            attempt.close()

    def _recent_reading(self) -> CoreTime:
        """What the core has done until just before. A new reading for each test would cost a tenth of a trivial one."""
        if self._reading is None or time.monotonic() - self._reading.at_s > RECENT_S:
            self._reading = core_time()
        return self._reading

    def _attempt(self, test: Test) -> _Attempt:
        cell = self._program.cell()
        trial = self._trials.trial(test)
        try:
            if isinstance(trial, DrivenTrial):
                record = trial.run(self._program, self._cancel_fd)
            else:
                record = cell.run(trial.request, self._cancel_fd)
            self._tally.ran(record)
            if record.killed_by_host:
                record.close()
                raise HostOutOfMemory("this host ran out of memory")
        except BaseException:
            trial.close()
            raise
        return _Attempt(trial, record, trial.verdict(record))

    def _result(self, test: Test, attempt: _Attempt, reruns: int) -> TestResult:
        record = attempt.record
        outcome = attempt.trial.outcome(record, attempt.verdict)
        judged = attempt.trial.judged(record)
        return TestResult(
            index=test.index,
            name=test.name,
            input_length=test.input_length,
            verdict=outcome.verdict,
            cpu_s=record.cpu_s,
            wall_s=record.wall_s,
            memory_bytes=record.memory_bytes,
            exit_code=record.evidence.exit_code,
            signal=record.evidence.signal,
            score=outcome.score,
            message=outcome.message or failure_message(outcome.verdict, record),
            checker_message=outcome.checker_message,
            provoked=outcome.provoked,
            by_clock=outcome.by_clock,
            reruns=reruns,
            stdout_tail=record.stdout.tail(TAIL_BYTES),
            stderr_tail=record.stderr.tail(TAIL_BYTES),
            output_tail=None if judged is None else judged.tail(TAIL_BYTES),
        )


def twice(work: Callable[[], T], tally: Tally) -> T:
    """Do the work, and once more after a fault of ours. Raises GraderFault for the second one."""
    try:
        return work()
    except (GraderFault, OSError) as error:
        tally.failed(error)
    try:
        return work()
    except (GraderFault, OSError) as error:
        tally.failed(error)
        if isinstance(error, GraderFault):
            raise
        raise HostRefused(f"this host refused: {error}") from error


def _others_had_the_core(attempt: _Attempt, before: CoreTime, own_s: float) -> bool:
    if attempt.verdict not in (Verdict.TIME_LIMIT, Verdict.IDLE):
        return False
    cpu_s, wall_s = attempt.record.cpu_s, attempt.record.wall_s
    idle = attempt.verdict is Verdict.IDLE
    return taken_by_others(before, core_time(), own_s=own_s, cpu_s=cpu_s, wall_s=wall_s, idle=idle)
