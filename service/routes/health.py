"""GET /health/live, /health/ready and /metrics: what keeps, feeds and watches this service."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service.metrics import CONTENT_TYPE
from service.routes.context import context

router = APIRouter(tags=["health"])


class Liveness(BaseModel):
    status: str


class ReadinessReport(BaseModel):
    ready: bool
    reasons: list[str]


@router.get("/health/live")
async def live() -> Liveness:
    """The process answers; a restart would not help it."""
    return Liveness(status="live")


@router.get("/health/ready", response_model=ReadinessReport, responses={503: {"model": ReadinessReport}})
async def ready(request: Request) -> Response:
    """Whether grades should be sent here, and why not."""
    reasons = context(request).readiness.reasons()
    report = ReadinessReport(ready=not reasons, reasons=reasons)
    return JSONResponse(report.model_dump(), status_code=200 if report.ready else 503)


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """In the text format of Prometheus."""
    return Response(context(request).metrics.exposition(), media_type=CONTENT_TYPE)
