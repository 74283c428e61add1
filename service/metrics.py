"""What Prometheus may know of this service.

Counts and durations only: no ids, no sources, nothing of a test's data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from sandbox.verdicts import FAULT_VERDICTS, LIMIT_VERDICTS, Verdict
from service.engines.base import Summary
from service.errors import ServiceError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)

_WORKER_DIED = "worker_died"

#: How submissions mostly end, as verdict and category.
_ENDS = (
    ("accepted", "correct"),
    ("compile_error", "correctness_failure"),
    ("format_error", "format_error"),
    *((verdict.value, "optimization_failure") for verdict in LIMIT_VERDICTS),
    *((verdict.value, "correctness_failure") for verdict in (Verdict.WRONG_ANSWER, Verdict.RUNTIME_ERROR)),
    *((verdict.value, "none") for verdict in FAULT_VERDICTS),
)


class Metrics:
    """Every metric of one service, in a registry of its own so that two services may live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._grades = Counter(
            "rkgrade_grades",
            "Finished grades",
            ("language", "verdict", "category"),
            registry=self.registry,
        )
        self._tests = Counter("rkgrade_tests", "Tests by verdict", ("verdict",), registry=self.registry)
        self._compiles = Counter(
            "rkgrade_compiles",
            "Compilations asked for, by whether the cache had them",
            ("language", "cache"),
            registry=self.registry,
        )
        self._reruns = Counter(
            "rkgrade_reruns",
            "Tests run again because the host was under pressure",
            registry=self.registry,
        )
        self._faults = Counter("rkgrade_faults", "Faults of the grader, by cause", ("cause",), registry=self.registry)
        self._refused = Counter(
            "rkgrade_refused",
            "Requests answered with an error, by its type",
            ("type",),
            registry=self.registry,
        )
        self._cancelled = Counter(
            "rkgrade_cancelled", "Grades whose client left before the end", registry=self.registry
        )
        self._cells = Counter("rkgrade_cells_started", "Cells started", registry=self.registry)
        self._wait = Histogram(
            "rkgrade_queue_seconds",
            "Time from a grade's arrival to a worker taking it",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._compile = Histogram(
            "rkgrade_compile_seconds", "Time spent compiling", buckets=_SECONDS, registry=self.registry
        )
        self._run = Histogram(
            "rkgrade_run_seconds", "Time spent running tests", buckets=_SECONDS, registry=self.registry
        )

        # What has not happened yet is a 0, not a series that is missing: a rate over its first event would miss that.
        for verdict in Verdict:
            self._tests.labels(verdict.value)
        for cause in (*FAULT_VERDICTS, _WORKER_DIED):
            self._faults.labels(str(cause))
        for error in ServiceError.__subclasses__():
            self._refused.labels(error.type)

    def offer(self, languages: Iterable[str]) -> None:
        """Count from 0 what may be graded: `languages` are the ids of those that are."""
        for language in languages:
            for verdict, category in _ENDS:
                self._grades.labels(language, verdict, category)
            for cache in ("hit", "miss"):
                self._compiles.labels(language, cache)

    def watch(
        self,
        *,
        queue_length: Callable[[], float],
        queue_age_s: Callable[[], float],
        workers_alive: Callable[[], float],
        workers_busy: Callable[[], float],
    ) -> None:
        """Read these at each scrape. Called once, by the engine that has them."""
        for name, text, read in (
            ("rkgrade_queue_length", "Grades waiting for a worker", queue_length),
            ("rkgrade_queue_age_seconds", "Time the longest-waiting grade has waited", queue_age_s),
            ("rkgrade_workers_alive", "Workers able to grade", workers_alive),
            ("rkgrade_workers_busy", "Workers with a grade in hand", workers_busy),
        ):
            Gauge(name, text, registry=self.registry).set_function(read)

    def graded(self, summary: Summary) -> None:
        self._grades.labels(summary.language, summary.verdict, summary.category or "none").inc()
        for verdict, count in summary.tests.items():
            self._tests.labels(verdict).inc(count)
            if verdict in FAULT_VERDICTS:
                self._faults.labels(verdict).inc(count)
        if summary.compile_cached is not None:
            cache = "hit" if summary.compile_cached else "miss"
            self._compiles.labels(summary.language, cache).inc()
            self._compile.observe(summary.compile_s)
        self._reruns.inc(summary.reruns)
        self._cells.inc(summary.cells_started)
        self._wait.observe(summary.queue_s)
        self._run.observe(summary.run_s)

    def worker_died(self) -> None:
        self._faults.labels(_WORKER_DIED).inc()

    def cancelled(self) -> None:
        self._cancelled.inc()

    def refused(self, error_type: str) -> None:
        self._refused.labels(error_type).inc()

    def exposition(self) -> bytes:
        """The text format of Prometheus."""
        return generate_latest(self.registry)
