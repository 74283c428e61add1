"""The evaluation itself: what is missing is sampled, what is not graded is graded, both at once and kept as they come.

What is under way is bounded: so many requests to the model's server, so many programs at the grader, and few samples
between the two. Knows neither files nor terminals.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rl_client.async_client import AsyncGrader
from rl_client.datasets.importing import Candidate, Skipped, encoded
from rl_client.datasets.row import RowError
from rl_client.encoded import EncodedProblem
from rl_client.errors import Refused
from rl_client.evaluate.completions import Completions
from rl_client.evaluate.conversing import Conversations
from rl_client.evaluate.errors import ServerUnfit
from rl_client.evaluate.grading import Judge
from rl_client.evaluate.rows import TOO_LONG, Generation, Grade
from rl_client.evaluate.sampling import Chunk, chunks, sample
from rl_client.evaluate.server import ModelServer
from rl_client.evaluate.settings import Manifest, Sampling
from rl_client.evaluate.stores import Generations, Grades, Kept
from rl_client.evaluate.tasks import Task


class Watcher(Protocol):
    """Told of everything as it happens."""

    def skipped(self, skipped: Skipped) -> None: ...

    def read(self, done_bytes: int, tasks: int) -> None: ...

    def planned(self, samples: int, sampled: int, grades: Sequence[Grade]) -> None:
        """How many samples there are to be, how many there are, and the grades of those that have one."""
        ...

    def sampled(self, samples: int) -> None: ...

    def graded(self, grade: Grade) -> None:
        """Of one more sample, be it graded now or with an equal one."""
        ...


@dataclass(frozen=True, slots=True)
class Stage:
    """Where work goes: to the model's server, and to the grader."""

    server: ModelServer | None
    """None where completions come from a file."""
    requests: int
    """To the server, at once."""
    grader: AsyncGrader
    programs: int
    """At the grader, at once."""


