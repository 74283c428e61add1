"""One program, run once: no problem, no checker; what it said, what it left and how it ended is all there is to say.

For tools that a model calls. To the judge it is a submission with one test, so that a fault of the grader's, and a
limit failure that may be the host's, are seen to as anywhere else. Knows nothing of how runs are made.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final

from sandbox.checkers import Exact
from sandbox.compiling import as_files, compile_result
from sandbox.languages import Language
from sandbox.problem import CompileResult, Judgement, Limits, Problem, Submission, Test
from sandbox.run import Left, Output, RunRecord, RunRequest
from sandbox.starting import program_request
from sandbox.stdin import Stdin
from sandbox.trials import Outcome
from sandbox.verdicts import Verdict, decide

#: Of stdout and of stderr, each, that is kept: the end.
TAIL_BYTES: Final = 2**20

#: Of the files that are handed back, together.
FILES_BYTES: Final = 8 * 2**20


@dataclass(frozen=True, slots=True)
class SingleRun:
    """What is to be run."""

    language: str
    source: bytes
    stdin: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """By their paths in the program's working directory; those paths lead nowhere else."""
    limits: Limits = field(default_factory=Limits)
    compile_cpu_s: float | None = None
    """CPU time that a compiler has; None for what it usually has."""
    fetch: tuple[str, ...] | None = None
    """Paths of the only files to be handed back, be they what was given or not, as many as `disk.listed` has room for.
    None for all that are not."""

    def submission(self, language: Language) -> Submission:
        """As the judge takes it. Modules among the files lie beside a Python program, too, to be imported."""
        source: bytes | dict[str, bytes] = self.source
        if language.checks_python:
            modules = {name: data for name, data in self.files.items() if name.endswith(".py")}
            source = modules | {language.source_name: self.source}
        test = Test(0, None, len(self.stdin), Stdin(self.stdin), b"")
        problem = Problem((test,), Exact())
        return Submission(problem, language.id, source, self.limits, compile_cpu_s=self.compile_cpu_s)


@dataclass(frozen=True, slots=True)
class Remains:
    """What a run said and left."""

    stdout: bytes
    stderr: bytes
    truncated: bool
    """Whether stdout or stderr was more than that."""
    files: dict[str, bytes]
    """Those that were asked for; else new ones, and those that are not any more what they were."""
    left_out: int
    """Of those that were asked for, the ones beyond the bound; else files beyond the bounds, with names that are no
    UTF-8, and what is no plain file."""


@dataclass(frozen=True, slots=True)
class SingleResult:
    """What came of it."""

    judgement: Judgement
    """With one test, whose verdict is `accepted` where the program ended cleanly; without where compiling failed."""
    remains: Remains | None
    """None where it did not run, or the grader failed."""


class SingleTrials:
    """The one trial of a submission that `SingleRun` made. `remains` is there once it has run."""

    zygote_argv: tuple[str, ...] = ()

    def __init__(
        self, language: Language, limits: Limits, files: Mapping[str, bytes], fetch: tuple[str, ...] | None = None
    ) -> None:
        self._language = language
        self._limits = limits
        self._files = files
        self._fetch = fetch
        self.remains: Remains | None = None
        self.refused: CompileResult | None = None
        """How compiling failed, where the run was to do that."""

    def trial(self, test: Test) -> SingleTrial:
        with ExitStack() as held:
            stdin_fd = test.stdin.open()
            held.callback(os.close, stdin_fd)
            files = held.enter_context(as_files(self._files))
            request = program_request(self._language, stdin_fd, self._limits, once=True)
            fetch = tuple(dict.fromkeys(self._fetch or ()))
            request = replace(request, files=files, collect=fetch, gather=self._fetch is None)
            return SingleTrial(self, request, held.pop_all())

    def take(self, record: RunRecord) -> None:
        """Keep what the run said and left: its outputs are gone with it."""
        self.refused = None if record.compiled else compile_result(record, self._limits)
        if self._fetch is None:
            files, left_out = _contents(record.left or Left({}, 0), self._files)
        else:
            files, left_out = _contents(Left({os.fsencode(name): out for name, out in record.collected.items()}, 0), {})
        self.remains = Remains(
            record.stdout.tail(TAIL_BYTES),
            record.stderr.tail(TAIL_BYTES),
            len(record.stdout) > TAIL_BYTES or len(record.stderr) > TAIL_BYTES,
            files,
            left_out,
        )


@dataclass(frozen=True, slots=True)
class SingleTrial:
    trials: SingleTrials
    request: RunRequest
    held: ExitStack

    def verdict(self, record: RunRecord) -> Verdict | None:
        return decide(record.evidence, ignore_exit_code=False)

    def outcome(self, record: RunRecord, verdict: Verdict | None) -> Outcome:
        self.trials.take(record)
        return Outcome(verdict or Verdict.ACCEPTED)

    def judged(self, record: RunRecord) -> Output | None:
        return None

    def close(self) -> None:
        self.held.close()


def _contents(left: Left, given: Mapping[str, bytes]) -> tuple[dict[str, bytes], int]:
    """Contents of files that are not what was given, as many as the bound allows; and how many others there are."""
    files: dict[str, bytes] = {}
    left_out = left.left_out
    room = FILES_BYTES
    for raw, output in left.files.items():
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            left_out += 1
            continue
        before = given.get(name)
        # What it was may be larger than what there is room for.
        data = output.head(max(room, len(before or b"")) + 1)
        if data == before:
            continue
        if len(data) > room:
            left_out += 1
            continue
        files[name] = data
        room -= len(data)
    return files, left_out
