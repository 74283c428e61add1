"""The wire contract: what goes over HTTP, as pydantic models, and the identity of a problem.

Pure: needs pydantic and the list of verdicts, nothing else, so that trainers import it without the server.
Knows nothing of how a program is run or scored. Requests refuse unknown fields; results ignore them, so that
an older client reads a newer grader.
"""

from __future__ import annotations

import graphlib
import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator
from json.encoder import encode_basestring
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    PrivateAttr,
    Tag,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

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


class _Request(BaseModel):
    """Sent by a client: a misspelt field is an error that names it, never a default taken in silence.

    Every list and mapping is checked up to its first mistake: each costs half a kilobyte, and two bytes can make one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


class _Response(BaseModel):
    """Sent by the grader: fields added later are ignored by clients that do not know them."""

    model_config = ConfigDict(frozen=True, extra="ignore")


# Checkers. `type` has no default anywhere: canonical JSON leaves defaults out, and the type must stay in.


class TokensChecker(_Request):
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


class ExactChecker(_Request):
    """Byte for byte."""

    type: Literal["exact"] = Field(description="Bytes.")


class LinesChecker(_Request):
    """Line by line; white space at line ends and empty lines at the end of the output do not count."""

    type: Literal["lines"] = Field(description="Lines.")


class LcbChecker(_Request):
    """As LiveCodeBench compares stdout: stripped lines, equal as text or, token by token, as decimals."""

    type: Literal["lcb"] = Field(description="LiveCodeBench's comparison.")


# Programs that come with a problem. Each runs in a cell of its own, under limits of its own.


class _Scored(_Request):
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


class PlainChecker(_Request):
    """As data: the same types all through, lists in order, dicts whatever their order."""

    type: Literal["plain"] = Field(description="Plain data.")
    float_absolute: Tolerance | None = Field(
        default=None, description="Accept a float within this absolute difference of the expected one."
    )
    float_relative: Tolerance | None = Field(
        default=None, description="Accept a float within this share of the expected one's magnitude."
    )


class ProblemLimits(_Request):
    """Limits of one run of the program on one test."""

    cpu_s: CpuSeconds = Field(default=2.0, description="CPU seconds, user and system, of all processes together.")
    wall_s: WallSeconds | None = Field(
        default=None,
        description="Wall seconds; only ends sleepers. Default: twice the CPU limit plus one second.",
    )
    memory_mb: MemoryMb = Field(default=256, description="Peak memory in MiB.")
    output_mb: OutputMb = Field(default=64, description="Bound for stdout and for stderr, each, in MiB.")
    processes: Processes = Field(default=64, description="Processes and threads alive at once.")


class LimitOverrides(_Request):
    """Limits that replace the problem's own for one request; what is left out stays as the problem has it."""

    cpu_s: CpuSeconds | None = Field(default=None, description="CPU seconds.")
    wall_s: WallSeconds | None = Field(default=None, description="Wall seconds.")
    memory_mb: MemoryMb | None = Field(default=None, description="Peak memory in MiB.")
    output_mb: OutputMb | None = Field(default=None, description="Bound for stdout and for stderr, each, in MiB.")
    processes: Processes | None = Field(default=None, description="Processes and threads alive at once.")


# Problems: a base for what every kind has, and one pair of models a kind. `kind`, like a checker's `type`, has no
# default: canonical JSON leaves defaults out, and the kind must stay in.


class BaseTest(_Request):
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


class PointGroup(_Request):
    """How the points of a group's tests become the group's."""

    scoring: Scoring = Field(description="`sum`: those of its tests together. `min`: those of its worst test.")
    depends: tuple[GroupName, ...] = Field(
        default=(),
        fail_fast=True,
        description="Groups that must be passed whole, and so must theirs, for this one to earn anything.",
    )


