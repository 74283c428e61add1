"""What problems of every kind have: tests with names and points, groups of them, limits."""

from __future__ import annotations

import graphlib
from abc import abstractmethod
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from service.contract.base import Request
from service.contract.fields import MAX_TESTS, GroupName, LengthUnit, Points, Scoring, Text
from service.contract.limits import ProblemLimits
from service.contract.mistakes import inconsistent


class BaseTest(Request):
    """What tests of every kind have."""

    name: Text | None = Field(default=None, max_length=256, description="Echoed in results.")
    points: Points | None = Field(
        default=None, description="What an accepted test is worth. Without it a test counts for rewards only."
    )
    group: GroupName | None = Field(
        default=None, description="Which of the problem's `groups` the test's points go to. Null: it counts by itself."
    )

    @property
    @abstractmethod
    def given(self) -> str:
        """What the program is given; its length is the test's input length."""

    @property
    @abstractmethod
    def wanted(self) -> str:
        """What is expected of the program; empty where the kind has no such thing."""


_Test = TypeVar("_Test", bound=BaseTest)

#: The tests of a problem of one kind.
Tests = Annotated[
    tuple[_Test, ...],
    Field(
        max_length=MAX_TESTS,
        fail_fast=True,
        json_schema_extra={"minItems": 1},
        description="At least one: an empty list would accept everything.",
    ),
]


class PointGroup(Request):
    """How the points of a group's tests become the group's."""

    scoring: Scoring = Field(description="`sum`: those of its tests together. `min`: those of its worst test.")
    depends: tuple[GroupName, ...] = Field(
        default=(),
        fail_fast=True,
        description="Groups that must be passed whole, and so must theirs, for this one to earn anything.",
    )


class BaseProblem(Request):
    """What problems of every kind have. Each kind adds `kind`, tests of its own and how an answer is judged."""

    tests: tuple[BaseTest, ...]
    groups: dict[GroupName, PointGroup] = Field(
        default={},
        fail_fast=True,
        description="Groups of tests for the `score`; they have nothing to do with input lengths.",
    )
    limits: ProblemLimits = Field(default=ProblemLimits(), description="Limits of each test's run.")
    exit_code: Literal["strict", "ignore"] = Field(
        default="strict",
        description="`strict`: a non-zero exit is a runtime_error even where the output is right.",
    )

    @field_validator("tests")
    @classmethod
    def _not_empty(cls, value: tuple[BaseTest, ...]) -> tuple[BaseTest, ...]:
        # Not `min_length`: pydantic counts only the valid tests, and would call a list of bad ones empty too.
        if not value:
            raise PydanticCustomError("no_tests", "A problem needs at least one test")
        return value

    @model_validator(mode="after")
    def _groups_hold_together(self) -> Self:
        for index, test in enumerate(self.tests):
            if test.group is not None and test.group not in self.groups:
                raise inconsistent(("tests", index, "group"), "No such group in `groups` of the problem")
            if test.group is not None and test.points is None:
                raise inconsistent(("tests", index, "points"), "A test in a group needs points")
        filled = {test.group for test in self.tests}
        for name, group in self.groups.items():
            if name not in filled:
                raise inconsistent(("groups", name), "No test is in this group")
            for position, other in enumerate(group.depends):
                if other not in self.groups:
                    raise inconsistent(
                        ("groups", name, "depends", position), "No such group in `groups` of the problem"
                    )
        try:
            graphlib.TopologicalSorter({name: group.depends for name, group in self.groups.items()}).prepare()
        except graphlib.CycleError as error:
            raise inconsistent(("groups", error.args[1][0], "depends"), "The group depends on itself") from None
        return self


def input_length(text: str, unit: LengthUnit) -> int:
    """Length of a test's input exactly as stored: UTF-8 bytes, or code points."""
    if unit == "chars" or text.isascii():
        return len(text)
    return len(text.encode())
