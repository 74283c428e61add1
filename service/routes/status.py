"""GET /status: what goes on here, for people and for the page at /."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from service.results import VERSION
from service.routes.context import context

router = APIRouter(tags=["health"])


class WorkersNow(BaseModel):
    alive: int = Field(description="Able to grade.")
    busy: int = Field(description="With a grade in hand.")


class QueueNow(BaseModel):
    length: int = Field(description="Grades that wait for a worker.")
    size: int = Field(description="How many may wait before new ones get 429.")
    age_s: float = Field(description="How long the first of them has waited.")


class CacheNow(BaseModel):
    hits: int = Field(description="Grades answered with the result of an earlier one, since this process started.")
    misses: int = Field(description="Grades for which none was known.")


class PastGrade(BaseModel):
    """A grade that has ended; nothing of its program or its tests."""

    model_config = ConfigDict(from_attributes=True)

    at: datetime = Field(description="When it ended.")
    client: str | None = Field(
        description="The name that belongs to its token; where none is needed, what it calls itself in `X-Client-Id`."
    )
    id: str | None = Field(description="As the request gave it.")
    problem_id: str
    language: str
    verdict: str
    category: str | None
    tests: dict[str, int] = Field(description="Number of tests by verdict.")
    queue_s: float
    compile_s: float
    run_s: float


class StatusReport(BaseModel):
    version: str
    now: datetime = Field(description="By this machine's clock.")
    ready: bool = Field(description="As `GET /health/ready` has it.")
    reasons: list[str] = Field(description="Why not.")
    workers: WorkersNow
    queue: QueueNow
    verdict_cache: CacheNow
    grades: list[PastGrade] = Field(
        description="The last hundred that came to this process, jobs included, newest first."
    )


@router.get("/status")
async def status(request: Request) -> StatusReport:
    """Workers and queue as they are now, and the last grades."""
    here = context(request)
    load = here.metrics.load()
    reasons = here.readiness.reasons()
    return StatusReport(
        version=VERSION,
        now=datetime.now(UTC),
        ready=not reasons,
        reasons=reasons,
        workers=WorkersNow(alive=load.workers_alive, busy=load.workers_busy),
        queue=QueueNow(length=load.queue_length, size=here.settings.queue_size, age_s=load.queue_age_s),
        verdict_cache=CacheNow(hits=here.metrics.verdicts.hits, misses=here.metrics.verdicts.misses),
        grades=[PastGrade.model_validate(one) for one in here.history.latest()],
    )
