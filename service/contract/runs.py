"""One program, run once, as a tool that a model calls: what is sent, and what is told of it."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import ConfigDict, Field

from sandbox.verdicts import Verdict
from service.contract.base import Request, Response
from service.contract.fields import CompileSeconds, CpuSeconds, MemoryMb, OutputMb, Processes, Source, Text, WallSeconds
from service.contract.files import Fetch, FileResult, Files
from service.contract.results import CompileRow, GraderInfo, Timing

MAX_STDIN_CHARS: Final = 16 * 2**20

RunStatus = Literal[
    "ok",
    "compile_error",
    Verdict.TIME_LIMIT,
    Verdict.MEMORY_LIMIT,
    Verdict.OUTPUT_LIMIT,
    Verdict.IDLE,
    Verdict.RUNTIME_ERROR,
    Verdict.INTERNAL_ERROR,
]


class RunLimits(Request):
    """Limits of a run."""

    cpu_s: CpuSeconds = Field(default=10.0, description="CPU seconds, user and system, of all processes together.")
    wall_s: WallSeconds | None = Field(
        default=None, description="Wall seconds; only ends sleepers. Default: twice the CPU limit plus one second."
    )
    memory_mb: MemoryMb = Field(default=512, description="Peak memory in MiB; files count, in and out of `/box`.")
    output_mb: OutputMb = Field(default=16, description="Bound for stdout, for stderr and for each file, in MiB.")
    processes: Processes = Field(default=64, description="Processes and threads alive at once.")
    compile_cpu_s: CompileSeconds | None = Field(
        default=None,
        description="CPU seconds of the compiler; what was compiled before takes none. "
        "Default: 10, more for compilers that are slow by nature.",
    )


class RunRequest(Request):
    """One program to be run once on one stdin."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "language": "python",
                    "source": "print(sum(map(int, open('numbers.txt'))))\n",
                    "files": {"numbers.txt": {"text": "1\n2\n"}},
                },
                {"language": "cpp", "source": "int main() { return 3; }\n", "stdin": "", "limits": {"cpu_s": 1.0}},
            ]
        }
    )

    language: Text = Field(
        min_length=1, max_length=64, description="Name or alias of a language that `GET /languages` lists."
    )
    source: Source = Field(description="The program.")
    stdin: Text = Field(default="", max_length=MAX_STDIN_CHARS, description="What it reads.")
    files: Files = Field(
        default_factory=dict,
        description="Files in its working directory, by their paths there. Python programs can import those that end "
        "in `.py`.",
    )
    fetch: Fetch | None = Field(
        default=None,
        description="Paths of the only files to hand back, be they what was sent or not. Null for all that are not.",
    )
    limits: RunLimits = Field(default=RunLimits(), description="What it may use.")


class RunResult(Response):
    """What came of it."""

    status: RunStatus = Field(
        description="`ok`: it ended by itself with status 0. `internal_error`: the grader failed, not the program."
    )
    message: str = Field(description="For people: why it is not ok.")
    stdout: str = Field(description="Its end, at most 1 MiB; invalid UTF-8 is replaced.")
    stderr: str = Field(description="Its end, at most 1 MiB; invalid UTF-8 is replaced.")
    truncated: bool = Field(description="Whether stdout or stderr was longer.")
    exit_code: int | None = Field(description="Exit status; null where a signal ended it, or it did not run.")
    signal: int | None = Field(description="Signal that ended it.")
    cpu_s: float | None = Field(description="CPU seconds, user and system. Null where it did not run.")
    wall_s: float | None = Field(description="Wall seconds. Null where it did not run.")
    memory_bytes: int | None = Field(description="Peak memory. Null where it did not run.")
    files: dict[str, FileResult] = Field(
        description="Files in its working directory: those of `fetch` that are plain files in the end; without it "
        "those that are new or not what was sent, at most 48. Of 8 MiB together."
    )
    files_left_out: int = Field(
        description="Of `fetch`: those beyond that bound. Without it what else it left there, at least: beyond those "
        "bounds, more than 16 levels deep, with a path of more than 255 bytes or no UTF-8, closed to itself, and what "
        "is no plain file."
    )
    compile: CompileRow | None = Field(description="Null where nothing was compiled.")
    language: str = Field(description="Id of the language that was used.")
    timing: Timing = Field(description="Where the wall time went.")
    grader: GraderInfo = Field(description="What ran it.")