class BaseProblem(_Request):
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
                raise _mistake(("tests", index, "group"), "No such group in `groups` of the problem")
            if test.group is not None and test.points is None:
                raise _mistake(("tests", index, "points"), "A test in a group needs points")
        filled = {test.group for test in self.tests}
        for name, group in self.groups.items():
            if name not in filled:
                raise _mistake(("groups", name), "No test is in this group")
            for position, other in enumerate(group.depends):
                if other not in self.groups:
                    raise _mistake(("groups", name, "depends", position), "No such group in `groups` of the problem")
        try:
            graphlib.TopologicalSorter({name: group.depends for name, group in self.groups.items()}).prepare()
        except graphlib.CycleError as error:
            raise _mistake(("groups", error.args[1][0], "depends"), "The group depends on itself") from None
        return self


def _mistake(loc: tuple[int | str, ...], sentence: str) -> ValidationError:
    """A mistake that shows only in the whole, at the field that can be mended."""
    details = InitErrorDetails(type=PydanticCustomError("inconsistent", sentence), loc=loc, input=None)
    return ValidationError.from_exception_data("Problem", [details])


class StdioTest(BaseTest):
    """One input with the output expected for it."""

    input: Text = Field(description="Fed to stdin, or to the `input_file`, as UTF-8, exactly as it stands.")
    output: Text = Field(description="What the checker compares stdout, or the `output_file`, with.")

    @property
    def given(self) -> str:
        return self.input

    @property
    def wanted(self) -> str:
        return self.output


class StdioProblem(BaseProblem):
    """A program that reads its input and writes its output: by stdin and stdout, or by files of given names."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "stdio",
                    "tests": [
                        {"input": "1 2\n", "output": "3\n", "name": "sample"},
                        {"input": "1000000000 7\n", "output": "1000000007\n"},
                    ],
                    "checker": {"type": "tokens"},
                    "limits": {"cpu_s": 1.0, "memory_mb": 256},
                }
            ]
        }
    )

    kind: Literal["stdio"] = Field(description="How the program is driven: stdin to stdout.")
    tests: tuple[StdioTest, ...] = Field(
        max_length=MAX_TESTS,
        fail_fast=True,
        json_schema_extra={"minItems": 1},
        description="At least one: an empty list would accept everything.",
    )
    checker: Checker = Field(default=TokensChecker(type="tokens"), description="Decides on a clean run's output.")
    input_file: FileName | None = Field(
        default=None,
        description="Name of a file in the working directory that holds the input; stdin is empty then.",
        examples=["input.txt"],
    )
    output_file: FileName | None = Field(
        default=None,
        description="Name of a file in the working directory whose content is judged in place of stdout.",
        examples=["output.txt"],
    )

    passes: Passes = Field(
        default=1,
        description="How often a `kattis` checker may have the program run on one test, from the second time on with "
        "the `nextpass.in` that the checker left.",
    )

    @field_validator("output_file")
    @classmethod
    def _not_the_input(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and value == info.data.get("input_file"):
            raise PydanticCustomError("same_file", "Input and output are two files")
        return value

    @field_validator("passes")
    @classmethod
    def _can_be_asked_for(cls, value: int, info: ValidationInfo) -> int:
        # A checker that was itself refused is absent here, and has its own error already.
        if value > 1 and "checker" in info.data and not isinstance(info.data["checker"], KattisChecker):
            raise PydanticCustomError("one_pass", "Only a checker of the type kattis can ask for another pass")
        if value > 1 and (info.data.get("input_file") is not None or info.data.get("output_file") is not None):
            raise PydanticCustomError("passes_of_files", "Problems of several passes have no input or output files")
        return value


class CallTest(BaseTest):
    """One call with the value expected of it."""

    args: tuple[JsonValue, ...] = Field(
        fail_fast=True,
        description="The arguments, by position. The input length is that of their JSON without white space.",
    )
    expected: JsonValue = Field(description="What the function is to return.")
    _given: str = PrivateAttr()
    _wanted: str = PrivateAttr()

    @model_validator(mode="after")
    def _can_be_sent(self) -> Self:
        # Written once, here, where large bodies are checked off the event loop.
        self._given, self._wanted = _json_text("args", self.args), _json_text("expected", self.expected)
        return self

    @property
    def given(self) -> str:
        return self._given

    @property
    def wanted(self) -> str:
        return self._wanted


def _json_text(field: str, value: object) -> str:
    """JSON without white space, nothing escaped that may stand as it is."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        raise _mistake((field,), "Lone surrogate: a string has no UTF-8 form") from None
    except ValueError as error:
        raise _mistake((field,), f"No JSON: {error}") from None
    return text


