"""A worker's place of work, whichever engine it works for: a judge on a core of its own, loaded problems, and one piece
of work after another.

Imports no web framework, to stay small. Knows nothing of how work comes in and how answers go out.
"""

from __future__ import annotations

from dataclasses import replace

from sandbox import errors
from sandbox.judge import Judge
from service.contract import parse_problem
from service.descriptors import raise_descriptor_limit
from service.engines.answers import CORRUPT_PROBLEM, UNKNOWN_PROBLEM, Answer, Cancelled, Failed, Refused, Vetted
from service.engines.base import Graded, Job, Ran, ToolCall
from service.engines.caches import caches
from service.engines.setup import WorkerSetup
from service.grading import Grading, LimitsRefused
from service.stores.loaded import LoadedProblems
from service.stores.loading import load
from service.stores.problems import CorruptProblem, ProblemStore, ProblemStoreError, UnknownProblem
from service.tool_calls import run

#: Descriptors left to cells and to the interpreter, beside those of loaded tests.
_SPARE_FDS = 512


class Bench:
    """What raises here is a fault of this program's, which no answer stands for."""

    def __init__(self, setup: WorkerSetup) -> None:
        """From here on this process runs on the setup's core. Raises HostError."""
        self._caches = caches(setup)
        self._graders = setup.graders
        self._judge = Judge(setup.config, setup.slot, setup.core, self._caches.programs)
        try:
            problems = LoadedProblems(
                _store(setup),
                limit_bytes=setup.problem_cache_bytes,
                limit_tests=raise_descriptor_limit() - _SPARE_FDS,
            )
            self._grading = Grading(self._judge, problems, graders=setup.graders, verdicts=self._caches.verdicts)
            self._judge.warm()
        except BaseException:
            self._judge.close()
            raise

    def warm(self) -> None:
        """Make ready for the next piece of work, while there is none."""
        self._judge.warm()

    def close(self) -> None:
        self._judge.close()

    def grade(self, job: Job, *, queue_s: float, cancel_fd: int) -> Answer:
        """Cancelled as soon as `cancel_fd` is readable."""
        return self._with_faults(graded(self._grading, job, queue_s=queue_s, cancel_fd=cancel_fd))

    def vet(self, problem: bytes, *, cancel_fd: int) -> Answer:
        """Compile what programs the problem, given as JSON, has of its own."""
        try:
            self._judge.vet(load(parse_problem(problem)).problem, cancel_fd=cancel_fd)
        except errors.Cancelled:
            return Cancelled()
        except errors.CheckerRefused as error:
            return Refused(error.field, str(error))
        except errors.GraderFault as fault:
            return Failed(f"the problem's own programs could not be compiled: {fault}")
        return Vetted()

    def run(self, call: ToolCall, *, queue_s: float, cancel_fd: int) -> Answer:
        """A program by itself. Cancelled as soon as `cancel_fd` is readable."""
        try:
            grader = self._graders[call.request.language]
            ran = run(self._judge, call, grader=grader, queue_s=queue_s, cancel_fd=cancel_fd)
        except errors.Cancelled:
            return Cancelled()
        except errors.UnknownLanguage as error:
            return Refused("language", str(error))
        return self._with_faults(ran)

    def _with_faults(self, answer: Answer) -> Answer:
        """The answer, with what shared caches have failed of meanwhile."""
        if isinstance(answer, (Graded, Ran)) and (faults := self._caches.take_faults()):
            return replace(answer, summary=replace(answer.summary, cache_faults=faults))
        return answer


def graded(grading: Grading, job: Job, *, queue_s: float, cancel_fd: int) -> Answer:
    try:
        return grading.grade(job, queue_s=queue_s, cancel_fd=cancel_fd)
    except errors.Cancelled:
        return Cancelled()
    except UnknownProblem:
        return Refused(UNKNOWN_PROBLEM, f"no problem {job.problem_id} is stored here")
    except CorruptProblem:
        return Refused(CORRUPT_PROBLEM, f"what is stored as {job.problem_id} is damaged; send the problem again")
    except ProblemStoreError as error:
        return Failed(f"the problem could not be had from the store: {error or type(error).__name__}")
    except errors.CheckerRefused as error:
        return Refused(f"problem.{error.field}", str(error))
    except errors.UnknownLanguage as error:
        return Refused("language", str(error))
    except LimitsRefused as error:
        return Refused("time_factor", str(error))


def _store(setup: WorkerSetup) -> ProblemStore:
    if setup.store_url is None:
        # Who put problems there keeps it bounded.
        return ProblemStore(setup.problems_dir)
    from service.stores.shared import open_store

    return open_store(setup.problems_dir, setup.store_url, limit_bytes=setup.problem_store_bytes)
