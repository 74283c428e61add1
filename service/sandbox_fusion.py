"""What SandboxFusion is asked at `/run_code`, and answers, said in terms of a run of ours.

The models are its own (github.com/bytedance/SandboxFusion, `sandbox/server/sandbox_api.py`; the client
`sandbox-fusion` 0.3) with the bounds of ours. Knows no HTTP.
"""

from __future__ import annotations

import base64
import signal
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from sandbox.verdicts import Verdict
from service import contract
from service.contract.base import Request, Response
from service.contract.fields import CompileSeconds, CpuSeconds, Source, Text
from service.contract.files import MAX_FILES, Base64, Fetch, FilePath, consistent
from service.contract.runs import MAX_STDIN_CHARS

#: Where the request sets no limit, or -1. SandboxFusion sets none then; verl's own default is this.
_MEMORY_MB: Final = 1024
_LEAST_MEMORY_MB: Final = 16

#: A sleeper has so much longer than a program at work, which a busy host may keep waiting.
_WALL_MARGIN_S: Final = 1.0

#: Languages that SandboxFusion starts without a step that compiles: what is wrong with a source comes from the run.
_STARTED: Final = frozenset(
    {"python", "python-exec", "pypy", "javascript", "typescript", "php", "bash", "lua", "perl", "r", "ruby"}
)

#: What a program ended with at such a limit, where it caught what the limit did to it and ended as if all was well.
_SIGNALS: Final = {Verdict.MEMORY_LIMIT: signal.SIGKILL, Verdict.OUTPUT_LIMIT: signal.SIGXFSZ}


def _memory(value: int) -> int:
    if 0 < value < _LEAST_MEMORY_MB:
        raise PydanticCustomError(
            "memory", "At least {least}, or -1 for {default}", {"least": _LEAST_MEMORY_MB, "default": _MEMORY_MB}
        )
    return value


def _contents(files: Mapping[str, str | None]) -> dict[str, contract.FileContent]:
    return {path: contract.FileContent(base64=data) for path, data in files.items() if data is not None}


def _checked(files: dict[str, str | None]) -> dict[str, str | None]:
    consistent(_contents(files))
    return files


