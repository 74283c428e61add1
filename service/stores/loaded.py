"""Problems ready to be judged, kept by a worker between grades, so that each is read and translated once."""

from __future__ import annotations

from collections import OrderedDict

from service.contract import parse_problem
from service.stores.loading import LoadedProblem, load
from service.stores.problems import ProblemStore


class LoadedProblems:
    """The most recently used problems, bounded in bytes and in tests (each test may hold one descriptor).

    The latest one is always kept, however large.
    """

    def __init__(self, store: ProblemStore, *, limit_bytes: int, limit_tests: int) -> None:
        self._store = store
        self._limit_bytes = limit_bytes
        self._limit_tests = limit_tests
        self._kept: OrderedDict[str, LoadedProblem] = OrderedDict()
        self._cost_bytes = 0
        self._tests = 0

    def __contains__(self, identifier: str) -> bool:
        """Whether it is loaded."""
        return identifier in self._kept

    def get(self, identifier: str) -> LoadedProblem:
        """Raises what `ProblemStore.get` and `load` raise."""
        found = self._kept.get(identifier)
        if found is not None:
            self._kept.move_to_end(identifier)
            return found
        loaded = load(parse_problem(self._store.get(identifier)))
        self._kept[identifier] = loaded
        self._cost_bytes += loaded.cost_bytes
        self._tests += len(loaded.problem.tests)
        while len(self._kept) > 1 and (self._cost_bytes > self._limit_bytes or self._tests > self._limit_tests):
            _, dropped = self._kept.popitem(last=False)
            self._cost_bytes -= dropped.cost_bytes
            self._tests -= len(dropped.problem.tests)
        return loaded