class CallProblem(BaseProblem):
    """A Python program that is not run as a whole: one function of it is called for each test."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "call",
                    "function": "Solution.pairs",
                    "prelude": "leetcode",
                    "tests": [{"args": [[1, 5, 3, 3], 6], "expected": 2}, {"args": [[], 0], "expected": 0}],
                }
            ]
        }
    )

    kind: Literal["call"] = Field(description="How the program is driven: a function is called.")
    function: Text = Field(
        max_length=256,
        description="`name`, of the program or else of its class `Solution`, or `Class.method`, "
        "of an instance that is made for each test without arguments.",
    )
    prelude: Prelude = Field(
        default="none",
        description="What the program finds imported: `lcb` star-imports what LiveCodeBench does and allows 50,000 "
        "levels of recursion; `leetcode` adds ListNode and TreeNode, and lists become such where annotations say so.",
    )
    loose: bool = Field(
        default=False,
        strict=True,
        description="True compares numbers and booleans by value, as Python does: True is 1, and 1 is 1.0.",
    )
    tests: tuple[CallTest, ...] = Field(
        max_length=MAX_TESTS,
        fail_fast=True,
        json_schema_extra={"minItems": 1},
        description="At least one: an empty list would accept everything.",
    )
    checker: PlainChecker = Field(
        default=PlainChecker(type="plain"), description="How the returned value is compared; tuples count as lists."
    )

    @field_validator("function")
    @classmethod
    def _can_be_called(cls, value: str) -> str:
        parts = value.split(".")
        if len(parts) > 2 or not all(part.isidentifier() for part in parts):
            raise PydanticCustomError("no_function_name", "Give a name of Python's, or `Class.method`")
        return value


class ScriptTest(BaseTest):
    """Test code that decides."""

    script: Text = Field(
        min_length=1,
        max_length=MAX_SOURCE_CHARS,
        description="Python. It finds the program as the module `solution`. Its length is the input length.",
    )

    @property
    def given(self) -> str:
        return self.script

    @property
    def wanted(self) -> str:
        return ""


class ScriptProblem(BaseProblem):
    """A Python program under test code, which runs beside it, in a cell of its own."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "script",
                    "entry_point": "add",
                    "tests": [{"script": "def check(candidate):\n    assert candidate(2, 3) == 5\n"}],
                }
            ]
        }
    )

    kind: Literal["script"] = Field(description="How the program is driven: by test code.")
    runner: Runner = Field(
        default="exec",
        description="`exec`: a script, which finds the program's names among its own; it passes where it ends without "
        "an exception. `pytest`: a suite, which imports from `solution`; it passes where every test does.",
    )
    entry_point: Text | None = Field(
        default=None,
        max_length=256,
        description="The function under test. A script that defines `check` and does not call it has it called with "
        "this function.",
    )
    tests: tuple[ScriptTest, ...] = Field(
        max_length=MAX_TESTS,
        fail_fast=True,
        json_schema_extra={"minItems": 1},
        description="At least one: an empty list would accept everything.",
    )

    @field_validator("entry_point")
    @classmethod
    def _is_a_name(cls, value: str | None) -> str | None:
        if value is not None and not value.isidentifier():
            raise PydanticCustomError("no_function_name", "Give a name of Python's")
        return value


class InteractiveTest(BaseTest):
    """One conversation: what the interactor is told beforehand."""

    input: Text = Field(description="The interactor's input file. The program never sees it.")
    output: Text = Field(default="", description="The interactor's answer file.")

    @property
    def given(self) -> str:
        return self.input

    @property
    def wanted(self) -> str:
        return self.output


