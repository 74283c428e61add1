"""A run of a program in a cell: what is asked for, and what it came to by the kernel's account.

Values only: `sandbox.watching` starts a run and sees it to its end. Knows nothing of how cells are made, and nothing of
verdicts beyond their evidence.
"""

from __future__ import annotations

import contextlib
import enum
import mmap
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sandbox.problem import Limits
from sandbox.verdicts import Evidence

#: Outputs up to this size are read rather than mapped: cheaper.
MAPPED_BYTES = 64 * 1024

#: The program's descriptor of the first of `RunRequest.extra_fds`.
FIRST_EXTRA_FD = 4


class Action(enum.StrEnum):
    """What the warden's child does once it is the program."""

    EXEC = "exec"
    CHECK = "check"
    """Compile the Python source in /prog; where that goes well, the warden becomes its zygote.

    With an argv, one that calls a function: its name and its prelude.
    """
    PYTHON = "python"
    """Run the zygote's code."""
    ONCE = "once"
    """Compile the Python source in /prog and run it, in one process: costs less than a zygote for one run."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    action: Action
    stdin_fd: int
    limits: Limits
    argv: tuple[str, ...] = ()
    collect: tuple[str, ...] = ()
    """Names of files in /box, or in folders there, to hand back, where the run leaves them as plain files;
    "name/" is every file of a folder."""
    stdout_fd: int | None = None
    """Where stdout goes instead of a file of the run's own: a pipe to another program."""
    extra_fds: tuple[int, ...] = ()
    """Further descriptors for the program, from `FIRST_EXTRA_FD` on."""
    output_fds: tuple[int, ...] = ()
    """Those of `extra_fds` that are files for the program to write: like stdout, bounded by the output limit and no
    part of its memory. To be kept open until the record is there."""
    links: Mapping[str, int] = field(default_factory=dict)
    """Names in /box that lead to an extra descriptor, by its position in `extra_fds`: files that are never copied."""
    directories: tuple[str, ...] = ()
    """Names of directories in /box that the program finds there, its own."""
    files: Mapping[str, int] = field(default_factory=dict)
    """Names in /box, folders before them, of files that the program finds there, its own: copies of what these
    descriptors hold from offset 0 on."""
    gather: bool = False
    """Whether to hand back what the run leaves in /box, whatever its name, as far as `sandbox.jail.disk.left` goes."""
    limits_address_space: bool = True
    """Whether, where no cgroup counts memory, a limit on address space may stand in for it."""

    def preparations(self) -> list[str]:
        """As `enter` and the warden take them: "name/" is a directory, "name=N" a link to descriptor N."""
        links = [f"{name}={FIRST_EXTRA_FD + position}" for name, position in self.links.items()]
        return [*(f"{name}/" for name in self.directories), *links]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What one run came to, by the kernel's account. Close it to free the output."""

    evidence: Evidence
    limits: Limits
    """Those it was under."""
    cpu_s: float
    wall_s: float
    memory_bytes: int
    stdout: Output
    stderr: Output
    collected: dict[str, Output]
    """The files asked for, as far as they were left as plain files."""
    killed_by_host: bool = False
    """Killed because the host, or the container around the grader, was out of memory, not for the program's own."""
    oom_kills: int = 0
    """Processes of the run that the kernel killed for memory."""
    compiled: bool = True
    """False where the run was to compile its own source, which does not compile, by its own word."""
    left: Left | None = None
    """Where that was asked for; None also where the warden never answered."""

    def close(self) -> None:
        self.stdout.close()
        self.stderr.close()
        for output in (*self.collected.values(), *(self.left.files.values() if self.left else ())):
            output.close()


@dataclass(frozen=True, slots=True)
class Left:
    """What a run left in /box. As far as limits go such files are the program's memory, and no outputs."""

    files: dict[bytes, Output]
    left_out: int
    """How many other files or folders there were, at least."""


class Output:
    """What a run wrote to one stream or file, bounded by the program's file size limit. Close it."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        """Takes the descriptor over."""
        self._fd = fd

    @classmethod
    def new(cls, name: str) -> Output:
        """A memfd to be written; `name` shows in /proc."""
        return cls(os.memfd_create(name, os.MFD_CLOEXEC))

    @property
    def fd(self) -> int:
        return self._fd

    def __len__(self) -> int:
        return os.fstat(self._fd).st_size

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def head(self, size_bytes: int) -> bytes:
        return os.pread(self._fd, size_bytes, 0)

    def tail(self, size_bytes: int) -> bytes:
        length = len(self)
        return os.pread(self._fd, size_bytes, max(0, length - size_bytes))

    @contextlib.contextmanager
    def view(self) -> Iterator[memoryview]:
        """The whole output; a large one is mapped rather than copied."""
        length = len(self)
        if length <= MAPPED_BYTES:
            yield memoryview(os.pread(self._fd, length, 0))
            return
        with mmap.mmap(self._fd, 0, prot=mmap.PROT_READ) as mapped, memoryview(mapped) as view:
            yield view

    def close(self) -> None:
        os.close(self._fd)
