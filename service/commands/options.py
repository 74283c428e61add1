"""What the commands share: settings from the environment with flags over them, and the words to stop with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import typer
from pydantic import ValidationError

if TYPE_CHECKING:
    from service.settings import Settings

USAGE_ERROR = 2
GRADER_ERROR = 3


def settings(**flags: Any) -> Settings:
    """The server's settings, with the flags that were given (not None) over them; stops where one is malformed."""
    from service.settings import Settings

    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        stop(USAGE_ERROR, mistakes(error, variables=True))


def mistakes(error: ValidationError, *, variables: bool = False) -> str:
    """Each mistake in a line, with the flag it came from, and the environment variable where there is one."""
    lines = []
    for one in error.errors():
        name = "".join(str(part) for part in one["loc"][:1])
        source = f"--{name.replace('_', '-')}" + (f" / RKGRADE_{name.upper()}" if variables else "")
        lines.append((f"{source}: " if name else "") + one["msg"].removeprefix("Value error, "))
    return "\n".join(lines)


def stop(code: int, message: str) -> NoReturn:
    """End the command with a message on stderr."""
    typer.echo(f"rkgrade: {message}", err=True)
    raise typer.Exit(code)
