"""Routes that speak as others do, so that a trainer is pointed here by its URL alone.

`POST /openrlhf/reward` is OpenRLHF's remote reward (0.11): texts in, rewards out. That one retries whatever went wrong
four times, a second apart, and then dies of a reward that it did not get; so a full queue is waited for, not told of.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from pydantic import Field, TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service import contract
from service.claims import Claim
from service.contract.base import Request as Body
from service.contract.base import Response as Answer
from service.contract.fields import Text
from service.engines.base import Job
from service.errors import FieldError, InternalError, InvalidRequest, ServiceError, invalid_fields
from service.rewarding import Rewardable, Rewarded, Rewarding, Unrewardable
from service.routes.context import Context, context, json_body, while_connected
from service.routes.grade import as_each_ends


class OpenRlhfQueries(Body):
    """Answers to be rewarded; OpenRLHF sends one at a time."""

    query: tuple[Text, ...] = Field(
        min_length=1,
        max_length=contract.MAX_BATCH_ITEMS,
        fail_fast=True,
        description="Prompt and answer as one text, special tokens and all.",
    )
    prompts: tuple[Text, ...] = Field(fail_fast=True, description="The prompts, one for each query.")
    labels: tuple[Any, ...] = Field(description="What each answer is graded and rewarded by.")


class OpenRlhfRewards(Answer):
    """One number for each query."""

    rewards: list[float]
    scores: list[float] = Field(description="From 0 to 1, whatever the scale of the rewards.")
    extra_logs: dict[str, list[float]] = Field(description="Under the same names in every answer.")


QUERIES: TypeAdapter[OpenRlhfQueries] = TypeAdapter(OpenRlhfQueries)


def router(rewarding: Rewarding) -> APIRouter:
    """The routes, rewarding answers by `rewarding`."""
    made = APIRouter(tags=["trainers"])

    @made.post("/openrlhf/reward", response_model=OpenRlhfRewards, openapi_extra=json_body("OpenRlhfQueries"))
    async def openrlhf_reward(request: Request) -> Response:
        """Reward answers as OpenRLHF asks for it. Waits where the queue is full."""
        arrived_s = time.monotonic()
        here = context(request)
        here.refuse_while_draining()
        claim = Claim.of(request).without_key("rewards take none: nothing of them is kept")
        async with here.bodies.parsed(request, QUERIES) as sent:
            asked = _asked(sent, rewarding)
            del sent
        try:
            jobs = await here.intake.jobs([one.request for one in asked], arrived_s=arrived_s)
        except ServiceError as error:
            raise _of_labels(error) from None
        results = await while_connected(request.receive, _graded(here, [claim.on(job) for job in jobs]))
        told = [_told(index, one, results[index]) for index, one in enumerate(asked)]
        rewards = OpenRlhfRewards(
            rewards=[one.reward for one in told],
            scores=[one.score for one in told],
            extra_logs={name: [one.logs[name] for one in told] for name in told[0].logs},
        )
        return JSONResponse(rewards.model_dump())

    return made


def _asked(sent: OpenRlhfQueries, rewarding: Rewarding) -> list[Rewardable]:
    """Raises InvalidRequest, which names the label and its field."""
    for name, values in (("prompts", sent.prompts), ("labels", sent.labels)):
        if len(values) != len(sent.query):
            raise InvalidRequest.at(name, f"{len(values)} of them, for {len(sent.query)} queries")
    asked, wrong = [], []
    for index, (query, prompt, label) in enumerate(zip(sent.query, sent.prompts, sent.labels, strict=True)):
        try:
            asked.append(rewarding(query, prompt, label))
        except Unrewardable as error:
            place = f"query[{index}]" if error.field == "query" else _label(index, error.field)
            wrong.append(FieldError(place, error.reason))
    if wrong:
        raise invalid_fields(wrong)
    return asked


def _label(index: int, field: str | None) -> str:
    return f"labels[{index}].{field}" if field else f"labels[{index}]"


def _of_labels(error: ServiceError) -> ServiceError:
    """The same error with its fields where they came from."""
    renamed = [
        FieldError(None if one.field is None else one.field.replace("items[", "labels[", 1), one.detail)
        for one in error.errors
    ]
    if isinstance(error, InvalidRequest) and renamed:
        return invalid_fields(renamed)
    return type(error)(error.detail, errors=renamed, headers=error.headers) if renamed else error


async def _graded(here: Context, jobs: Sequence[Job]) -> dict[int | None, contract.GradeResult]:
    """By the position of each."""
    place = here.waiting.place(sum(job.request_bytes for job in jobs), within_s=jobs[0].time_left_s)
    with here.intake.held(jobs):
        async with place, contextlib.aclosing(as_each_ends(here, jobs)) as results:
            parsed = [contract.GradeResult.model_validate_json(one.result) async for one in results]
    return {result.index: result for result in parsed}


def _told(index: int, asked: Rewardable, result: contract.GradeResult) -> Rewarded:
    try:
        return asked.rewarded(result)
    except Unrewardable as error:
        if error.field is None:
            # Asked again, as OpenRLHF does, it is graded again.
            raise InternalError(f"query[{index}]: {error.reason}") from error
        raise InvalidRequest.at(_label(index, error.field), error.reason) from error
