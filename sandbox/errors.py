"""Every error the sandbox raises, in one tree.

SandboxError
├── HostError          this machine cannot run cells as asked; the message says how to mend it
├── UnknownLanguage    no such language here
├── CheckerRefused     a checker that cannot be built (a fault of the problem, found before any test runs)
├── GraderFault        a fault of ours while a program ran: retried, then `internal_error`, never a verdict
└── Cancelled          whoever asked no longer waits
"""

from __future__ import annotations


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
    """A fault of the grader while a program ran."""


class Cancelled(SandboxError):
    """Whoever asked for the work no longer waits for it."""
