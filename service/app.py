"""The HTTP application, put together. Decides nothing: routes do, on what it hands them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from service import contract, heap
from service.auth import Tokens
from service.bodies import Bodies
from service.engines.base import Engine
from service.engines.choice import chosen
from service.guard import Guard
from service.history import History
from service.intake import Intake
from service.logs import RequestLog
from service.metrics import Metrics
from service.problem_json import DOCUMENTED, ProblemDetails, add_handlers
from service.readiness import Readiness
from service.request_times import RequestTimes
from service.results import VERSION
from service.rewarding import Rewarding
from service.routes import (
    compat,
    grade,
    health,
    jobs,
    languages,
    page,
    problems,
    run,
    sandbox_fusion,
    sessions,
    status,
    terminal,
)
from service.routes.context import Context
from service.settings import Settings
from service.stores.shared import open_store
from service.waiting import Waiting

#: What needs no token: whether the process lives is nobody's secret, and what asks has none.
_OPEN_PATHS = ("/openapi.json", "/health/live", "/health/ready", *page.PATHS)


def create_app(
    settings: Settings,
    engine: Engine | None = None,
    metrics: Metrics | None = None,
    tokens: Tokens | None = None,
    rewarding: Rewarding | None = None,
) -> FastAPI:
    """The service. Starting it starts the engine, this host's own where none is given; stopping it drains
    and ends it.

    `rewarding`: what trainers' answers are rewarded by; without it there are no routes for them.
    `metrics` is what `engine` counts in. `tokens`: those of the settings' file, where they have been read already.
    Raises TokensRefused; starting raises HostError where this host cannot run cells.
    """
    if tokens is None and settings.tokens_file is not None:
        tokens = Tokens(settings.tokens_file)
    counted = metrics or Metrics()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        store = open_store(
            settings.problems_dir,
            settings.store_url,
            limit_bytes=settings.problem_store_bytes,
            removed=counted.problems_removed,
        )
        await asyncio.to_thread(store.sweep)
        runs = engine
        if runs is None:
            runs = await asyncio.to_thread(chosen, settings, counted)
        intake = Intake(store, lambda: runs.languages)
        readiness = Readiness(runs, intake)
        bodies = Bodies(settings.body_limit_bytes)
        waiting = Waiting(runs.admission)
        app.state.context = Context(settings, runs, intake, counted, readiness, bodies, History(), waiting)
        if tokens is not None and runs.sessions is not None:
            runs.sessions.token_is_good = tokens.is_good
        await runs.start()
        counted.offer(language.id for language in runs.languages)
        heap.settle()
        beside = [asyncio.create_task(readiness.establish())]
        if tokens is not None:
            beside.append(asyncio.create_task(tokens.watch()))
        try:
            yield
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await runs.drain(settings.drain_timeout_s)
            await runs.close()

    app = FastAPI(
        title="rkgrade",
        version=VERSION,
        description="Grades programs against a problem's tests: verdicts by input size, nested rewards R_k, "
        "and how a program failed. Bodies may be gzip or zstd; errors are application/problem+json.",
        lifespan=lifespan,
        responses=DOCUMENTED,
        # It would name the Host header, which is the client's word, in the address it leads to.
        redirect_slashes=False,
        # FastAPI's own load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
    )
    for router in (
        grade.router,
        jobs.router,
        run.router,
        sandbox_fusion.router,
        sessions.router,
        terminal.router,
        problems.router,
        languages.router,
        health.router,
        status.router,
        page.router(),
        *([] if rewarding is None else [compat.router(rewarding)]),
    ):
        app.include_router(router)
    add_handlers(app, counted.refused)
    open_paths = {*_OPEN_PATHS, *(["/metrics"] if settings.metrics_without_token else [])}
    app.add_middleware(
        Guard,
        tokens=tokens,
        hosts=settings.hosts,
        open_paths=open_paths,
        count=counted.refused,
        served=counted.let_in,
    )
    app.add_middleware(RequestLog, access_log=settings.access_log)
    app.add_middleware(RequestTimes, observe=counted.answered)
    needs_token = (lambda path: path not in open_paths) if tokens is not None else lambda path: False
    app.openapi = lambda: _openapi(app, needs_token)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI, needs_token: Callable[[str], bool]) -> dict[str, Any]:
    """FastAPI's document, the models of those bodies that routes read by themselves, and what needs a token here."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        roots, definitions = TypeAdapter.json_schemas(
            [
                ("Problem", "validation", contract.PROBLEMS),
                ("GradeRequest", "validation", TypeAdapter(contract.GradeRequest)),
                ("BatchRequest", "validation", TypeAdapter(contract.BatchRequest)),
                ("RunRequest", "validation", TypeAdapter(contract.RunRequest)),
                ("SessionRequest", "validation", TypeAdapter(contract.SessionRequest)),
                ("ExecRequest", "validation", TypeAdapter(contract.ExecRequest)),
                ("FilesRequest", "validation", TypeAdapter(contract.FilesRequest)),
                ("SessionGradeRequest", "validation", TypeAdapter(contract.SessionGradeRequest)),
                ("OpenRlhfQueries", "validation", compat.QUERIES),
                ("RunCodeRequest", "validation", sandbox_fusion.REQUEST),
                ("ProblemDetails", "serialization", TypeAdapter(ProblemDetails)),
            ],
            ref_template="#/components/schemas/{model}",
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = roots["Problem", "validation"]
        for name, schema in definitions["$defs"].items():
            schemas.setdefault(name, schema)
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in document["paths"].items():
            for operation in operations.values():
                operation["security"] = [{"token": []}] if needs_token(path) else []
        app.openapi_schema = document
    return app.openapi_schema
