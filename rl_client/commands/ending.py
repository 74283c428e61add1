"""How the commands of this package end: exit statuses, the words to stop with, and signals.

Imports typer, which the base install lacks, only to stop with it.
The server's commands have their own (`service.commands.options`): what both could import would have to lie in a package
that neither may look into.
"""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

SOME_SKIPPED = 1
USAGE_ERROR = 2
GRADER_ERROR = 3


def stop(code: int, message: str) -> NoReturn:
    """End the command with a message on stderr."""
    import typer

    typer.echo(f"rkgrade: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def interruptible(words: str) -> Generator[None, None, None]:
    """Ctrl-C and SIGTERM unwind, so that no half-written file stays; `words` are what Ctrl-C is answered with."""
    before = signal.signal(signal.SIGTERM, _unwind)
    try:
        yield
    except KeyboardInterrupt:
        stop(128 + signal.SIGINT, words)
    finally:
        signal.signal(signal.SIGTERM, before)


def _unwind(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
