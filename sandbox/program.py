"""A program at the service of one submission: compiled once, and in a cell that is made again when it goes bad.

The submission itself is one, each program that comes with its problem another; no two ever share a cell. Knows nothing
of what such a program is for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from sandbox import compiling
from sandbox.cell import Cell
from sandbox.compiling import Compiler
from sandbox.config import SandboxConfig
from sandbox.errors import GraderFault, HostOutOfMemory
from sandbox.languages import Language, Start
from sandbox.problem import CompileResult
from sandbox.run import Action, RunRequest
from sandbox.starting import scaled

#: Of a source that has compiled, what another cell may take for it, in the limits of the first time: one that was just
#: within them may need a little more, and would have no verdict by that.
AGAIN_FACTOR = 2

#: A source that takes longer to compile, by CPU time, keeps its cell however many processes its runs have used up: it
#: could otherwise have itself compiled for each test, which takes ten times what a test may.
COSTLY_S = 1.0


class Cells(Protocol):
    """What a judge offers."""

    def take_cell(self) -> Cell: ...

    def give_back(self, cell: Cell) -> None: ...

    @property
    def used_s(self) -> float:
        """CPU seconds of all runs that have ended in cells of this judge's."""
        ...


@dataclass(frozen=True, slots=True)
class Workshop:
    """What it takes to run programs; one for each judge."""

    config: SandboxConfig
    cells: Cells
    compiler: Compiler
    known_good: set[str]
    """Keys of the jury's Python programs that were seen to compile in this process."""


class Program:
    """`close` it."""

    def __init__(
        self,
        language: Language,
        source: bytes | Mapping[str, bytes],
        workshop: Workshop,
        memory_bytes: int,
        cancel_fd: int | None,
        zygote_argv: tuple[str, ...] = (),
        *,
        runs_once: bool = False,
        compile_cpu_s: float | None = None,
    ) -> None:
        """`source` is one file, or several by their names; `memory_bytes` is what a Python source may compile in;
        `zygote_argv` is what a zygote must know beside it. `runs_once`: what a zygote would serve compiles as it runs
        (`Action.ONCE`). `compile_cpu_s`: CPU time of its compiler, in place of what that usually has."""
        self.language = language
        self._source = source
        self._files = {language.source_name: source} if isinstance(source, bytes) else source
        self._workshop = workshop
        self._memory_bytes = memory_bytes
        self._cancel_fd = cancel_fd
        self._compile_cpu_s = compile_cpu_s
        self._zygote_argv = zygote_argv
        self._checks = language.checks_python and not (runs_once and language.start is Start.ZYGOTE)
        self._artefact_fd: int | None = None
        self._cell: Cell | None = None
        self._is_costly = False

    @property
    def key(self) -> str:
        """Names the program by all that compiling it depends on."""
        return compiling.cache_key(self.language, self._source)

    def compile(self, *, alone: bool = False) -> CompileResult | None:
        """Compile it, or see that it compiles; None for a language that does neither. Raises GraderFault, Cancelled.

        `alone`: while everybody waits for it.
        """
        if self.language.compile:
            compiled = self._workshop.compiler.compile(
                self.language, self._source, self._cancel_fd, self._compile_cpu_s, alone=alone
            )
            self._forget_artefact()
            self._artefact_fd = compiled.artefact_fd
            return compiled.result
        if self._checks:
            return self._open_python_cell()
        return None

    def cell(self) -> Cell:
        """A cell with the program in it, which has compiled before. Raises GraderFault, Cancelled."""
        if self._cell is not None and (self._cell.usable or (self._is_costly and self._cell.sound)):
            return self._cell
        if self._checks:
            if not self._open_python_cell(AGAIN_FACTOR).ok:
                # There is no zygote in it to run anything.
                self.drop_cell()
                raise GraderFault("a source that compiled before does not compile in a new cell")
            assert self._cell is not None
            return self._cell
        cell = self._new_cell()
        if self._artefact_fd is None:
            with compiling.as_files(self._files) as fds:
                cell.load(fds, executable=False)
        else:
            # Descriptors share one offset: an own one for each cell.
            fd = os.open(f"/proc/self/fd/{self._artefact_fd}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                cell.load({self.language.artefact: fd}, executable=True)
            finally:
                os.close(fd)
        return cell

    def drop_cell(self) -> None:
        """The next run gets a new cell."""
        if self._cell is not None:
            self._workshop.cells.give_back(self._cell)
            self._cell = None

    def close(self) -> None:
        self.drop_cell()
        self._forget_artefact()

    def _new_cell(self) -> Cell:
        self.drop_cell()
        self._cell = self._workshop.cells.take_cell()
        return self._cell

    def _open_python_cell(self, factor: int = 1) -> CompileResult:
        """A cell with the source in it, compiled there within so many times the limits; it serves the runs too."""
        cell = self._new_cell()
        with compiling.as_files(self._files) as fds:
            cell.load(fds, executable=False)
        limits = scaled(replace(compiling.LIMITS, memory_bytes=factor * self._memory_bytes), factor)
        with compiling.as_file(b"") as stdin_fd:
            record = cell.run(RunRequest(Action.CHECK, stdin_fd, limits, self._zygote_argv), self._cancel_fd)
        try:
            if record.killed_by_host:
                raise HostOutOfMemory("this host ran out of memory for a look at a source")
            self._is_costly = record.cpu_s > COSTLY_S
            return compiling.compile_result(record, limits)
        finally:
            record.close()

    def _forget_artefact(self) -> None:
        if self._artefact_fd is not None:
            os.close(self._artefact_fd)
            self._artefact_fd = None
