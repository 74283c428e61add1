"""What every route needs of its application, and how a client's leaving ends its work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import structlog
from starlette.requests import HTTPConnection
from starlette.types import Receive

from sandbox.verdicts import Verdict
from service.bodies import Bodies
from service.engines.base import Engine, Job, Ran, Summary, ToolCall
from service.errors import ClientGone, Unavailable
from service.history import History
from service.intake import Intake
from service.metrics import Metrics
from service.readiness import Readiness
from service.settings import Settings
from service.waiting import Waiting

T = TypeVar("T")

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Context:
    settings: Settings
    engine: Engine
    intake: Intake
    metrics: Metrics
    readiness: Readiness
    bodies: Bodies
    history: History
    waiting: Waiting

    def note(self, job: Job, summary: Summary) -> None:
        self.noting(job)(summary)

    def noting(self, job: Job) -> Callable[[Summary], None]:
        """What tells of a job that has ended, and holds nothing of its program until then: among the last grades, and
        in the log where the grader failed, with the id of the request that runs now.
        """
        add, identifier, problem_id = self.history.adder(job), job.id, job.problem_id

        def note(summary: Summary) -> None:
            add(summary)
            if summary.verdict == Verdict.INTERNAL_ERROR.value:
                _log.error(
                    "the grader failed at a grade",
                    job=identifier,
                    problem=problem_id,
                    language=summary.language,
                    cause=summary.fault,
                )

        return note

    def note_run(self, call: ToolCall, ran: Ran) -> None:
        """What tells of a run that has ended: the log, where the grader failed."""
        if ran.summary.fault:
            _log.error(
                "the grader failed at a run", run=call.id, language=ran.summary.language, cause=ran.summary.fault
            )

    def refuse_while_draining(self) -> None:
        """Raises Unavailable; called before a body is read, for work that would be refused after it all the same."""
        if self.engine.status().draining:
            raise Unavailable("the service is shutting down and takes no new work")


def context(request: HTTPConnection) -> Context:
    """The application's context; it is there once the application has started."""
    return cast(Context, request.app.state.context)


def json_body(model: str) -> dict[str, Any]:
    """OpenAPI's word on a body that a route reads by itself, as a reference to a model of the contract."""
    schema = {"$ref": f"#/components/schemas/{model}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The work's result; where the client leaves first, the work is cancelled and ClientGone is raised.

    The request's body must have been read.
    """
    task = asyncio.create_task(work)
    watch = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGone("the client left before its result was there")
    finally:
        watch.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
