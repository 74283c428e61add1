"""What a client sends to have programs graded."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Discriminator, Field, Tag, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from service.contract.base import Request
from service.contract.fields import (
    MAX_BATCH_ITEMS,
    MAX_COMPLETION_CHARS,
    MAX_SOURCE_CHARS,
    Detail,
    Extraction,
    LengthUnit,
    Stop,
    Taxonomy,
    Text,
)
from service.contract.identity import ProblemId
from service.contract.limits import LimitOverrides, ProblemLimits
from service.contract.problems import Problem


def _problem_form(value: object) -> str:
    return "stored" if isinstance(value, str) else "inline"


class GradeOptions(Request):
    """On what problem, and how, whatever the program is."""

    problem: Annotated[
        Annotated[Problem, Tag("inline")] | Annotated[ProblemId, Tag("stored")],
        Discriminator(_problem_form),
    ] = Field(description="The problem itself, or the id of a stored one.")
    language: Text = Field(
        min_length=1, max_length=64, description="Name or alias of a language that `GET /languages` lists."
    )
    limits: LimitOverrides = Field(default=LimitOverrides(), description="Replaces limits of the problem.")
    time_factor: float = Field(
        default=1.0,
        strict=True,
        ge=0.01,
        le=100,
        allow_inf_nan=False,
        description="Multiplies the CPU limit, after overrides; a wall limit set by the problem grows along.",
    )
    stop: Stop = Field(
        default="never",
        description="`first_failure` skips all tests after the first failing one, in ascending input length.",
    )
    taxonomy: Taxonomy = Field(
        default="first_failure",
        description="The rule that names the category. `any_wrong` and `strict` need `stop` to be `never`.",
    )
    length_unit: LengthUnit = Field(default="bytes", description="Unit of input lengths; chars are code points.")
    detail: Detail = Field(
        default="verdicts",
        description="`outputs` adds tails of stdout and stderr and the checker's words; may quote tests.",
    )
    fresh: bool = Field(
        default=False,
        strict=True,
        description="Run the program even where the result of an earlier grade is known, and do not keep this one's.",
    )
    id: Text | None = Field(default=None, max_length=512, description="Echoed in the result.")

    @field_validator("taxonomy")
    @classmethod
    def _rule_sees_every_test(cls, value: Taxonomy, info: ValidationInfo) -> Taxonomy:
        if value != "first_failure" and info.data.get("stop") == "first_failure":
            raise PydanticCustomError(
                "taxonomy_needs_all_tests",
                "The rule `{rule}` needs every test to be run: set `stop` to `never`",
                {"rule": value},
            )
        return value


class GradeRequest(GradeOptions):
    """One program, or one completion of a model, to be graded on one problem."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "problem": {
                        "kind": "stdio",
                        "tests": [{"input": "1 2\n", "output": "3\n"}],
                    },
                    "language": "python",
                    "source": "a, b = map(int, input().split())\nprint(a + b)\n",
                },
                {
                    "problem": "sha256:" + "0123456789abcdef" * 4,
                    "language": "cpp",
                    "completion": "The sum fits in 64 bits.\n```cpp\nint main() { return 0; }\n```\n",
                    "stop": "first_failure",
                    "id": "step-17/prompt-3/sample-0",
                },
            ]
        }
    )

    source: Text | None = Field(
        default=None,
        max_length=MAX_SOURCE_CHARS,
        description="A program. Exactly one of `source` and `completion`.",
    )
    completion: Text | None = Field(
        default=None,
        max_length=MAX_COMPLETION_CHARS,
        validate_default=True,
        description="A model's raw text, from which `extraction` takes the program.",
    )
    extraction: Extraction = Field(
        default="last_fence",
        description="Which code fence of the completion is the program. Beside `source` there is none to choose.",
    )

    @field_validator("completion")
    @classmethod
    def _exactly_one_program(cls, value: str | None, info: ValidationInfo) -> str | None:
        # A source that was itself refused is absent here, and has its own error already.
        if "source" in info.data and (info.data["source"] is None) == (value is None):
            raise PydanticCustomError(
                "source_xor_completion", "Give exactly one of `source` and `completion`, as a string"
            )
        return value

    @field_validator("extraction")
    @classmethod
    def _chooses_among_fences(cls, value: Extraction, info: ValidationInfo) -> Extraction:
        # The default says nothing: a request that was written out whole has it.
        if value != cls.model_fields["extraction"].default and info.data.get("source") is not None:
            raise PydanticCustomError("extraction_of_source", "Nothing is extracted from a `source`: leave it out")
        return value


class BatchRequest(Request):
    """Many requests at once; results come back one a line as each ends."""

    items: tuple[GradeRequest, ...] = Field(
        min_length=1,
        max_length=MAX_BATCH_ITEMS,
        fail_fast=True,
        description="Each result carries the `index` of its item here.",
    )


def effective_limits(problem: ProblemLimits, request: GradeRequest) -> ProblemLimits:
    """The limits a request's program runs under.

    Overrides replace the problem's limits; `time_factor` then multiplies the CPU limit, and the wall limit
    where the problem set it, so that a slower language is not cut off by the wall clock instead. A wall limit
    that the request sets is taken as it stands. Raises pydantic.ValidationError, with the limit at fault,
    where a product passes the hard bounds.
    """
    fields: dict[str, Any] = problem.model_dump()
    fields["cpu_s"] = (request.limits.cpu_s or problem.cpu_s) * request.time_factor
    if problem.wall_s is not None:
        fields["wall_s"] = problem.wall_s * request.time_factor
    overrides = request.limits.model_dump(exclude_none=True, exclude={"cpu_s"})
    return ProblemLimits.model_validate(fields | overrides)