class InteractiveProblem(BaseProblem):
    """A program that talks, over stdin and stdout, with a program that comes with the problem."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "interactive",
                    "tests": [{"input": "617283\n", "output": "20\n"}],
                    "interactor": {
                        "type": "kattis",
                        "language": "python",
                        "source": "import sys\nsecret = int(open(sys.argv[1]).read())\n...\nsys.exit(42)\n",
                    },
                }
            ]
        }
    )

    kind: Literal["interactive"] = Field(description="How the program is driven: beside an interactor.")
    tests: tuple[InteractiveTest, ...] = Field(
        max_length=MAX_TESTS,
        fail_fast=True,
        json_schema_extra={"minItems": 1},
        description="At least one: an empty list would accept everything.",
    )
    interactor: Interactor = Field(description="What the program talks with; it accepts or rejects.")
    checker: TestlibChecker | None = Field(
        default=None, description="Looks at what a testlib interactor that accepted has left, as the output."
    )
    passes: Passes = Field(
        default=1, description="How often a Kattis validator may have the program run anew, by `nextpass.in`."
    )

    @field_validator("checker")
    @classmethod
    def _has_something_to_look_at(cls, value: TestlibChecker | None, info: ValidationInfo) -> TestlibChecker | None:
        if value is not None and isinstance(info.data.get("interactor"), KattisInteractor):
            raise PydanticCustomError("nothing_to_check", "A Kattis validator leaves nothing for a checker")
        return value

    @field_validator("passes")
    @classmethod
    def _can_be_asked_for(cls, value: int, info: ValidationInfo) -> int:
        if value > 1 and isinstance(info.data.get("interactor"), TestlibInteractor):
            raise PydanticCustomError("one_pass", "Only a Kattis validator can ask for another pass")
        return value


# `Field(discriminator=...)` rather than `Discriminator(...)`: it looks the kind up in the JSON itself, where a
# function would be handed a copy of every test.
Problem = Annotated[
    StdioProblem | CallProblem | ScriptProblem | InteractiveProblem,
    Field(
        discriminator="kind",
        description="What a program is graded against. Immutable: its id is the hash of its content.",
    ),
]

PROBLEMS: Final[TypeAdapter[Problem]] = TypeAdapter(Problem)
"""Validates a problem of any kind, and describes them all as JSON Schema."""


def parse_problem(data: bytes | bytearray | str) -> Problem:
    """A problem of any kind from its JSON. Raises pydantic.ValidationError; `mistakes` names the fields at fault."""
    return PROBLEMS.validate_json(data)


ProblemId = Annotated[
    str,
    Field(
        pattern=r"^sha256:[0-9a-f]{64}$",
        description="Id of a stored problem, as `PUT /problems` returned it.",
        examples=["sha256:" + "0123456789abcdef" * 4],
    ),
]


def _problem_form(value: object) -> str:
    return "stored" if isinstance(value, str) else "inline"


class GradeRequest(_Request):
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

    problem: Annotated[
        Annotated[Problem, Tag("inline")] | Annotated[ProblemId, Tag("stored")],
        Discriminator(_problem_form),
    ] = Field(description="The problem itself, or the id of a stored one.")
    language: Text = Field(
        min_length=1, max_length=64, description="Name or alias of a language that `GET /languages` lists."
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
        default="last_fence", description="Which code fence of the completion is the program."
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
    id: Text | None = Field(default=None, max_length=512, description="Echoed in the result.")

    @field_validator("completion")
    @classmethod
    def _exactly_one_program(cls, value: str | None, info: ValidationInfo) -> str | None:
        # A source that was itself refused is absent here, and has its own error already.
        if "source" in info.data and (info.data["source"] is None) == (value is None):
            raise PydanticCustomError(
                "source_xor_completion", "Give exactly one of `source` and `completion`, as a string"
            )
        return value

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


class BatchRequest(_Request):
    """Many requests at once; results come back one a line as each ends."""

    items: tuple[GradeRequest, ...] = Field(
        min_length=1,
        max_length=MAX_BATCH_ITEMS,
        fail_fast=True,
        description="Each result carries the `index` of its item here.",
    )


class ProblemRef(_Response):
    """Answer to `PUT /problems`."""

    id: ProblemId = Field(description="Hash of the problem's canonical JSON.")


class TestInfo(_Response):
    """A test of a stored problem, without its data."""

    index: int = Field(description="Position in the problem.")
    name: str | None = Field(description="As the problem names it.")
    input_bytes: int = Field(description="Input length in UTF-8 bytes.")
    input_chars: int = Field(description="Input length in code points.")
    output_bytes: int = Field(description="Length of the expected output in UTF-8 bytes.")
    points: float | None = Field(default=None, description="What the test is worth.")
    group: str | None = Field(default=None, description="The group that its points go to.")


class ProblemInfo(_Response):
    """What may be known of a stored problem: neither inputs nor expected outputs."""

    id: ProblemId = Field(description="Hash of the problem's canonical JSON.")
    kind: Kind = Field(description="How the program is driven.")
    test_count: int = Field(description="Number of tests.")
    longest_input_bytes: int = Field(description="Input length of the longest test in UTF-8 bytes.")
    tests: tuple[TestInfo, ...] = Field(description="In the problem's order.")
    checker: Checker | PlainChecker | None = Field(
        description="How outputs, or returned values, are compared; null where an interactor or a script decides alone."
    )
    limits: ProblemLimits = Field(description="Limits of each test's run.")
    exit_code: Literal["strict", "ignore"] = Field(description="What a non-zero exit means.")
    groups: dict[str, PointGroup] = Field(default={}, description="How points become the score.")
    input_file: str | None = Field(default=None, description="Where the program finds its input, if not on stdin.")
    output_file: str | None = Field(default=None, description="Where it leaves its output, if not on stdout.")
    function: str | None = Field(default=None, description="The function that is called, if the program is not run.")
    runner: Runner | None = Field(default=None, description="How test code runs, if there is such.")
    entry_point: str | None = Field(default=None, description="The function that test code tests, if it is named.")
    interactor: Interactor | None = Field(default=None, description="What the program talks with, if it does.")
    passes: int = Field(default=1, description="How often the program may be run on one test.")


class TestRow(_Response):
    """What one test came to. Figures are null where the test did not run."""

    index: int = Field(description="Position in the problem.")
    name: str | None = Field(default=None, description="As the problem names it.")
    input_length: int = Field(description="In the request's `length_unit`.")
    verdict: Verdict = Field(description="What the test came to.")
    cpu_s: float | None = Field(default=None, description="CPU seconds, user and system.")
    wall_s: float | None = Field(default=None, description="Wall seconds.")
    memory_bytes: int | None = Field(default=None, description="Peak memory.")
    exit_code: int | None = Field(default=None, description="Exit status, null where a signal ended the program.")
    signal: int | None = Field(default=None, description="Signal that ended the program.")
    score: float | None = Field(
        default=None, description="Share of the full score, where the checker gave points: 1.0 is all of it."
    )
    message: str = Field(default="", description="For people; holds nothing of the test's data.")
    reruns: int = Field(default=0, description="Repeats of a limit failure seen while the host was under pressure.")
    stdout_tail: str | None = Field(
        default=None,
        description="End of stdout, only with `detail` set to `outputs`; invalid UTF-8 is replaced.",
    )
    stderr_tail: str | None = Field(
        default=None,
        description="End of stderr, only with `detail` set to `outputs`; invalid UTF-8 is replaced.",
    )
    checker_message: str | None = Field(
        default=None,
        description="What the checker said, only with `detail` set to `outputs`; may quote the test.",
    )


class GroupRow(_Response):
    """The tests of T_k, those with input length < 10^k, counted. Each group holds the one before it.

    Tests that ended in checker_error or internal_error are in `tests` only. The last row covers every test.
    """

    k: int = Field(ge=1, description="The group holds tests with input length < 10^k.")
    tests: int = Field(description="Size of T_k.")
    passed: int = Field(description="Accepted.")
    failed: int = Field(description="Failed by the program.")
    skipped: int = Field(description="Not run.")


class PointRow(_Response):
    """The points of one group of the problem; the last row, without a group, is that of tests outside groups."""

    group: str | None = Field(description="Name of the group.")
    scoring: Scoring = Field(description="How the points of its tests become the group's.")
    tests: int = Field(description="Number of its tests that have points.")
    points: float | None = Field(
        description="Earned. Null where tests that were not run leave it open, and where the grader itself failed."
    )
    max_points: float = Field(description="What it is worth when every test gets full marks.")


class CompileRow(_Response):
    """How compiling went."""

    ok: bool = Field(description="False gives the submission the verdict `compile_error`.")
    cpu_s: float = Field(description="CPU seconds; 0 where the result came from the cache.")
    cached: bool = Field(description="Taken from the compile cache.")
    message: str = Field(description="What the compiler said, cut to a bound.")


class Timing(_Response):
    """Where the wall time of a request went, in seconds. None of it counts against the program."""

    queue_s: float = Field(description="Waiting for a worker.")
    compile_s: float = Field(description="Compiling, cache look-up included.")
    run_s: float = Field(description="Running and checking the tests.")
    total_s: float = Field(description="From the request's arrival to its result.")


class GraderInfo(_Response):
    """What graded, so that results can be told apart later."""

    version: str = Field(description="Version of rkgrade.")
    sandbox: str = Field(description="What contains programs, such as `nsjail, cgroup v2`.")
    language_version: str = Field(description="Compiler or interpreter version.")
    secure: bool = Field(description="False where the grader was told to run without cgroups.")


class GradeResult(_Response):
    """What one submission came to."""

    id: str | None = Field(default=None, description="As the request gave it.")
    index: int | None = Field(default=None, description="Position in the batch; null outside batches.")
    problem_id: ProblemId = Field(description="Also where the request carried the problem itself.")
    language: str = Field(description="Id of the language that was used.")
    verdict: SubmissionVerdict = Field(
        description="The first failure's verdict, or accepted, compile_error, format_error. "
        "Where the grader itself failed on some test: that test's checker_error or internal_error."
    )
    category: Category | None = Field(description="Null where the grader itself failed.")
    taxonomy: Taxonomy = Field(description="The rule that named the category.")
    first_failure_length: int | None = Field(
        description="Least input length among failing tests. "
        "Null where none failed, no test was run, or the grader itself failed."
    )
    rewards: dict[str, Reward] = Field(
        description="R_k for each k up to the decimal digits of the longest input length, and R_inf. "
        "Null where T_k is empty, and everywhere where the grader itself failed.",
        examples=[{"R_1": None, "R_2": 1, "R_3": 0, "R_inf": 0}],
    )
    groups: tuple[GroupRow, ...] = Field(description="One row for each k of `rewards`, cumulative.")
    score: float | None = Field(
        default=None,
        description="Sum of `point_groups`. Null where the problem gives no points, "
        "where tests that were not run leave it open, and where the grader itself failed.",
    )
    point_groups: tuple[PointRow, ...] = Field(
        default=(), description="Points by group of the problem; empty where it gives none."
    )
    tests: tuple[TestRow, ...] = Field(description="In the problem's order.")
    compile: CompileRow | None = Field(description="Null where nothing was compiled.")
    timing: Timing = Field(description="Where the wall time went.")
    grader: GraderInfo = Field(description="What graded.")


_KINDS: Final = frozenset(get_args(Kind))

#: By the part of a location that comes before them; None stands for its beginning.
_UNION_TAGS: Final = {
    None: _KINDS,
    "problem": frozenset({"inline", "stored"}),
    "inline": _KINDS,
    "interactor": frozenset({"testlib", "kattis"}),
    "checker": frozenset({"tokens", "exact", "lines", "lcb", "testlib", "kattis", "python"}),
}


#: Of two fields that exclude each other: the one that pydantic reports, and the other.
_EXACTLY_ONE: Final = {"source_xor_completion": ("completion", "source"), "source_xor_files": ("files", "source")}

#: How much of a long string of a problem is written out as JSON at once.
_PIECE_CHARS: Final = 2**20


def field_path(loc: tuple[int | str, ...]) -> str:
    """A pydantic error location as a path into the JSON that was sent, such as `problem.tests[3].input`.

    Leaves out the tags that pydantic puts in for members of a union: no such field was sent.
    """
    path = ""
    before: int | str | None = None
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif isinstance(before, int) or part not in _UNION_TAGS.get(before, ()):
            path += f".{part}" if path else part
        before = part
    return path


def mistakes(error: ValidationError) -> list[tuple[str, str]]:
    """Each mistake as the path of the field at fault (empty for the whole) and a sentence, in the order found."""
    found = []
    for one in error.errors(include_url=False, include_input=False):
        path, sentence = field_path(one["loc"]), one["msg"]
        if one["type"] in ("union_tag_invalid", "union_tag_not_found"):
            # pydantic names the object; what is at fault is the field that should say which member it is.
            context = one["ctx"]
            field = context["discriminator"].strip("'")
            path = f"{path}.{field}" if path else field
            missing = one["type"] == "union_tag_not_found"
            sentence = "Field required" if missing else f"Input should be one of {context['expected_tags']}"
        elif one["type"] in _EXACTLY_ONE:
            # Which of the two is at fault, nobody can say: both are named.
            field, other = _EXACTLY_ONE[one["type"]]
            found.append((f"{path.removesuffix(field)}{other}", sentence))
        elif one["type"] in ("too_long", "too_short") and one["ctx"]["field_type"] == "Value":
            # pydantic counts "items" of a string that a validator of ours has seen before.
            sentence = sentence.replace(" items ", " characters ").replace(" item ", " character ")
            sentence = sentence.replace("Value", "String", 1).replace(" after validation", "", 1)
        found.append((path, sentence))
    return found


def input_length(text: str, unit: LengthUnit) -> int:
    """Length of a test's input exactly as stored: UTF-8 bytes, or code points."""
    if unit == "chars" or text.isascii():
        return len(text)
    return len(text.encode())


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


