"""A program that comes with the problem (a checker, an interactor), run in a cell of its own under limits of its own.

The submission's cell never holds anything of it. Knows nothing of what the program's end means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from sandbox import languages, testlib
from sandbox.cell import Cell
from sandbox.checkers.base import JuryProgram
from sandbox.config import SandboxConfig
from sandbox.errors import CheckerRefused, HostOutOfMemory, UnknownLanguage
from sandbox.languages import Language
from sandbox.problem import Limits, Test
from sandbox.program import Program, Workshop
from sandbox.run import RunRecord, RunRequest
from sandbox.starting import program_request
from sandbox.watching import ActiveRun, wait_for

#: How the names of C and C++ sources end; other files beside them are headers.
_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".C")

#: Languages whose programs may be of several files.
_OF_SEVERAL_FILES = ("g++", "gcc", "clang++", "clang")

#: Python programs that a process remembers as good.
_MOST_KNOWN_GOOD = 10_000

#: How much of what a compiler said a refusal repeats.
_REFUSAL_CHARS = 2000


#: What a jury program can be expected to take of a submission, whatever that is right to write; where more is to be
#: expected of a right one, by the size of the test, so much more.
MOST_TAKEN_BYTES = 16 * 2**20
MOST_TAKEN_PER_BYTE = 4

#: What it has for each byte of that, beyond its limits. The bulkiest that a checker in Python is wont to make of a text
#: is a list of split lines: 168 bytes for a line of two.
MEMORY_PER_BYTE = 64
CPU_S_PER_BYTE = 0.25 / 2**20


def most_taken_bytes(test: Test) -> int:
    """How much of a submission's the jury's programs are expected to take on a test."""
    return max(MOST_TAKEN_BYTES, MOST_TAKEN_PER_BYTE * (len(test.stdin) + len(test.expected)))


class Jury:
    """One jury program at the service of one submission. `close` it."""

    def __init__(self, program: JuryProgram, workshop: Workshop, limits: Limits, cancel_fd: int | None) -> None:
        """`limits` hold for each of its runs.

        Raises CheckerRefused where no such program can be had here; its `field` names what is at fault.
        """
        self._limits = limits
        self._cancel_fd = cancel_fd
        self._field = program.field
        self._known_good = workshop.known_good
        language, files = _settled(program, workshop.config)
        self._program = Program(language, files, workshop, limits.memory_bytes, cancel_fd)
        self._good = False

    def prepare(self) -> None:
        """Compile it, or see that it compiles. Raises CheckerRefused where it does not, GraderFault, Cancelled."""
        if self._good:
            return
        remembered = self._program.key if self._program.language.checks_python else None
        if remembered not in self._known_good:
            result = self._program.compile()
            if result is not None and not result.ok:
                said = result.message.strip()[:_REFUSAL_CHARS]
                raise CheckerRefused(f"does not compile: {said}", field=self._field)
            if remembered is not None:
                if len(self._known_good) >= _MOST_KNOWN_GOOD:
                    self._known_good.clear()
                self._known_good.add(remembered)
        self._good = True

    def cell(self) -> Cell:
        """A cell with the program in it, ready for `request`. Raises GraderFault, Cancelled, CheckerRefused."""
        self.prepare()
        return self._program.cell()

    def request(self, stdin_fd: int, arguments: tuple[str, ...], read_bytes: int = 0) -> RunRequest:
        """One run of the program in its cell; `dataclasses.replace` adds what else it needs.

        `read_bytes`: how much of the submission's it is to take.
        """
        return program_request(self._program.language, stdin_fd, _stretched(self._limits, read_bytes), arguments)

    def run(self, request: RunRequest) -> RunRecord:
        """Raises GraderFault, Cancelled, CheckerRefused."""
        return self.wait_for(self.start(request))

    def start(self, request: RunRequest) -> ActiveRun:
        """Start the program, for `wait_for`. Raises GraderFault, Cancelled, CheckerRefused."""
        return self.cell().start(request)

    def wait_for(self, run: ActiveRun) -> RunRecord:
        """The record of a run, once it has ended. Raises GraderFault, Cancelled."""
        (record,) = wait_for([run], self._cancel_fd)
        if record.killed_by_host:
            record.close()
            raise HostOutOfMemory("this host ran out of memory for a program of the jury's")
        return record

    def drop_cell(self) -> None:
        """The next run gets a new cell."""
        self._program.drop_cell()

    def close(self) -> None:
        self._program.close()


def _stretched(limits: Limits, read_bytes: int) -> Limits:
    """Limits for a run that is to take so much.

    In whole MiB, for what is changed from run to run costs a few writes to the control group.
    """
    stretch_bytes = read_bytes >> 20 << 20
    if stretch_bytes == 0:
        return limits
    return replace(
        limits,
        cpu_s=limits.cpu_s + stretch_bytes * CPU_S_PER_BYTE,
        wall_s=None if limits.wall_s is None else limits.wall_s + stretch_bytes * CPU_S_PER_BYTE,
        memory_bytes=limits.memory_bytes + stretch_bytes * MEMORY_PER_BYTE,
    )


def _settled(program: JuryProgram, config: SandboxConfig) -> tuple[Language, Mapping[str, bytes]]:
    """The language to compile or run it in, and its files under the names they are to have."""
    try:
        language = languages.resolve(program.language)
        languages.version(language)
    except UnknownLanguage as error:
        raise CheckerRefused(str(error), field=f"{program.field.rpartition('.')[0]}.language") from error
    if program.uses_testlib:
        language = testlib.language(config)
    files = dict(program.files)
    if len(files) == 1:
        (text,) = files.values()
        return language, {language.source_name: text}
    if language.checks_python:
        if language.source_name not in files:
            raise CheckerRefused(f"of several Python files one must be {language.source_name}", field=program.field)
        return language, files
    main = f"/prog/{language.source_name}"
    if PurePath(language.version_command[0]).name not in _OF_SEVERAL_FILES or main not in language.compile:
        raise CheckerRefused(f"a program in {language.name} can be of one file only", field=program.field)
    sources = [f"/prog/{name}" for name in sorted(files) if name.endswith(_SOURCES)]
    if not sources:
        names = ", ".join(_SOURCES)
        raise CheckerRefused(f"none of the files is a source: their names end in {names}", field=program.field)
    at = language.compile.index(main)
    return replace(language, compile=(*language.compile[:at], *sources, *language.compile[at + 1 :])), files
