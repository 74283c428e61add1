"""The judge: one submission against one problem, test by test.

One judge works in one process, on one core, on one submission at a time. It compiles, opens a cell, hands each test
to it in ascending input length, and lets the problem's checker look at what a clean run printed. It knows nothing of
HTTP, queues, rewards or data sets.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from sandbox import compiling, languages, prebuilt
from sandbox.calls import CallTrials
from sandbox.cell import Cell
from sandbox.cgroups import open_cgroups
from sandbox.compiling import Compiled, Compiler
from sandbox.config import SandboxConfig
from sandbox.errors import GraderFault
from sandbox.interactive import Referee, RefereedTrials, deciding
from sandbox.jury import Workshop
from sandbox.languages import Language
from sandbox.pressure import CoreTime, Turn, core_time, taken_by_others
from sandbox.problem import CompileResult, Judgement, Limits, OnTest, Problem, Stop, Submission, Test, TestResult
from sandbox.run import Action, RunRecord, RunRequest
from sandbox.scripts import Bench, ScriptTrials
from sandbox.starting import scaled
from sandbox.trials import DrivenTrial, StdioTrials, Trial, Trials, failure_message
from sandbox.verdicts import Verdict

T = TypeVar("T")

TAIL_BYTES = 4 * 1024

#: Host uids of one worker: pairs, taken in turn, so that a cell that is still going never shares one with the next.
UIDS_PER_SLOT = 256

#: Cells on their way out that may pile up before the judge waits for the oldest.
MAX_LEAVING = 8

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


class Judge:
    """Grades submissions in this process. Not safe for threads; `close` it."""

    def __init__(self, config: SandboxConfig, slot: int, core: int | None) -> None:
        """`slot` tells the judges of one host apart; `core` is the CPU that everything of this judge runs on.

        Raises HostError where the host cannot run cells as configured.
        """
        if core is not None:
            os.sched_setaffinity(0, {core})
        self._config = config
        self._first_uid = config.uid_base + slot * UIDS_PER_SLOT
        self._cgroups = open_cgroups(insecure_no_cgroup=config.insecure_no_cgroup)
        self._mounts = prebuilt.mounts(config)
        self._turn = Turn(config.locks_dir)
        self._compiler = Compiler(config, self._cell)
        self._workshop = Workshop(config, self, self._compiler, set())
        self._warm: Cell | None = None
        self._leaving: list[Cell] = []
        self._cells_made = 0

    # -- one submission

    def judge(
        self, submission: Submission, *, cancel_fd: int | None = None, on_test: OnTest | None = None
    ) -> Judgement:
        """Run the submission against its problem's tests.

        A fault of the grader is tried again in a new cell and then becomes the test's `internal_error`. Raises
        UnknownLanguage, HostError, CheckerRefused, GraderFault (compiling failed twice through no fault of the
        program's), and Cancelled as soon as `cancel_fd` is readable.
        """
        language = languages.resolve(submission.language)
        version = languages.version(language)
        factor = self._config.time_factors.get(language.id, 1.0)
        submission = replace(submission, limits=scaled(submission.limits, factor))
        run = _Run(self, submission, language, cancel_fd, on_test)
        with run:
            started = time.monotonic()
            compiled = run.prepare()
            compile_s = time.monotonic() - started
            started = time.monotonic()
            results = run.all_tests() if compiled is None or compiled.ok else ()
            return Judgement(
                compile=compiled,
                tests=results,
                language_version=version,
                secure=not self._config.insecure_no_cgroup,
                compile_s=compile_s,
                run_s=time.monotonic() - started,
            )

    def vet(self, problem: Problem, *, cancel_fd: int | None = None) -> None:
        """See that what decides on the problem is of use: programs among it are compiled, and kept so.

        Raises CheckerRefused, GraderFault, Cancelled.
        """
        with contextlib.closing(deciding(problem, self._workshop, Limits(), cancel_fd)) as vetted:
            _twice(vetted.prepare)

    # -- cells

    def warm(self) -> None:
        """Start the next submission's cell now, so that it is up when it is needed."""
        self._see_off()
        if self._warm is None:
            self._warm = self._new_cell()

    def take_cell(self) -> Cell:
        cell, self._warm = self._warm or self._new_cell(), None
        return cell

    def give_back(self, cell: Cell) -> None:
        """A cell is never used again; it goes in its own time."""
        cell.leave()
        self._leaving.append(cell)
        self._see_off()

    @contextlib.contextmanager
    def _cell(self) -> Iterator[Cell]:
        cell = self.take_cell()
        try:
            yield cell
        finally:
            self.give_back(cell)

    def _new_cell(self) -> Cell:
        self._cells_made += 1
        uid = self._first_uid + 2 * (self._cells_made % (UIDS_PER_SLOT // 2))
        try:
            group = self._cgroups.cell(f"cell-{self._cells_made}")
            try:
                return Cell(group, host_uid=uid, mounts=self._mounts)
            except OSError:
                group.close()
                raise
        except OSError as error:
            raise GraderFault(f"could not start a cell: {error}") from error

    def _see_off(self) -> None:
        """Remove what is left of cells that have gone, and wait for the oldest where too many linger."""
        staying: list[Cell] = []
        for cell in self._leaving:
            if cell.gone() or len(self._leaving) - len(staying) > MAX_LEAVING:
                cell.close()
            else:
                staying.append(cell)
        self._leaving = staying

    def close(self) -> None:
        """End every cell and remove every group of this judge."""
        for cell in (*self._leaving, *([self._warm] if self._warm else [])):
            cell.close()
        self._leaving, self._warm = [], None
        self._cgroups.close()
        self._turn.close()

    @property
    def cells_started(self) -> int:
        """Since this judge was made, warm ones included."""
        return self._cells_made

    # -- what a run needs of its judge

    @property
    def compiler(self) -> Compiler:
        return self._compiler

    @property
    def workshop(self) -> Workshop:
        return self._workshop

    @property
    def turn(self) -> Turn:
        return self._turn


class _Run:
    """One submission on its way through: its artefact, and the cell it runs in, replaced when it goes bad."""

    def __init__(
        self,
        judge: Judge,
        submission: Submission,
        language: Language,
        cancel_fd: int | None,
        on_test: OnTest | None,
    ) -> None:
        self._judge = judge
        self._submission = submission
        self._language = language
        self._cancel_fd = cancel_fd
        self._on_test = on_test
        self._checking = deciding(submission.problem, judge.workshop, submission.limits, cancel_fd)
        self._trials = self._of_its_kind()
        self._artefact_fd: int | None = None
        self._cell: Cell | None = None
        self._reading: CoreTime | None = None
        self._used_since_s = 0.0
        self._reruns_left = MAX_RERUNS

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        self._checking.close()
        self._drop_cell()
        if self._artefact_fd is not None:
            os.close(self._artefact_fd)

    def _of_its_kind(self) -> Trials:
        problem, limits = self._submission.problem, self._submission.limits
        if problem.call is not None:
            return CallTrials(problem, problem.call, self._language, limits)
        if problem.script is not None and isinstance(self._checking, Bench):
            return ScriptTrials(problem.script, self._language, limits, self._checking)
        if isinstance(self._checking, Referee):
            return RefereedTrials(problem, self._language, limits, self._checking)
        return StdioTrials(problem, self._language, limits, self._checking)

    def _drop_cell(self) -> None:
        if self._cell is not None:
            self._judge.give_back(self._cell)
            self._cell = None

    # -- before the first test

    def prepare(self) -> CompileResult | None:
        """Compile, or check, the source; None for a language that does neither. Raises CheckerRefused first."""
        _twice(self._checking.prepare)
        if self._language.compile:
            compiled = _twice(self._compile)
            self._artefact_fd = compiled.artefact_fd
            return compiled.result
        if self._language.checks_python:
            return _twice(self._open_python_cell)
        return None

    def _compile(self) -> Compiled:
        return self._judge.compiler.compile(self._language, self._submission.source, self._cancel_fd)

    def _open_python_cell(self) -> CompileResult:
        """A cell with the source in it, compiled there; it serves the tests too."""
        self._drop_cell()
        self._cell = self._judge.take_cell()
        with compiling.as_file(self._submission.source) as source_fd:
            self._cell.load({self._language.source_name: source_fd}, executable=False)
        limits = replace(compiling.LIMITS, memory_bytes=self._submission.limits.memory_bytes)
        with compiling.as_file(b"") as stdin_fd:
            request = RunRequest(Action.CHECK, stdin_fd, limits, self._trials.zygote_argv)
            record = self._cell.run(request, self._cancel_fd)
        try:
            return compiling.compile_result(record, limits)
        finally:
            record.close()

    def _ready_cell(self) -> Cell:
        """The submission's cell, made again where the last one cannot be trusted any more."""
        if self._cell is not None and self._cell.usable:
            return self._cell
        if self._language.checks_python:
            if not self._open_python_cell().ok:
                raise GraderFault("a source that compiled before does not compile in a new cell")
        else:
            self._drop_cell()
            self._cell = self._judge.take_cell()
            self._load_program(self._cell)
        assert self._cell is not None
        return self._cell

    def _load_program(self, cell: Cell) -> None:
        if self._artefact_fd is not None:
            # Descriptors share one offset: an own one for each cell.
            fd = os.open(f"/proc/self/fd/{self._artefact_fd}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                cell.load({self._language.artefact: fd}, executable=True)
            finally:
                os.close(fd)
        else:
            with compiling.as_file(self._submission.source) as fd:
                cell.load({self._language.source_name: fd}, executable=False)

    # -- the tests

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
        if isinstance(self._checking, Referee) and (why := self._checking.given_up):
            return TestResult(test.index, test.name, test.input_length, Verdict.CHECKER_ERROR, checker_message=why)
        try:
            return _twice(lambda: self._attempt_and_rerun(test))
        except GraderFault as fault:
            self._drop_cell()
            return TestResult(test.index, test.name, test.input_length, Verdict.INTERNAL_ERROR, message=str(fault))

    def _attempt_and_rerun(self, test: Test) -> TestResult:
        """A limit failure while others had the core counts only if the program, alone on the host, fails again."""
        before, used_before_s = self._recent_reading()
        with self._judge.turn.shared():
            attempt = self._attempt(test)
        reruns = 0
        if self._reruns_left and _others_had_the_core(attempt, before, used_before_s):
            attempt.close()
            self._reruns_left -= 1
            reruns = 1
            with self._judge.turn.alone():
                attempt = self._attempt(test)
        self._used_since_s += attempt.record.wall_s
        try:
            return self._result(test, attempt, reruns)
        finally:
            attempt.close()

    def _recent_reading(self) -> tuple[CoreTime, float]:
        """What the core has done until just before, and at most how much of that since was this submission's.

        A new reading for each test would cost a tenth of a trivial one.
        """
        if self._reading is None or time.monotonic() - self._reading.at_s > RECENT_S:
            self._reading, self._used_since_s = core_time(), 0.0
        return self._reading, self._used_since_s

    def _attempt(self, test: Test) -> _Attempt:
        cell = self._ready_cell()
        trial = self._trials.trial(test)
        try:
            if isinstance(trial, DrivenTrial):
                record = trial.run(self._ready_cell, self._cancel_fd)
            else:
                record = cell.run(trial.request, self._cancel_fd)
            if record.killed_by_host:
                record.close()
                raise GraderFault("this host ran out of memory")
        except BaseException:
            trial.close()
            raise
        return _Attempt(trial, record, trial.verdict(record))

    def _result(self, test: Test, attempt: _Attempt, reruns: int) -> TestResult:
        record = attempt.record
        outcome = attempt.trial.outcome(record, attempt.verdict)
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
            message=outcome.message or failure_message(outcome.verdict, record, self._submission.limits),
            checker_message=outcome.checker_message,
            reruns=reruns,
            stdout_tail=record.stdout.tail(TAIL_BYTES),
            stderr_tail=record.stderr.tail(TAIL_BYTES),
        )


def _twice(work: Callable[[], T]) -> T:
    """Do the work, and once more after a fault of ours. Raises GraderFault for the second one."""
    try:
        return work()
    except (GraderFault, OSError):
        pass
    try:
        return work()
    except OSError as error:
        raise GraderFault(f"this host refused: {error}") from error


def _others_had_the_core(attempt: _Attempt, before: CoreTime, used_before_s: float) -> bool:
    if attempt.verdict not in (Verdict.TIME_LIMIT, Verdict.IDLE):
        return False
    cpu_s, wall_s = attempt.record.cpu_s, attempt.record.wall_s
    idle = attempt.verdict is Verdict.IDLE
    return taken_by_others(before, core_time(), own_s=used_before_s + cpu_s, cpu_s=cpu_s, wall_s=wall_s, idle=idle)
