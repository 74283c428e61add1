"""What decides on an output: comparisons, and programs that come with a problem.

`type` has no default anywhere: canonical JSON leaves defaults out, and the type must stay in.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from service.contract.base import Request
from service.contract.fields import (
    MAX_FLAGS,
    MAX_PROGRAM_FILES,
    FileName,
    Flag,
    Partial,
    Source,
    Text,
    Tolerance,
)


class TokensChecker(Request):
    """Whitespace-separated tokens, as most contest problems compare them."""

    type: Literal["tokens"] = Field(description="Whitespace-separated tokens.")
    case_sensitive: bool = Field(
        default=True, strict=True, description="False compares ASCII letters without regard to case."
    )
    float_absolute: Tolerance | None = Field(
        default=None,
        description="Where the expected token is a finite number: accept within this absolute difference.",
    )
    float_relative: Tolerance | None = Field(
        default=None,
        description="Where the expected token is a finite number: accept within this share of its magnitude.",
    )


class ExactChecker(Request):
    """Byte for byte."""

    type: Literal["exact"] = Field(description="Bytes.")


class LinesChecker(Request):
    """Line by line; white space at line ends and empty lines at the end of the output do not count."""

    type: Literal["lines"] = Field(description="Lines.")


class LcbChecker(Request):
    """As LiveCodeBench compares stdout: stripped lines, equal as text or, token by token, as decimals."""

    type: Literal["lcb"] = Field(description="LiveCodeBench's comparison.")


class PlainChecker(Request):
    """As data: the same types all through, lists in order, dicts whatever their order."""

    type: Literal["plain"] = Field(description="Plain data.")
    float_absolute: Tolerance | None = Field(
        default=None, description="Accept a float within this absolute difference of the expected one."
    )
    float_relative: Tolerance | None = Field(
        default=None, description="Accept a float within this share of the expected one's magnitude."
    )


# Programs that come with a problem. Each runs in a cell of its own, under limits of its own.


class _Scored(Request):
    """A checker that may give points where others only accept or reject."""

    full_score: Annotated[float, Field(strict=True, ge=1e-6, le=1e9, allow_inf_nan=False)] = Field(
        default=1.0, description="The points of a right answer; `score` of a test is the share of it that was given."
    )


class _Partial(_Scored):
    """One whose points are no acceptance by themselves."""

    partial: Partial = Field(
        default="reject",
        description="When points accept a test: `reject` never, `accept` above 0, `score` from `full_score` on.",
    )


class TestlibChecker(_Partial):
    """A program written with testlib, called as `checker input output answer`; its exit status decides."""

    type: Literal["testlib"] = Field(description="A program written with testlib.")
    language: Literal["cpp"] = Field(default="cpp", description="C++17 with testlib.h on its include path.")
    source: Source = Field(description="Includes testlib.h.")


class KattisChecker(_Scored):
    """An output validator of the ICPC package format: `validator input answer feedback/ flags... < output`."""

    type: Literal["kattis"] = Field(description="A program that exits with 42 to accept and 43 to reject.")
    language: Text = Field(min_length=1, max_length=64, description="Name or alias of a language.")
    source: Source | None = Field(default=None, description="The program. Exactly one of `source` and `files`.")
    files: dict[FileName, Source] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_PROGRAM_FILES,
        fail_fast=True,
        validate_default=True,
        description="The program in several files, by their names: all C or C++ sources are compiled together; "
        "of several Python files `main.py` runs.",
    )
    flags: tuple[Flag, ...] = Field(default=(), max_length=MAX_FLAGS, fail_fast=True, description="Further arguments.")

    @field_validator("files")
    @classmethod
    def _exactly_one_program(cls, value: dict[str, str] | None, info: ValidationInfo) -> dict[str, str] | None:
        # A source that was itself refused is absent here, and has its own error already.
        if "source" in info.data and (info.data["source"] is None) == (value is None):
            raise PydanticCustomError("source_xor_files", "Give exactly one of `source` and `files`")
        return value


class PythonChecker(_Partial):
    """A Python program, called as `checker.py input answer output`; prints 1 to accept, as in open-r1/codeforces."""

    type: Literal["python"] = Field(description="A Python program that prints 1 or 0.")
    source: Source = Field(description="The program.")


Checker = Annotated[
    TokensChecker | ExactChecker | LinesChecker | LcbChecker | TestlibChecker | KattisChecker | PythonChecker,
    Field(discriminator="type"),
]


# Interactors are such programs too, of two of these kinds.


class TestlibInteractor(TestlibChecker):
    """A program written with testlib, called as `interactor input tout answer`; what it leaves in `tout` is for the
    checker, if there is one.
    """


class KattisInteractor(KattisChecker):
    """An interactive output validator of the ICPC package format: `validator input answer feedback/ flags...`."""


Interactor = Annotated[TestlibInteractor | KattisInteractor, Field(discriminator="type")]
