"""The HTTP application, put together. Decides nothing: routes do, on what it hands them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from service import contract
from service.bodies import Bodies
from service.engines.base import Engine
from service.engines.prepare import local_engine
from service.errors import DOCUMENTED, ProblemDetails, add_handlers
from service.intake import Intake
from service.logs import RequestLog
from service.metrics import Metrics
from service.readiness import Readiness
from service.results import VERSION
from service.routes import grade, health, languages, problems
from service.routes.context import Context
from service.settings import Settings
from service.stores.problems import ProblemStore


def create_app(settings: Settings, engine: Engine | None = None, metrics: Metrics | None = None) -> FastAPI:
    """The service. Starting it starts the engine, this host's own where none is given; stopping it drains
    and ends it.

    `metrics` is what `engine` counts in. Starting raises HostError where this host cannot run cells.
    """
    counted = metrics or Metrics()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        store = ProblemStore(settings.problems_dir)
        await asyncio.to_thread(store.sweep)
        runs = engine
        if runs is None:
            runs = await asyncio.to_thread(local_engine, settings, counted)
        counted.offer(language.id for language in runs.languages)
        intake = Intake(store, runs.languages)
        readiness = Readiness(runs, intake)
        bodies = Bodies(settings.body_limit_bytes)
        app.state.context = Context(settings, runs, intake, counted, readiness, bodies)
        await runs.start()
        establishing = asyncio.create_task(readiness.establish())
        try:
            yield
        finally:
            establishing.cancel()
            await asyncio.gather(establishing, return_exceptions=True)
            await runs.drain(settings.drain_timeout_s)
            await runs.close()

    app = FastAPI(
        title="rkgrade",
        version=VERSION,
        description="Grades programs against a problem's tests: verdicts by input size, nested rewards R_k, "
        "and how a program failed. Bodies may be gzip or zstd; errors are application/problem+json.",
        lifespan=lifespan,
        responses=DOCUMENTED,
    )
    for router in (grade.router, problems.router, languages.router, health.router):
        app.include_router(router)
    add_handlers(app, counted.refused)
    app.add_middleware(RequestLog, access_log=settings.access_log)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's document and the models of those bodies that routes read by themselves."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        roots, definitions = TypeAdapter.json_schemas(
            [
                ("Problem", "validation", contract.PROBLEMS),
                ("GradeRequest", "validation", TypeAdapter(contract.GradeRequest)),
                ("BatchRequest", "validation", TypeAdapter(contract.BatchRequest)),
                ("ProblemDetails", "serialization", TypeAdapter(ProblemDetails)),
            ],
            ref_template="#/components/schemas/{model}",
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = roots["Problem", "validation"]
        for name, schema in definitions["$defs"].items():
            schemas.setdefault(name, schema)
        app.openapi_schema = document
    return app.openapi_schema
