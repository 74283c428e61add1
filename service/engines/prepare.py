"""The in-process engine for this host: what the host can do, asked once, and what workers are told of it."""

from __future__ import annotations

import functools

import structlog

from sandbox import cgroups, host, languages, prebuilt
from sandbox.config import SandboxConfig
from sandbox.host import HostReport
from service.contract import GraderInfo
from service.engines.base import LanguageInfo
from service.engines.local import SILENCE_S, LocalEngine, WorkerSetup
from service.metrics import Metrics
from service.results import VERSION
from service.settings import Settings, usable_cores
from service.stores.problems import ProblemStore

_log = structlog.get_logger()


def sandbox_config(settings: Settings) -> SandboxConfig:
    return SandboxConfig(
        data_dir=settings.data_dir,
        insecure_no_cgroup=settings.insecure_no_cgroup,
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


def local_engine(settings: Settings, metrics: Metrics, *, silence_s: float = SILENCE_S) -> LocalEngine:
    """An engine that is ready to be started. Blocks while the host is checked and swept and headers are
    built. `silence_s`: how long a worker at work may say nothing.

    Raises HostError, which says what is missing and how to mend it.
    """
    config = sandbox_config(settings)
    report = host.prepare(config)
    if report.swept:
        _log.warning("swept what dead graders had left", control_groups=report.swept)
    graders = graders_of(report, config)
    setups = [
        WorkerSetup(
            slot=slot,
            core=core,
            data_dir=str(settings.data_dir),
            insecure_no_cgroup=config.insecure_no_cgroup,
            compile_cache_bytes=config.compile_cache_bytes,
            testlib=str(config.testlib),
            checker_cpu_s=config.checker_cpu_s,
            languages=None if config.languages is None else sorted(config.languages),
            time_factors=dict(config.time_factors),
            problem_cache_bytes=settings.problem_cache_mb * 2**20,
            graders={name: info.model_dump() for name, info in graders.items()},
        )
        for slot, core in enumerate(usable_cores()[: settings.workers])
    ]
    return LocalEngine(
        setups=setups,
        languages=tuple(
            LanguageInfo(
                language.id,
                language.name,
                language.version,
                language.aliases,
                languages.REGISTRY[language.id].self_test,
            )
            for language in languages.available(config.languages)
        ),
        sandbox=report.sandbox,
        secure=report.secure,
        graders=graders,
        store=ProblemStore(settings.problems_dir),
        queue_size=settings.queue_size,
        sweep=(lambda: None) if settings.insecure_no_cgroup else _sweep,
        recreate=functools.partial(_recreate, config),
        metrics=metrics,
        silence_s=silence_s,
    )


def _recreate(config: SandboxConfig) -> bool:
    """Make again what the data directory has lost under a running service; whether there was any. Raises HostError."""
    needed = [config.compiled_dir, config.locks_dir, *prebuilt.binds(config).values()]
    if all(path.exists() for path in needed):
        return False
    host.prepare(config)
    return True


def _sweep() -> None:
    cgroups.sweep(cgroups.here())
