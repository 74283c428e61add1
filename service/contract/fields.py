"""The single values that requests and results are made of: words to choose from, texts and numbers with their bounds.

What they mean in a request or a result is said there.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from sandbox.verdicts import Verdict

Kind = Literal["stdio", "call", "script", "interactive"]
Stop = Literal["never", "first_failure"]
Taxonomy = Literal["first_failure", "any_wrong", "strict"]
Category = Literal["correct", "optimization_failure", "correctness_failure", "format_error"]
Extraction = Literal["last_fence", "first_fence", "only_fence", "tagged", "lcb"]
LengthUnit = Literal["bytes", "chars"]
Detail = Literal["verdicts", "outputs"]
Scoring = Literal["sum", "min"]
Partial = Literal["reject", "accept", "score"]
Prelude = Literal["none", "lcb", "leetcode"]
Runner = Literal["exec", "pytest"]
Unrun = Literal["compile_error", "format_error"]
"""Why no test of a submission was run."""
SubmissionVerdict = Verdict | Unrun
Reward = Literal[0, 1] | None

MAX_TESTS: Final = 10_000
MAX_BATCH_ITEMS: Final = 4096
MAX_SOURCE_CHARS: Final = 4 * 2**20
MAX_COMPLETION_CHARS: Final = 16 * 2**20
MAX_PROGRAM_FILES: Final = 32
MAX_FLAGS: Final = 64
MAX_PASSES: Final = 100


def _no_lone_surrogates(value: str) -> str:
    # JSON can spell half of a surrogate pair, which no bytes stand for: no program could be given it.
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise PydanticCustomError(
                "lone_surrogate",
                "Lone surrogate at character {position}: the string has no UTF-8 form",
                {"position": error.start},
            ) from None
    return value


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise PydanticCustomError("nul", "No argument of a program can hold a NUL")
    return value


Text = Annotated[str, AfterValidator(_no_lone_surrogates)]
Source = Annotated[Text, Field(max_length=MAX_SOURCE_CHARS)]
Flag = Annotated[Text, Field(max_length=256), AfterValidator(_no_nul)]

# Numbers are strict: "2" or true for a limit is a mistake of the sender, not a number.
CpuSeconds = Annotated[float, Field(strict=True, ge=0.01, le=300, allow_inf_nan=False)]
CompileSeconds = Annotated[float, Field(strict=True, ge=0.01, le=60, allow_inf_nan=False)]
WallSeconds = Annotated[float, Field(strict=True, ge=0.01, le=900, allow_inf_nan=False)]
MemoryMb = Annotated[int, Field(strict=True, ge=16, le=65_536)]
OutputMb = Annotated[int, Field(strict=True, ge=1, le=1024)]
Processes = Annotated[int, Field(strict=True, ge=1, le=1024)]
Points = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]
GroupName = Annotated[Text, Field(min_length=1, max_length=64)]
FileName = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
"""One path component that no tool or protocol on its way reads anything into."""
Passes = Annotated[int, Field(strict=True, ge=1, le=MAX_PASSES)]
Tolerance = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
