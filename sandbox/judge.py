"""The judge: one submission against one problem, test by test.

One judge works in one process, on one core, on one submission at a time. It keeps what outlives a submission: the cells
that are warm or on their way out, the compiler, the jury programs known to be good. What happens to a submission is
`sandbox.submission`. It knows nothing of HTTP, queues, rewards or data sets.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import replace

from sandbox import languages, prebuilt
from sandbox.cell import Cell
from sandbox.cgroups import open_cgroups
from sandbox.checkers import native
from sandbox.compiling import Compiler, SharedPrograms
from sandbox.config import SandboxConfig
from sandbox.errors import NoCell
from sandbox.kinds import deciding
from sandbox.languages import Language
from sandbox.pressure import Turn
from sandbox.problem import Judgement, Limits, OnTest, Problem, Submission
from sandbox.program import Workshop
from sandbox.single import SingleResult, SingleRun, SingleTrials
from sandbox.starting import scaled
from sandbox.submission import SubmissionRun, twice
from sandbox.tally import Tally

#: Host uids of one worker: pairs, taken in turn, so that a cell that is still going never shares one with the next.
UIDS_PER_SLOT = 256

#: Cells on their way out that may pile up before the judge waits for the oldest.
MAX_LEAVING = 8


class Judge:
    """Grades submissions in this process. Not safe for threads; `close` it."""

    def __init__(
        self, config: SandboxConfig, slot: int, core: int | None, shared_programs: SharedPrograms | None = None
    ) -> None:
        """`slot` tells the judges of one host apart; `core` is the CPU that everything of this judge runs on.
        `shared_programs`: what other hosts have compiled, where they share that.

        Raises HostError where the host cannot run cells as configured.
        """
        if core is not None:
            os.sched_setaffinity(0, {core})
        self._config = config
        self._first_uid = config.uid_base + slot * UIDS_PER_SLOT
        self._cgroups = open_cgroups(insecure_no_cgroup=config.insecure_no_cgroup)
        self._mounts = prebuilt.mounts(config)
        native.load(prebuilt.library(config))
        self._turn = Turn(config.locks_dir)
        self.compiler = Compiler(config, self._cell, shared_programs)
        self._workshop = Workshop(config, self, self.compiler, set())
        self._warm: Cell | None = None
        self._taken: set[Cell] = set()
        self._leaving: list[Cell] = []
        self._used_before_s = 0.0
        self._cells_made = 0
        self.tally = Tally()

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
        return self._judge(submission, language, cancel_fd, on_test)

    def run(self, asked: SingleRun, *, cancel_fd: int | None = None) -> SingleResult:
        """Run one program once, without a problem. Raises as `judge` does."""
        language = languages.resolve(asked.language)
        trials = SingleTrials(language, self.limits_here(language.id, asked.limits), asked.files, asked.fetch)
        judgement = self._judge(asked.submission(language), language, cancel_fd, None, trials)
        if trials.refused is not None:
            return SingleResult(replace(judgement, compile=trials.refused, tests=()), None)
        return SingleResult(judgement, trials.remains)

    def _judge(
        self,
        submission: Submission,
        language: Language,
        cancel_fd: int | None,
        on_test: OnTest | None,
        single: SingleTrials | None = None,
    ) -> Judgement:
        version = languages.version(language)
        submission = replace(submission, limits=self.limits_here(language.id, submission.limits))
        workshop, turn, tally = self._workshop, self._turn, self.tally
        with SubmissionRun(submission, language, workshop, turn, tally, cancel_fd, on_test, single) as run:
            started = time.monotonic()
            compiled = run.prepare()
            compile_s = time.monotonic() - started
            started = time.monotonic()
            results = run.all_tests() if compiled is None or compiled.ok else ()
            return Judgement(
                compile=compiled,
                tests=results,
                limits=submission.limits,
                language_version=version,
                secure=not self._config.insecure_no_cgroup,
                compile_s=compile_s,
                run_s=time.monotonic() - started,
            )

    def limits_here(self, language: str, limits: Limits) -> Limits:
        """Those that a program of the language (its id) has on this host, where it is to have `limits`."""
        return scaled(limits, self._config.time_factors.get(language, 1.0))

    def vet(self, problem: Problem, *, cancel_fd: int | None = None) -> None:
        """See that what decides on the problem is of use: programs among it are compiled, and kept so.

        Raises CheckerRefused, GraderFault, Cancelled.
        """
        with contextlib.closing(deciding(problem, self._workshop, Limits(), cancel_fd)) as vetted:
            twice(vetted.prepare, self.tally)

    # -- cells

    def warm(self) -> None:
        """Start the next submission's cell now, so that it is up when it is needed."""
        self._see_off()
        if self._warm is None:
            self._warm = self._new_cell()

    def take_cell(self) -> Cell:
        cell, self._warm = self._warm or self._new_cell(), None
        self._taken.add(cell)
        return cell

    def give_back(self, cell: Cell) -> None:
        """A cell is never used again; it goes in its own time."""
        self._taken.remove(cell)
        self._used_before_s += cell.used_s
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
        self.tally.cells_started += 1
        uid = self._first_uid + 2 * (self._cells_made % (UIDS_PER_SLOT // 2))
        try:
            group = self._cgroups.cell(f"cell-{self._cells_made}")
            try:
                return Cell(group, host_uid=uid, mounts=self._mounts)
            except OSError:
                group.close()
                raise
        except OSError as error:
            raise NoCell(f"could not start a cell: {error}") from error

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

    def take_tally(self) -> Tally:
        """What has been counted since this was last asked."""
        taken, self.tally = self.tally, Tally()
        return taken

    @property
    def used_s(self) -> float:
        return self._used_before_s + sum(cell.used_s for cell in self._taken)

    @property
    def workshop(self) -> Workshop:
        return self._workshop
