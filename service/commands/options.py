"""What the commands share: settings from the environment with flags over them, and the words to stop with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import typer
from pydantic import ValidationError

if TYPE_CHECKING:
    from service.auth import Tokens
    from service.settings import Settings

USAGE_ERROR = 2
GRADER_ERROR = 3


def flag(name: str) -> Any:
    """The option of a command that is a setting, with the setting's own words."""
    from service.settings import Settings

    return typer.Option(help=Settings.model_fields[name].description, show_default=False)


def settings(**flags: Any) -> Settings:
    """The server's settings, with the flags that were given (not None) over them; stops where one is malformed."""
    from service.settings import Settings

    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        stop(USAGE_ERROR, mistakes(error, variables=True))


def tokens(settings: Settings) -> Tokens | None:
    """Those of the settings' file, where one is named; stops where it is refused."""
    from service.auth import Tokens, TokensRefused

    if settings.tokens_file is None:
        return None
    try:
        return Tokens(settings.tokens_file)
    except TokensRefused as error:
        stop(USAGE_ERROR, f"--tokens-file / RKGRADE_TOKENS_FILE: {error}")


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
