"""From a sample to its grade: which program it is, what its grade is kept by, and asking the grader.

Programs are taken from answers here, by the grader's own rules, so that the same program in two answers is graded once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection

from rl_client.async_client import AsyncGrader
from rl_client.errors import Refused, UnknownProblem
from rl_client.evaluate.errors import ProblemRefused
from rl_client.evaluate.rows import TOO_LONG, Generation, Grade
from rl_client.evaluate.settings import Grading
from rl_client.labels import THINK
from rl_client.rewards import is_fault
from rl_client.rollout import TRIES
from rl_client.sendable import sendable
from service.contract import MAX_SOURCE_CHARS, GradeRequest
from service.extraction import extract


class Programs:
    """Finds the programs of samples in one language, and what their grades are kept by."""

    def __init__(self, language: str, names: Collection[str], grading: Grading) -> None:
        """`language`: the grader's id of it. `names`: all of its names, in lower case."""
        self._language = language
        self._names = names
        self._grading = grading

    def program(self, one: Generation) -> str | None:
        """None where the answer has none."""
        if one.finish_reason == TOO_LONG:
            return None
        text = f"{THINK}{one.text}" if self._grading.thinking else one.text
        program = one.source if one.source is not None else extract(text, self._grading.extraction, self._names)
        if program is None or len(program) > MAX_SOURCE_CHARS:
            return None
        return sendable(program)

    def hash(self, one: Generation) -> str:
        """What its grade is kept by. How a program is found in an answer is no part of it: the program is."""
        options = self._grading.model_dump(mode="json", exclude={"extraction", "thinking"})
        named = [self.program(one), one.problem_id, self._language, options]
        return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()


class Judge(Programs):
    """Grades samples in one language, one way."""

    def __init__(
        self, grader: AsyncGrader, language: str, names: Collection[str], grading: Grading, *, fresh: bool = False
    ) -> None:
        """`fresh`: programs are run also where the grader knows what an earlier run of them came to."""
        super().__init__(language, names, grading)
        self._grader = grader
        self._fresh = fresh

    async def grade(self, one: Generation, name: str) -> Grade:
        """Graded again where the grader fails at it, a few times; then the grade is such a fault. `name`: its hash.

        Raises ProblemRefused, GraderError.
        """
        request = self._request(one)
        for attempt in range(1, TRIES + 1):
            try:
                result = await self._grader.grade(request)
            except UnknownProblem as error:
                raise ProblemRefused(
                    f"{one.key}: the grader has lost the problem: begin again, to send it again"
                ) from error
            except Refused as error:
                raise ProblemRefused(f"{one.key}, sample {one.sample}: {error}") from error
            if not is_fault(result) or attempt == TRIES:
                return Grade.of(name, one.key, result, attempt)
        raise AssertionError("the last try returns")

    def _request(self, one: Generation) -> GradeRequest:
        program = self.program(one)
        grading = self._grading
        return GradeRequest(
            problem=one.problem_id,
            language=self._language,
            source=program,
            # An answer without a program, which tells the tests that it fails.
            completion="" if program is None else None,
            time_factor=grading.time_factor,
            # Tests go by input length, so that each R_k, and the category by this rule, is exact all the same.
            stop="first_failure" if grading.taxonomy == "first_failure" else "never",
            taxonomy=grading.taxonomy,
            length_unit=grading.length_unit,
            fresh=self._fresh,
        )
