"""One grade's dealings with the results that are kept: whether its own is there, and is to be from now on."""

from __future__ import annotations

from sandbox.problem import Submission
from sandbox.verdicts import FAULT_VERDICTS
from service.contract import GradeRequest, GradeResult, GraderInfo
from service.results import Outcome
from service.verdicts.cache import UNSETTLED, VerdictCache
from service.verdicts.naming import name_of
from service.verdicts.settled import is_settled


class Keeping:
    def __init__(self, cache: VerdictCache, submission: Submission, request: GradeRequest, grader: GraderInfo) -> None:
        """`submission` with the limits that it really runs under. Raises UnknownLanguage."""
        self._cache = cache
        self._submission = submission
        self._key = name_of(submission, request, grader, cache.host)
        self._unsettled = False

    def known(self) -> GradeResult | None:
        """What an earlier grade came to; None where that is not known, or another run may come to something else."""
        known = self._cache.get(self._key)
        self._unsettled = known is UNSETTLED
        return known if isinstance(known, GradeResult) else None

    def keep(self, outcome: Outcome, result: bytes) -> None:
        """`result`: the whole of it, as JSON. A fault of the grader's leaves no trace."""
        if self._unsettled or any(test.verdict in FAULT_VERDICTS for test in outcome.tests):
            return
        if is_settled(outcome.compile, outcome.tests, self._submission.problem, self._submission.limits):
            self._cache.keep(self._key, result)
        else:
            self._cache.keep_unsettled(self._key)
