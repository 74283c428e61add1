"""The in-process engine for this host: what the host can do, asked once, and what workers are told of it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import PurePath

import structlog

from sandbox import cgroups, host, languages, prebuilt
from sandbox.config import SandboxConfig
from sandbox.host import HostReport
from service.contract import GraderInfo
from service.engines.base import LanguageInfo
from service.engines.local import MOST_ATTEMPTS, LocalEngine
from service.engines.process import SILENCE_S
from service.engines.setup import Sharing, WorkerSetup
from service.engines.workforce import Workforce
from service.metrics import Metrics
from service.results import VERSION
from service.sessions.keeper import Keeper
from service.settings import Settings, usable_cores, usable_memory_bytes
from service.stores.secret import read_secret
from service.stores.shared import open_store

_log = structlog.get_logger()


def sandbox_config(settings: Settings) -> SandboxConfig:
    return SandboxConfig(
        data_dir=settings.data_dir,
        insecure_no_cgroup=settings.insecure_no_cgroup,
        uid_base=settings.uid_base,
        compile_cache_bytes=settings.compile_cache_mb * 2**20,
        testlib=settings.testlib,
        checker_cpu_s=settings.checker_cpu_s,
        languages=settings.offered_languages,
        time_factors=settings.time_factors,
    )


def graders_of(report: HostReport, config: SandboxConfig) -> dict[str, GraderInfo]:
    """By id of each language offered here: what results say of the grader."""
    return {
        language.id: GraderInfo(
            version=VERSION,
            sandbox=report.sandbox,
            language_version=language.version,
            secure=report.secure,
        )
        for language in languages.available(config.languages)
    }


def local_engine(
    settings: Settings,
    metrics: Metrics,
    *,
    silence_s: float = SILENCE_S,
    most_attempts: int = MOST_ATTEMPTS,
    memory_bytes: float | None = None,
    redis_url: str | None = None,
) -> LocalEngine:
    """An engine that is ready to be started. Blocks while the host is checked and swept and headers are
    built. `silence_s`: how long a worker at work may say nothing. `most_attempts`: workers that may die over one job.
    `memory_bytes`: what programs may use together, if not what the settings say. `redis_url`: where workers share what
    they have found out with other hosts'.

    Raises HostError, which says what is missing and how to mend it.
    """
    config = sandbox_config(settings)
    _log.info("preparing this host; the first time takes a minute: headers and class archives are made")
    report = host.prepare(config)
    metrics.swept(report.swept)
    if not config.insecure_no_cgroup:
        metrics.watch_cells(functools.partial(cgroups.cells_alive, cgroups.here()))
    if report.swept:
        _log.warning("swept what dead graders had left", control_groups=report.swept)
    graders = graders_of(report, config)
    sharing = Sharing(
        # Where limits can be evaded, results are not worth keeping.
        verdicts_bytes=settings.verdict_cache_mb * 2**20 if settings.verdict_cache and report.secure else None,
        verdicts_s=settings.verdict_cache_s,
        redis_url=redis_url,
        programs_secret=None if settings.store_secret_file is None else read_secret(settings.store_secret_file).hex(),
        programs_bytes=settings.store_programs_mb * 2**20 or None,
    )
    setups = [
        WorkerSetup(
            slot=slot,
            core=core,
            config=config,
            problems_dir=settings.problems_dir,
            store_url=settings.store_url,
            problem_store_bytes=settings.problem_store_bytes,
            problem_cache_bytes=settings.problem_cache_mb * 2**20,
            graders=graders,
            sharing=sharing,
        )
        for slot, core in enumerate(usable_cores()[: settings.workers])
    ]
    workforce = Workforce(
        setups,
        command=(sys.executable, "-m", "service.engines.worker"),
        sweep=(lambda: None) if settings.insecure_no_cgroup else functools.partial(_sweep, metrics),
        recreate=functools.partial(_recreate, config),
        died=metrics.worker_died,
        silence_s=silence_s,
    )
    return LocalEngine(
        workforce,
        languages=tuple(
            LanguageInfo(
                language.id,
                language.name,
                language.version,
                language.aliases,
                PurePath(languages.REGISTRY[language.id].source_name).suffix,
                languages.REGISTRY[language.id].self_test,
            )
            for language in languages.available(config.languages)
        ),
        sandbox=report.sandbox,
        secure=report.secure,
        graders=graders,
        store=open_store(settings.problems_dir, settings.store_url),
        queue_size=settings.queue_size,
        metrics=metrics,
        most_attempts=most_attempts,
        memory_bytes=memory_bytes_of(settings) if memory_bytes is None else memory_bytes,
        sessions=_sessions(settings, config, metrics) if settings.sessions else None,
    )


def _sessions(settings: Settings, config: SandboxConfig, metrics: Metrics) -> Callable[[Callable[[int], None]], Keeper]:
    cores = usable_cores()
    return lambda set_aside: Keeper(
        config,
        slot=settings.workers,
        most=settings.sessions,
        lifetime_s=settings.session_lifetime_s,
        memory_bytes=memory_bytes_of(settings),
        set_aside=set_aside,
        # Those that no judge is pinned to, if there are any.
        cores=frozenset(cores[settings.workers :] or cores),
        metrics=metrics,
    )


def memory_bytes_of(settings: Settings) -> int:
    """What programs may use together on this host."""
    return usable_memory_bytes() if settings.memory_mb is None else settings.memory_mb * 2**20


def _recreate(config: SandboxConfig) -> bool:
    """Make again what the data directory has lost under a running service; whether there was any. Raises HostError."""
    needed = [config.compiled_dir, config.locks_dir, *prebuilt.needed(config)]
    if all(path.exists() for path in needed):
        return False
    host.prepare(config)
    return True


def _sweep(metrics: Metrics) -> None:
    metrics.swept(cgroups.sweep(cgroups.here()))
