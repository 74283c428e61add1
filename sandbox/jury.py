"""A program that comes with the problem (a checker, an interactor), compiled once and run in a cell of its own.

The submission's cell never holds anything of it. The cell is opened when the program is first needed, serves one
submission, and is made again where a run has left it of no more use. Knows nothing of what the program's end means.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Protocol

from sandbox import compiling, languages, testlib
from sandbox.cell import Cell
from sandbox.checkers.base import JuryProgram
from sandbox.compiling import Compiler
from sandbox.config import SandboxConfig
from sandbox.errors import CheckerRefused, GraderFault, UnknownLanguage
from sandbox.languages import Language
from sandbox.problem import CompileResult, Limits
from sandbox.run import Action, RunRecord, RunRequest
from sandbox.starting import program_request

#: How the names of C and C++ sources end; other files beside them are headers.
_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".C")

#: Languages whose programs may be of several files.
_OF_SEVERAL_FILES = ("g++", "gcc", "clang++", "clang")

#: Python programs that a process remembers as good.
_MOST_KNOWN_GOOD = 10_000

#: How much of what a compiler said a refusal repeats.
_REFUSAL_CHARS = 2000


class Cells(Protocol):
    """What a judge offers."""

    def take_cell(self) -> Cell: ...

    def give_back(self, cell: Cell) -> None: ...


@dataclass(frozen=True, slots=True)
class Workshop:
    """What it takes to run jury programs; one for each judge."""

    config: SandboxConfig
    cells: Cells
    compiler: Compiler
    known_good: set[str]
    """Keys of Python programs that were seen to compile in this process."""


class Jury:
    """One jury program at the service of one submission. `close` it."""

    def __init__(self, program: JuryProgram, workshop: Workshop, limits: Limits, cancel_fd: int | None) -> None:
        """`limits` hold for each of its runs.

        Raises CheckerRefused where no such program can be had here; its `field` names what is at fault.
        """
        self._workshop = workshop
        self._limits = limits
        self._cancel_fd = cancel_fd
        self._field = program.field
        self._language, self._files = _settled(program, workshop.config)
        self._artefact_fd: int | None = None
        self._cell: Cell | None = None

    @property
    def limits(self) -> Limits:
        return self._limits

    def prepare(self) -> None:
        """Compile it, or see that it compiles. Raises CheckerRefused where it does not, GraderFault, Cancelled."""
        if self._language.compile:
            if self._artefact_fd is None:
                compiled = self._workshop.compiler.compile(self._language, self._files, self._cancel_fd)
                _refuse_unless_ok(compiled.result, self._field)
                self._artefact_fd = compiled.artefact_fd
        elif self._language.checks_python and self._key not in self._workshop.known_good:
            self._open_python_cell()

    def cell(self) -> Cell:
        """A cell with the program in it, ready for `request`. Raises GraderFault, Cancelled, CheckerRefused."""
        if self._cell is not None and self._cell.usable:
            return self._cell
        if self._language.checks_python:
            return self._open_python_cell()
        self.prepare()
        cell = self._new_cell()
        if self._artefact_fd is None:
            with compiling.as_files(self._files) as fds:
                cell.load(fds, executable=False)
        else:
            # Descriptors share one offset: an own one for each cell.
            fd = os.open(f"/proc/self/fd/{self._artefact_fd}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                cell.load({self._language.artefact: fd}, executable=True)
            finally:
                os.close(fd)
        return cell

    def request(self, stdin_fd: int, arguments: tuple[str, ...]) -> RunRequest:
        """One run of the program in its cell; `dataclasses.replace` adds what else it needs."""
        return program_request(self._language, stdin_fd, self._limits, arguments)

    def run(self, request: RunRequest) -> RunRecord:
        """Raises GraderFault, Cancelled, CheckerRefused."""
        return self.cell().run(request, self._cancel_fd)

    def drop_cell(self) -> None:
        """The next run gets a new cell."""
        if self._cell is not None:
            self._workshop.cells.give_back(self._cell)
            self._cell = None

    def close(self) -> None:
        self.drop_cell()
        if self._artefact_fd is not None:
            os.close(self._artefact_fd)
            self._artefact_fd = None

    @property
    def _key(self) -> str:
        return compiling.cache_key(self._language, self._files)

    def _new_cell(self) -> Cell:
        self.drop_cell()
        self._cell = self._workshop.cells.take_cell()
        return self._cell

    def _open_python_cell(self) -> Cell:
        cell = self._new_cell()
        with compiling.as_files(self._files) as fds:
            cell.load(fds, executable=False)
        limits = replace(compiling.LIMITS, memory_bytes=self._limits.memory_bytes)
        with compiling.as_file(b"") as stdin_fd:
            record = cell.run(RunRequest(Action.CHECK, stdin_fd, limits), self._cancel_fd)
        try:
            result = compiling.compile_result(record, limits)
        finally:
            record.close()
        if not result.ok and self._key in self._workshop.known_good:
            raise GraderFault("a jury program that compiled before does not compile in a new cell")
        _refuse_unless_ok(result, self._field)
        if len(self._workshop.known_good) >= _MOST_KNOWN_GOOD:
            self._workshop.known_good.clear()
        self._workshop.known_good.add(self._key)
        return cell


def _refuse_unless_ok(result: CompileResult, field: str) -> None:
    if not result.ok:
        said = result.message.strip()[:_REFUSAL_CHARS]
        raise CheckerRefused(f"does not compile: {said}", field=field)


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