class Evaluation:
    """One evaluation, within one event loop."""

    def __init__(
        self,
        manifest: Manifest,
        stage: Stage,
        judge: Judge,
        generations: Generations,
        grades: Grades,
        watcher: Watcher,
    ) -> None:
        self._manifest = manifest
        self._stage = stage
        self._judge = judge
        self._generations = generations
        self._grades = grades
        self._watcher = watcher
        self._grading: dict[str, asyncio.Future[Grade]] = {}
        self._fits = False
        """Whether the model has had room for a prompt."""
        self._held: list[Generation] = []
        self._refused: dict[str, str] = {}
        self._kept: list[tuple[Task, int]] = []
        """What was sampled, and is not on its way to the grader yet."""
        self.tasks: dict[str, Task] = {}
        """By their ids, in the order of their rows."""

    # -- the problems

    async def read(self, candidates: Iterable[Candidate]) -> None:
        """Take the problems in, and send those to the grader of which something is to be graded.

        Raises DatasetError, BadTemplate, GraderError.
        """
        for candidate in candidates:
            try:
                entry, problem = encoded(candidate)
                task = Task.of(entry, problem, self._manifest)
                if not self._is_done(task):
                    await self._send(problem)
            except RowError as error:
                self._watcher.skipped(Skipped(candidate.path, candidate.number, error.fault, error.detail))
            else:
                # A set may have a row twice; it is one problem all the same.
                self.tasks[task.id] = task
            self._watcher.read(candidate.done_bytes, len(self.tasks))

    async def _send(self, problem: EncodedProblem) -> None:
        try:
            await self._stage.grader.put_problem(problem)
        except Refused as refused:
            raise RowError("refused", str(refused)) from refused

    def fewest(self) -> int:
        """Samples that each problem has or is to have; of a file's, those that have any."""
        if self._manifest.samples is not None:
            return self._manifest.samples
        counts = (sum(1 for _ in self.samples(task)) for task in self.tasks.values())
        return min(filter(None, counts), default=0)

    def _is_done(self, task: Task) -> bool:
        kept = [self._generations.get(task.id, number) for number in self.samples(task)]
        whole = len(kept) == self._manifest.samples or (self._manifest.samples is None and kept)
        return bool(whole) and all(one is not None and self._grades.has(one.grade) for one in kept)

    def samples(self, task: Task) -> Iterator[int]:
        """Those of a task that there are and that count."""
        most = self._manifest.samples
        for number in itertools.count() if most is None else range(most):
            if self._generations.get(task.id, number) is not None:
                yield number
            elif most is None:
                return

    def results(self) -> Iterator[tuple[Task, list[tuple[Kept, Grade]]]]:
        """What the samples of each problem came to, of those that were graded."""
        for task in self.tasks.values():
            kept = (self._generations.get(task.id, number) for number in self.samples(task))
            graded = ((one, self._grades.get(one.grade)) for one in kept if one is not None)
            yield task, [(one, grade) for one, grade in graded if grade is not None]

    def programs(self) -> Iterator[tuple[Task, list[str]]]:
        """Those of the samples of each problem; empty texts where an answer has none."""
        for task in self.tasks.values():
            samples = (self._generations.read(task.id, number) for number in self.samples(task))
            yield task, [self._judge.program(one) or "" for one in samples]

    # -- completions that are there

    def take(self, completions: Completions) -> None:
        """Keep what a file holds, or nothing of one with a bad line: it would be another file once that is mended.

        Raises DatasetError, BadCompletions.
        """
        for _ in completions:
            pass
        for one in completions:
            if self._generations.get(one.task, one.sample) is None:
                self._generations.add([one])

    # -- sampling and grading

    async def run(self) -> None:
        """Raises ServerError, ProblemRefused, ClientError, DatasetError; what was done by then is kept."""
        there = [(task, number) for task in self.tasks.values() for number in self.samples(task)]
        missing = self.missing()
        kept = [self._generations.get(task.id, number) for task, number in there]
        self._fits = any(one is not None and one.finish_reason != TOO_LONG for one in kept)
        known = [self._known(one) for one in kept]
        grades = [grade for grade in known if grade is not None]
        self._watcher.planned(len(there) + sum(chunk.count for chunk in missing), len(there), grades)
        ungraded = [one for one, grade in zip(there, known, strict=True) if grade is None]
        self._ungraded: asyncio.Queue[tuple[Task, int]] = asyncio.Queue(2 * self._stage.programs)
        try:
            async with asyncio.TaskGroup() as group:
                graders = [group.create_task(self._grade_all()) for _ in range(self._stage.programs)]
                async with asyncio.TaskGroup() as producers:
                    producers.create_task(self._feed(ungraded))
                    work = iter(missing)
                    for _ in range(min(self._stage.requests, len(missing))):
                        producers.create_task(self._sample_all(work))
                self._require_room()
                await self._ungraded.join()
                for grader in graders:
                    grader.cancel()
        except BaseExceptionGroup as errors:
            raise _first(errors) from None

    def missing(self) -> list[Chunk]:
        """What is to be sampled: by the number of the sample, so that all problems have their first ones first."""
        source = self._manifest.source
        if not isinstance(source, Sampling):
            return []
        size = source.chunk if source.setting == "reasoning" else 1
        found = []
        for task in self.tasks.values():
            numbers = range(self._manifest.samples or 0)
            found += chunks(task, (one for one in numbers if self._generations.get(task.id, one) is None), size)
        return sorted(found, key=lambda chunk: chunk.first)

    def _require_room(self) -> None:
        """Raises ServerUnfit where the model has no room for a single prompt."""
        if self._held:
            words = "the model has no room for any of the prompts, with so many tokens for an answer (--max-tokens)"
            raise ServerUnfit(f"{words}: {self._held[0].refusal}")

    def _known(self, kept: Kept | None) -> Grade | None:
        """The grade of a sample, unless there is none yet, or none but a fault of the grader's."""
        return self._grades.get(kept.grade) if kept is not None and self._grades.has(kept.grade) else None

    async def _feed(self, ungraded: Iterable[tuple[Task, int]]) -> None:
        for one in ungraded:
            await self._ungraded.put(one)

    async def _sample_all(self, work: Iterator[Chunk]) -> None:
        sampled = self._sampler()
        for chunk in work:
            await sampled(chunk)
            kept, self._kept = self._kept, []
            for one in kept:
                await self._ungraded.put(one)

    def _sampler(self) -> Callable[[Chunk], Awaitable[None]]:
        source, server = self._manifest.source, self._stage.server
        assert isinstance(source, Sampling)
        assert server is not None
        if source.setting == "reasoning":
            return lambda chunk: sample(server, source, chunk, self._keep, self._refused)
        conversations = Conversations(server, self._stage.grader, source, self._manifest.language)

        async def sampled(chunk: Chunk) -> None:
            self._keep([await conversations.sample(chunk.task, chunk.first)])

        return sampled

    def _keep(self, generations: Sequence[Generation]) -> None:
        """Samples whose prompts are too long are held back until one fits: it may be the bounds that are wrong."""
        self._held += generations
        self._fits = self._fits or any(one.finish_reason != TOO_LONG for one in generations)
        if self._fits:
            held, self._held = self._held, []
            self._generations.add(held)
            self._kept += ((self.tasks[one.task], one.sample) for one in held)
            self._watcher.sampled(len(held))

    async def _grade_all(self) -> None:
        while True:
            task, number = await self._ungraded.get()
            await self._grade(task, number)
            self._ungraded.task_done()

    async def _grade(self, task: Task, number: int) -> None:
        kept = self._generations.get(task.id, number)
        assert kept is not None
        grade = self._known(kept)
        # The same program of another sample, or a fault that stays, is not graded again in this run.
        if grade is None and (other := self._grading.get(kept.grade)) is not None:
            grade = await other
        elif grade is None:
            self._grading[kept.grade] = mine = asyncio.get_running_loop().create_future()
            grade = await self._judge.grade(self._generations.read(task.id, number), kept.grade)
            self._grades.add(grade)
            mine.set_result(grade)
        self._watcher.graded(grade)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error, however deep; one that nobody waits for any more is told of by the others."""
    found = errors.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