def canonical_chunks(problem: Problem) -> Iterator[bytes]:
    """The problem's canonical JSON, piece by piece, so that hundreds of megabytes need no second copy.

    Keys sorted, no white space, UTF-8, nothing escaped that JSON lets stand; fields that equal their defaults
    are left out, so that a field with a default can be added to the contract without changing any id.
    """
    for text in _canonical(problem.model_dump(exclude_defaults=True)):
        yield text.encode()


def _canonical(value: object) -> Iterator[str]:
    # The json module can do the same, but has a long string escaped as a whole, and then joined to what stands beside.
    if isinstance(value, str):
        if len(value) <= _PIECE_CHARS:
            yield encode_basestring(value)
            return
        yield '"'
        for start in range(0, len(value), _PIECE_CHARS):
            yield encode_basestring(value[start : start + _PIECE_CHARS])[1:-1]
        yield '"'
    elif isinstance(value, dict):
        yield "{"
        for number, key in enumerate(sorted(value)):
            yield f"{',' if number else ''}{encode_basestring(key)}:"
            yield from _canonical(value[key])
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for number, item in enumerate(value):
            if number:
                yield ","
            yield from _canonical(item)
        yield "]"
    else:
        yield json.dumps(value, allow_nan=False)


def problem_id(problem: Problem) -> str:
    """`sha256:` and the hex digest of the problem's canonical JSON."""
    digest = hashlib.sha256()
    for chunk in canonical_chunks(problem):
        digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def describe(problem: Problem) -> ProblemInfo:
    """What may be told of a problem to whoever knows its id."""
    tests = tuple(
        TestInfo(
            index=index,
            name=test.name,
            input_bytes=input_length(test.given, "bytes"),
            input_chars=len(test.given),
            output_bytes=input_length(test.wanted, "bytes"),
            points=test.points,
            group=test.group,
        )
        for index, test in enumerate(problem.tests)
    )
    return ProblemInfo(
        id=problem_id(problem),
        kind=problem.kind,
        test_count=len(tests),
        longest_input_bytes=max(test.input_bytes for test in tests),
        tests=tests,
        checker=None if isinstance(problem, ScriptProblem) else problem.checker,
        limits=problem.limits,
        exit_code=problem.exit_code,
        groups=problem.groups,
        input_file=problem.input_file if isinstance(problem, StdioProblem) else None,
        output_file=problem.output_file if isinstance(problem, StdioProblem) else None,
        function=problem.function if isinstance(problem, CallProblem) else None,
        runner=problem.runner if isinstance(problem, ScriptProblem) else None,
        entry_point=problem.entry_point if isinstance(problem, ScriptProblem) else None,
        interactor=problem.interactor if isinstance(problem, InteractiveProblem) else None,
        passes=problem.passes if isinstance(problem, StdioProblem | InteractiveProblem) else 1,
    )
