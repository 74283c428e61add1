"""What Prometheus may know of this service.

Counts and durations only: no ids, no sources, nothing of a test's data. One process counts: workers tell it what they
met in the summary of each grade, so that nothing is shared between processes and no count is lost to a worker's death.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from sandbox.errors import FAULT_CAUSES
from sandbox.verdicts import FAULT_VERDICTS, LIMIT_VERDICTS, Verdict
from service.contract import RunStatus
from service.engines.base import Summary
from service.errors import ServiceError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)

_WORKER_DIED = "worker_died"
_CACHE = ("hit", "miss")
_COMPILE_CACHE = ("hit", "shared", "miss")

#: Of what workers share: results, and compiled programs.
_SHARED = ("verdicts", "programs")

#: How submissions mostly end, as verdict and category.
_ENDS = (
    ("accepted", "correct"),
    ("compile_error", "correctness_failure"),
    ("format_error", "format_error"),
    *((verdict.value, "optimization_failure") for verdict in LIMIT_VERDICTS),
    *((verdict.value, "correctness_failure") for verdict in (Verdict.WRONG_ANSWER, Verdict.RUNTIME_ERROR)),
    *((verdict.value, "none") for verdict in FAULT_VERDICTS),
)


#: Why a session ends: its client says so, one of its bounds, its client's token, or a fault.
ENDS_OF_SESSIONS = ("closed", "idle", "lifetime", "cpu", "token", "lost", "failed", "shutdown")


@dataclass(frozen=True, slots=True)
class Load:
    """How much there is to do, and who is there to do it."""

    queue_length: int
    queue_age_s: float
    """How long the first has waited."""
    workers_alive: int
    workers_busy: int


@dataclass(slots=True)
class Found:
    """What was looked for in a cache since this process started, and whether it was there."""

    hits: int = 0
    misses: int = 0


@dataclass(frozen=True, slots=True)
class _Watched:
    queue_length: Callable[[], float]
    queue_age_s: Callable[[], float]
    workers_alive: Callable[[], float]
    workers_busy: Callable[[], float]


class Metrics:
    """Every metric of one service, in a registry of its own so that two services may live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._watched: _Watched | None = None
        self.verdicts = Found()
        self._grades = Counter(
            "rkgrade_grades",
            "Finished grades",
            ("language", "verdict", "category"),
            registry=self.registry,
        )
        self._runs = Counter(
            "rkgrade_runs", "Finished runs of single programs", ("language", "status"), registry=self.registry
        )
        self._sessions = Counter(
            "rkgrade_sessions", "Sessions that have ended, by why", ("end",), registry=self.registry
        )
        self._commands = Counter("rkgrade_session_commands", "Commands run in sessions", registry=self.registry)
        self._tests = Counter("rkgrade_tests", "Tests by verdict", ("verdict",), registry=self.registry)
        self._compiles = Counter(
            "rkgrade_compiles",
            "Compilations asked for, by whether this host's cache had them, or the store that hosts share",
            ("language", "cache"),
            registry=self.registry,
        )
        self._reruns = Counter(
            "rkgrade_reruns",
            "Tests run again because the host was under pressure",
            registry=self.registry,
        )
        self._faults = Counter("rkgrade_faults", "Faults of the grader, by cause", ("cause",), registry=self.registry)
        self._provoked = Counter(
            "rkgrade_provoked",
            "Checker errors that were brought about by what the program under test wrote",
            registry=self.registry,
        )
        self._refused = Counter(
            "rkgrade_refused",
            "Requests answered with an error, by its type",
            ("type",),
            registry=self.registry,
        )
        self._requests = Counter(
            "rkgrade_requests",
            "Requests let in by a token, by the name that belongs to it",
            ("client",),
            registry=self.registry,
        )
        self._problems_removed = Counter(
            "rkgrade_problems_removed", "Stored problems that have made room for others", registry=self.registry
        )
        self._cancelled = Counter(
            "rkgrade_cancelled", "Grades whose client left before the end", registry=self.registry
        )
        self._requested = Histogram(
            "rkgrade_request_seconds",
            "Time from a request's first byte to the last of its answer",
            ("method", "route", "status"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._problems = Counter(
            "rkgrade_problem_loads",
            "Problems that grades asked for, by whether their worker had them loaded",
            ("cache",),
            registry=self.registry,
        )
        self._verdicts = Counter(
            "rkgrade_verdict_lookups",
            "Grades whose result was looked for among those of earlier ones, by whether it was there",
            ("cache",),
            registry=self.registry,
        )
        self._cache_faults = Counter(
            "rkgrade_cache_faults",
            "Times a cache that workers share failed, and was done without for a while",
            ("cache",),
            registry=self.registry,
        )
        self._cpu = Counter(
            "rkgrade_program_cpu_seconds", "CPU time of programs under test", ("language",), registry=self.registry
        )
        self._wall = Counter(
            "rkgrade_program_wall_seconds",
            "Wall time of programs under test, waiting for a core included",
            ("language",),
            registry=self.registry,
        )
        self._oom_kills = Counter(
            "rkgrade_oom_kills",
            "Processes of programs killed for memory: at their own limit, or because the host had none left",
            ("by",),
            registry=self.registry,
        )
        self._sandbox_faults = Counter(
            "rkgrade_sandbox_faults",
            "Faults met while programs ran, by cause; each is tried again once",
            ("cause",),
            registry=self.registry,
        )
        self._swept = Counter(
            "rkgrade_leftovers_swept",
            "Directories of control groups that dead graders had left, and that were cleared away",
            registry=self.registry,
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
            "rkgrade_run_seconds",
            "Time spent running tests, or a single program",
            buckets=_SECONDS,
            registry=self.registry,
        )

        # What has not happened yet is a 0, not a series that is missing: a rate over its first event would miss that.
        for verdict in Verdict:
            self._tests.labels(verdict.value)
        for cause in (*FAULT_VERDICTS, _WORKER_DIED):
            self._faults.labels(str(cause))
        for error in ServiceError.__subclasses__():
            self._refused.labels(error.type)
        for cache in _CACHE:
            self._problems.labels(cache)
            self._verdicts.labels(cache)
        for cache in _SHARED:
            self._cache_faults.labels(cache)
        for by in ("limit", "host"):
            self._oom_kills.labels(by)
        for cause in FAULT_CAUSES:
            self._sandbox_faults.labels(cause)
        ProcessCollector(registry=self.registry)

    def offer(self, languages: Iterable[str]) -> None:
        """Count from 0 what may be graded: `languages` are the ids of those that are."""
        for language in languages:
            for verdict, category in _ENDS:
                self._grades.labels(language, verdict, category)
            for cache in _COMPILE_CACHE:
                self._compiles.labels(language, cache)
            for status in get_args(RunStatus):
                self._runs.labels(language, str(status))
            self._cpu.labels(language)
            self._wall.labels(language)

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
        self._watched = _Watched(queue_length, queue_age_s, workers_alive, workers_busy)

    def load(self) -> Load:
        """What is watched, as it is now; nothing where no engine is watched yet."""
        watched = self._watched
        if watched is None:
            return Load(0, 0.0, 0, 0)
        return Load(
            queue_length=int(watched.queue_length()),
            queue_age_s=watched.queue_age_s(),
            workers_alive=int(watched.workers_alive()),
            workers_busy=int(watched.workers_busy()),
        )

    def watch_cells(self, alive: Callable[[], float]) -> None:
        """Read at each scrape how many cells there are. Called once, where cells are started."""
        Gauge("rkgrade_cells_alive", "Cells that exist", registry=self.registry).set_function(alive)

    def watch_sessions(self, are_open: Callable[[], float]) -> None:
        """Read at each scrape how many sessions are open. Called once, where there can be any."""
        Gauge("rkgrade_sessions_open", "Sessions that are open", registry=self.registry).set_function(are_open)
        for why in ENDS_OF_SESSIONS:
            self._sessions.labels(why)

    def session_ended(self, why: str) -> None:
        self._sessions.labels(why).inc()

    def commanded(self) -> None:
        self._commands.inc()

    def graded(self, summary: Summary) -> None:
        self._grades.labels(summary.language, summary.verdict, summary.category or "none").inc()
        self._met(summary)
        if summary.problem_cached is not None:
            self._problems.labels("hit" if summary.problem_cached else "miss").inc()
        if summary.verdict_cached is not None:
            self._looked_up(summary.verdict_cached)
        if not summary.verdict_cached:
            self._ran(summary)

    def ran(self, summary: Summary) -> None:
        """A single program has run."""
        self._runs.labels(summary.language, summary.verdict).inc()
        if summary.verdict in FAULT_VERDICTS:
            self._faults.labels(summary.verdict).inc()
        self._met(summary)
        self._ran(summary)

    def _met(self, summary: Summary) -> None:
        self._wait.observe(summary.queue_s)
        # What its worker met since the last one, whether it was for this one or for one that was cancelled.
        self._cells.inc(summary.cells_started)
        self._oom_kills.labels("limit").inc(summary.oom_kills)
        self._oom_kills.labels("host").inc(summary.host_oom_kills)
        for cause, count in summary.sandbox_faults.items():
            self._sandbox_faults.labels(cause).inc(count)
        for cache in summary.cache_faults:
            self._cache_faults.labels(cache).inc()

    def _looked_up(self, hit: bool) -> None:
        self._verdicts.labels("hit" if hit else "miss").inc()
        if hit:
            self.verdicts.hits += 1
        else:
            self.verdicts.misses += 1

    def _ran(self, summary: Summary) -> None:
        """What only counts where something was run for it."""
        for verdict, count in summary.tests.items():
            self._tests.labels(verdict).inc(count)
            if verdict in FAULT_VERDICTS:
                self._faults.labels(verdict).inc(count)
        if summary.compile_cache is not None:
            self._compiles.labels(summary.language, summary.compile_cache).inc()
            self._compile.observe(summary.compile_s)
        self._cpu.labels(summary.language).inc(summary.cpu_s)
        self._wall.labels(summary.language).inc(summary.wall_s)
        self._reruns.inc(summary.reruns)
        self._provoked.inc(summary.provoked)
        self._run.observe(summary.run_s)

    def worker_died(self) -> None:
        self._faults.labels(_WORKER_DIED).inc()

    def swept(self, directories: int) -> None:
        self._swept.inc(directories)

    def problems_removed(self, count: int) -> None:
        self._problems_removed.inc(count)

    def answered(self, method: str, route: str, status: str, seconds: float) -> None:
        """`route` is a template, such as "/problems/{identifier}": there are few of them."""
        self._requested.labels(method, route, status).observe(seconds)

    def cancelled(self) -> None:
        self._cancelled.inc()

    def let_in(self, client: str) -> None:
        self._requests.labels(client).inc()

    def refused(self, error_type: str) -> None:
        self._refused.labels(error_type).inc()

    def exposition(self) -> bytes:
        """The text format of Prometheus."""
        return generate_latest(self.registry)
