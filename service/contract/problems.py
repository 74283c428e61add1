"""Problems of each kind, one pair of models a kind: its tests, and the problem.

`kind`, like a checker's `type`, has no default: canonical JSON leaves defaults out, and the kind must stay in.
"""

from __future__ import annotations

import json
from typing import Annotated, Final, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    TypeAdapter,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from service.contract.checkers import (
    Checker,
    Interactor,
    KattisChecker,
    KattisInteractor,
    PlainChecker,
    TestlibChecker,
    TestlibInteractor,
    TokensChecker,
)
from service.contract.fields import MAX_SOURCE_CHARS, FileName, Passes, Prelude, Runner, Text
from service.contract.mistakes import inconsistent
from service.contract.problem_base import BaseProblem, BaseTest, Tests


class _InputAndOutput(BaseTest):
    input: Text
    output: Text

    @property
    def given(self) -> str:
        return self.input

    @property
    def wanted(self) -> str:
        return self.output


class StdioTest(_InputAndOutput):
    """One input with the output expected for it."""

    input: Text = Field(description="Fed to stdin, or to the `input_file`, as UTF-8, exactly as it stands.")
    output: Text = Field(description="What the checker compares stdout, or the `output_file`, with.")


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
    tests: Tests[StdioTest]
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
        raise inconsistent((field,), "Lone surrogate: a string has no UTF-8 form") from None
    except ValueError as error:
        raise inconsistent((field,), f"No JSON: {error}") from None
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
        "of an instance that is made for each test without arguments; `Solution.name` is also looked for as `name` "
        "where there is no such class.",
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
    tests: Tests[CallTest]
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
    tests: Tests[ScriptTest]

    @field_validator("entry_point")
    @classmethod
    def _is_a_name(cls, value: str | None) -> str | None:
        if value is not None and not value.isidentifier():
            raise PydanticCustomError("no_function_name", "Give a name of Python's")
        return value


class InteractiveTest(_InputAndOutput):
    """One conversation: what the interactor is told beforehand."""

    input: Text = Field(description="The interactor's input file. The program never sees it.")
    output: Text = Field(default="", description="The interactor's answer file.")


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
    tests: Tests[InteractiveTest]
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

PROBLEMS: Final[TypeAdapter[Problem]] = TypeAdapter(Problem, config=ConfigDict(cache_strings="keys"))
"""Validates a problem of any kind, and describes them all as JSON Schema."""


def parse_problem(data: bytes | bytearray | str) -> Problem:
    """A problem of any kind from its JSON. Raises pydantic.ValidationError; `mistakes` names the fields at fault."""
    return PROBLEMS.validate_json(data)
