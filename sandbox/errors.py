"""Every error the sandbox raises, in one tree.

SandboxError
├── HostError          this machine cannot run cells as asked; the message says how to mend it
├── UnknownLanguage    no such language here
├── CheckerRefused     a checker that cannot be built (a fault of the problem, found before any test runs)
├── GraderFault        a fault of ours while a program ran: retried, then `internal_error`, never a verdict
│   ├── NoCell             a cell could not be started
│   ├── HostOutOfMemory    a program was killed for memory that others took
│   └── HostRefused        the host refused a system call that the grader needs
└── Cancelled          whoever asked no longer waits
"""

from __future__ import annotations

from typing import ClassVar


class SandboxError(Exception):
    """Anything the sandbox can raise."""


class HostError(SandboxError):
    """This machine cannot run cells as asked; the message says what is missing and how to mend it."""


class UnknownLanguage(SandboxError):
    """The language is not in the registry, or its toolchain is not installed here."""


class CheckerRefused(SandboxError):
    """The problem's checker cannot be built. `field` is what of the problem is at fault, such as "checker.source"."""

    def __init__(self, message: str, *, field: str = "checker") -> None:
        super().__init__(message)
        self.field = field


class GraderFault(SandboxError):
    """A fault of the grader while a program ran; where no class below fits, its warden or its cell misbehaved."""

    cause: ClassVar[str] = "cell"
    """For those who watch the grader: one of few."""


class NoCell(GraderFault):
    """A cell could not be started."""

    cause = "no_cell"


class HostOutOfMemory(GraderFault):
    """A program was killed for memory that others took."""

    cause = "host_memory"


class HostRefused(GraderFault):
    """The host refused a system call that the grader needs."""

    cause = "host"


#: Every cause of a GraderFault.
FAULT_CAUSES = tuple(kind.cause for kind in (GraderFault, NoCell, HostOutOfMemory, HostRefused))


class Cancelled(SandboxError):
    """Whoever asked for the work no longer waits for it."""