class RunCodeRequest(Request):
    """A program to be run once, as SandboxFusion is asked for it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"language": "python", "code": "print(int(input()) * 2)", "stdin": "21"},
                {"language": "cpp", "code": "int main() { return 3; }", "run_timeout": 2, "memory_limit_MB": 256},
            ]
        }
    )

    code: Source = Field(description="The program.")
    language: Text = Field(
        min_length=1,
        max_length=64,
        description="`python`, `cpp`, `java`, `nodejs`, `go`, `rust` and others, by any name of `GET /languages`.",
    )
    stdin: Text | None = Field(default=None, max_length=MAX_STDIN_CHARS, description="What it reads.")
    compile_timeout: CompileSeconds = Field(
        default=10.0, description="CPU seconds of the compiler; what was compiled before takes none."
    )
    run_timeout: CpuSeconds = Field(
        default=10.0, description="CPU seconds of the program; one that sleeps is ended a second later."
    )
    memory_limit_MB: Annotated[int, Field(strict=True, ge=-1, le=65_536), AfterValidator(_memory)] = Field(
        default=-1, description="Peak memory in MiB, 16 at least; 0 and -1 stand for 1024."
    )
    files: Annotated[
        dict[FilePath, Base64 | None], Field(max_length=MAX_FILES, fail_fast=True), AfterValidator(_checked)
    ] = Field(
        default_factory=dict,
        description="Files of its working directory by their paths there, in base64; null stands for no file.",
    )
    fetch_files: Fetch = Field(default=(), description="Paths of files to hand back after the run.")
    args: tuple[Text, ...] = Field(
        default=(), max_length=0, description="Of pytest, which does not run here: there are none."
    )

    def run(self) -> contract.RunRequest:
        """The same as a run of ours."""
        return contract.RunRequest(
            language=self.language,
            source=self.code,
            stdin=self.stdin or "",
            files=_contents(self.files),
            fetch=self.fetch_files,
            limits=contract.RunLimits(
                cpu_s=self.run_timeout,
                wall_s=self.run_timeout + _WALL_MARGIN_S,
                memory_mb=self.memory_limit_MB if self.memory_limit_MB > 0 else _MEMORY_MB,
                compile_cpu_s=self.compile_timeout,
            ),
        )


class CommandRunResult(Response):
    """How compiling, or the run, went."""

    status: Literal["Finished", "Error", "TimeLimitExceeded"]
    execution_time: float | None = Field(description="Wall seconds.")
    cpu_time: float | None = Field(description="CPU seconds, user and system.")
    return_code: int | None = Field(
        description="Exit status; the negative signal that ended it; null at a time limit. Never 0 at another limit."
    )
    stdout: str | None = Field(description="Its end, at most 1 MiB; invalid UTF-8 is replaced.")
    stderr: str | None = Field(description="Its end, at most 1 MiB; invalid UTF-8 is replaced.")


class RunCodeResponse(Response):
    """What came of it, as SandboxFusion tells it."""

    status: Literal["Success", "Failed"] = Field(description="`Success`: all ended with status 0.")
    message: str = Field(description="For people: which limit it met.")
    compile_result: CommandRunResult | None = Field(description="Null of languages that are not compiled.")
    run_result: CommandRunResult | None = Field(description="Null where it did not compile.")
    executor_pod_name: str | None = Field(default=None, description="Null.")
    files: dict[str, str] = Field(
        description="Those of `fetch_files` that are plain files in the end, in base64: 8 MiB of them."
    )

    @classmethod
    def of(cls, result: contract.RunResult) -> RunCodeResponse:
        """A run of ours that the grader did not fail at, told as SandboxFusion does."""
        has_run, started = result.status != "compile_error", result.language in _STARTED
        compiled = _compiling(result)
        return cls(
            status="Success" if result.status == "ok" else "Failed",
            message="; ".join(_words(result)),
            compile_result=None if started else compiled,
            run_result=_running(result) if has_run else compiled if started else None,
            files={path: _base64(file) for path, file in result.files.items()},
        )


def _compiling(result: contract.RunResult) -> CommandRunResult:
    compiled = result.compile
    timed_out = compiled is not None and compiled.timed_out
    return CommandRunResult(
        status="TimeLimitExceeded" if timed_out else "Finished",
        execution_time=result.timing.compile_s,
        cpu_time=compiled.cpu_s if compiled else 0.0,
        return_code=None if timed_out else int(result.status == "compile_error"),
        stdout="",
        stderr=compiled.message if compiled else "",
    )


def _running(result: contract.RunResult) -> CommandRunResult:
    timed_out = result.status in (Verdict.TIME_LIMIT, Verdict.IDLE)
    return CommandRunResult(
        status="TimeLimitExceeded" if timed_out else "Finished",
        execution_time=result.wall_s,
        cpu_time=result.cpu_s,
        return_code=None if timed_out else _return_code(result),
        stdout=result.stdout,
        stderr=result.stderr,
    )


def _return_code(result: contract.RunResult) -> int:
    if result.signal is not None:
        return -result.signal
    if result.exit_code == 0 and result.status in _SIGNALS:
        return -_SIGNALS[Verdict(result.status)]
    assert result.exit_code is not None
    return result.exit_code


def _words(result: contract.RunResult) -> list[str]:
    words = [result.message] if result.message else []
    if result.truncated:
        words.append("stdout or stderr was longer than 1 MiB, and its end is told")
    if result.files_left_out:
        words.append(f"{result.files_left_out} of fetch_files did not fit into 8 MiB")
    return words


def _base64(file: contract.FileResult) -> str:
    return base64.b64encode(file.text.encode()).decode() if file.text is not None else file.base64 or ""
