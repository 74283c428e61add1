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
        stop(USAGE_ERROR, mistake(error))


def mistake(error: ValidationError) -> str:
    """The first mistake in one line, with the flag it came from."""
    first = error.errors()[0]
    flag = "".join(f"--{str(part).replace('_', '-')}: " for part in first["loc"])
    return f"{flag}{first['msg'].removeprefix('Value error, ')}"


def stop(code: int, message: str) -> NoReturn:
    """End the command with a message on stderr."""
    typer.echo(f"rkgrade: {message}", err=True)
    raise typer.Exit(code)
